//! The server over TLS: certificates, both HTTP versions, slow clients, a real client library.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use modelplane_apiserver::{ApiServer, Identity};
use support::server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Served {
    address: SocketAddr,
    kubeconfig: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<ApiServer>,
}

async fn serve() -> Served {
    let server = server().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let kubeconfig = server.kubeconfig(&Identity::admin(), &format!("https://{address}")).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        server
            .serve(listener, async {
                let _ = stopped.await;
            })
            .await
            .unwrap();
        server
    });
    Served { address, kubeconfig, stop, task }
}

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_works_and_one_without_is_refused() {
    let served = serve().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&served.kubeconfig).await);
    let map = ConfigMap {
        metadata: ObjectMeta { generate_name: Some("map-".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let created = maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(created.metadata.name.unwrap().starts_with("map-"));
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let mut kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig).unwrap();
    kubeconfig.auth_infos[0].auth_info = Some(kube::config::AuthInfo::default());
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let stranger: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    match stranger.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 401),
        other => panic!("{other:?}"),
    }
    served.stop.send(()).unwrap();
    served.task.await.unwrap().shutdown().await;
}

#[tokio::test]
async fn clients_that_say_nothing_hold_up_nobody() {
    let served = serve().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(b"\x16\x03").await.unwrap();
        silent.push(stream);
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&served.kubeconfig).await);
    let listed = tokio::time::timeout(Duration::from_secs(60), maps.list(&ListParams::default())).await;
    assert!(listed.unwrap().unwrap().items.is_empty());
    // Plain HTTP is no TLS: the connection ends.
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), plain.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the connection was left open");
    // The handshake's own limit ends the silent ones.
    let mut end = [0; 64];
    let read = tokio::time::timeout(Duration::from_secs(60), silent[0].read(&mut end)).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    served.stop.send(()).unwrap();
    served.task.await.unwrap();
}
