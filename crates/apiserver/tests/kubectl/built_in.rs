//! The part of the session about built-in kinds, which `kubectl` sends as protobuf when it creates them, and
//! about access.

use crate::session::Session;

pub(crate) async fn creating(session: &Session) {
    session.write("a.txt", "text");
    session
        .all(&[
            ("create namespace team", "namespace/team created"),
            ("config set-context --current --namespace team", "modified"),
            ("create configmap m --from-literal a=b --from-file a.txt", "configmap/m created"),
            ("create configmap dry --from-literal a=b --dry-run=server -o yaml", "name: dry"),
            ("create secret generic s --from-literal key=value", "secret/s created"),
            ("create secret docker-registry r --docker-username u --docker-password p", "secret/r created"),
            ("create serviceaccount robot", "created"),
            ("create role r --verb get,list --resource configmaps --resource-name m", "created"),
            ("create rolebinding robots --role r --serviceaccount team:robot", "created"),
            ("create clusterrole cr --verb get --resource nodes,nodes/status", "created"),
            ("create clusterrole urls --verb get --non-resource-url /logs/*", "created"),
            ("create clusterrolebinding crb --clusterrole cr --user ann --group ml", "created"),
            ("create deployment web --image nginx --replicas 2 --port 80", "deployment.apps/web created"),
            ("create quota q --hard cpu=1,pods=2", "resourcequota/q created"),
            ("create service clusterip plain --tcp 80:8080", "service/plain created"),
            ("create service nodeport node --tcp 80", "service/node created"),
            ("create service externalname ext --external-name example.org", "service/ext created"),
            ("create ingress i --rule example.org/*=plain:80", "created"),
            ("create job j --image busybox -- sleep 1", "job.batch/j created"),
            ("create cronjob c --image busybox --schedule '0 * * * *'", "cronjob.batch/c created"),
            ("create job from --from cronjob/c", "created"),
            ("create poddisruptionbudget pdb --selector app=web --min-available 1", "created"),
            ("create priorityclass high --value 10", "created"),
            ("create token robot", ""),
            ("run pod --image nginx --labels app=web --port 80", "pod/pod created"),
            ("expose deployment web --port 80", "service/web exposed"),
        ])
        .await;
    session
        .all(&[
            ("get configmap m -o jsonpath={.data}", r#"{"a":"b","a.txt":"text"}"#),
            ("get secret s -o jsonpath={.data.key}", "dmFsdWU="),
            ("get secret r -o jsonpath={.type}", "kubernetes.io/dockerconfigjson"),
            ("get role r -o jsonpath={.rules[0].resourceNames}", r#"["m"]"#),
            ("get quota q -o jsonpath={.spec.hard.cpu}", "1"),
            ("get cronjob c -o jsonpath={.spec.schedule}", "0 * * * *"),
            ("get ingress i -o jsonpath={.spec.rules[0].host}", "example.org"),
            ("get priorityclass high -o jsonpath={.value}", "10"),
            ("get configmap,secret", "configmap/m"),
            ("get all", "deployment.apps/web"),
            ("get deployments -o wide", "nginx"),
            ("get deployments", "0/2"),
            ("get events -A", ""),
            ("events", ""),
            ("describe namespace team", "Active"),
            ("describe deployment web", "Replicas:"),
            ("describe pod pod", "Containers:"),
            ("describe configmap m", "Data"),
            ("describe secret s", "5 bytes"),
            ("describe serviceaccount robot", "robot"),
            ("describe role r", "[get list]"),
            ("describe quota q", "Resource"),
            ("describe service web", "Selector:"),
            ("describe crd widgets.example.org", "Widget"),
        ])
        .await;
}

pub(crate) async fn changing(session: &Session) {
    let patch = r#"{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}"#;
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[*].image}";
    session
        .all(&[
            (&format!("patch deployment web -p '{patch}'"), "patched"),
            (image, "nginx:2"),
            ("set image deployment/web nginx=nginx:3", "image updated"),
            (image, "nginx:3"),
            ("set env deployment/web A=b", "env updated"),
            ("set resources deployment web --limits cpu=1", "resource requirements updated"),
            ("set serviceaccount deployment web robot", "serviceaccount updated"),
            ("set selector service plain app=web", "selector updated"),
            ("set subject rolebinding robots --user bob", "subjects updated"),
            ("scale deployment web --replicas 3", "scaled"),
            ("scale --replicas 4 deployment/web", "scaled"),
            ("rollout pause deployment web", "paused"),
            ("rollout resume deployment web", "resumed"),
            ("rollout restart deployment web", "restarted"),
            ("get deployment web -o jsonpath={.spec.replicas}", "4"),
            ("label namespace team tier=one", "labeled"),
            ("annotate configmap m note=x", "annotated"),
        ])
        .await;
    session.write("node.yaml", r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}"#);
    session
        .all(&[
            ("create -f node.yaml", "node/n created"),
            ("taint node n key=value:NoSchedule", "tainted"),
            ("cordon n", "cordoned"),
            ("get nodes", "SchedulingDisabled"),
            ("drain n --ignore-daemonsets", "drained"),
            ("uncordon n", "uncordoned"),
            ("describe node n", "key=value:NoSchedule"),
        ])
        .await;
    std::fs::create_dir(session.path("kustom")).unwrap();
    session.write("kustom/kustomization.yaml", "configMapGenerator: [{name: made, literals: [a=b]}]\n");
    session.expect("apply -k kustom", "configmap/made-").await;
    session.write(
        "several.yaml",
        concat!(
            "apiVersion: v1\nkind: List\nitems:\n",
            "- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n",
            "- {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}\n",
        ),
    );
    session.expect("apply -f several.yaml", "configmap/two created").await;
    session.expect("apply --server-side -f several.yaml", "configmap/two serverside-applied").await;
    session.expect("delete -f several.yaml", "\"two\" deleted").await;
}

pub(crate) async fn access(session: &Session) {
    session
        .all(&[
            ("auth whoami", "kubernetes-admin"),
            ("auth whoami --as bob --as-group ml", "ml"),
            ("auth can-i create widgets", "yes"),
            ("auth can-i get configmaps/m --as system:serviceaccount:team:robot", "yes"),
            ("auth can-i --list", "*.*"),
            ("auth can-i --list --as ann", "nodes"),
            ("get configmap m --as system:serviceaccount:team:robot", "m"),
            ("get configmaps --field-selector metadata.name=m --as system:serviceaccount:team:robot", "m"),
        ])
        .await;
    session.refuse("auth can-i create widgets --as bob", "no").await;
    session.refuse("get configmaps --as system:serviceaccount:team:robot", "Forbidden").await;
    session.refuse("get configmap m --as bob --kubeconfig reader -n team", "cannot impersonate").await;
    session.expect("get configmaps -A --kubeconfig reader", "team").await;
    session.refuse("get secrets -A --kubeconfig reader", "Forbidden").await;
    session.refuse("create namespace mine --kubeconfig reader", "Forbidden").await;
    session.write(
        "roles.yaml",
        concat!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n",
            "metadata: {name: reconciled, namespace: team}\n",
            "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n",
        ),
    );
    session.expect("auth reconcile -f roles.yaml", "reconciled").await;
    let token = session.run("create token robot --duration 10m").await.stdout;
    let config =
        session.run("config view --raw --minify --flatten -o jsonpath={.clusters[0].cluster.server}").await;
    let ca = session
        .run("config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}'")
        .await;
    session.write(
        "robot",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u, namespace: team}}}}]\n\
             clusters: [{{name: c, cluster: {{server: {}, certificate-authority-data: {}}}}}]\n\
             users: [{{name: u, user: {{token: {}}}}}]\n",
            config.stdout, ca.stdout, token.trim()
        ),
    );
    session.expect("auth whoami --kubeconfig robot", "system:serviceaccount:team:robot").await;
    session.expect("config set-context --current --namespace default", "modified").await;
}
