"""The official Kubernetes client watches while objects churn; no event may be missed.

Usage: kubernetes_churn.py SECONDS, with KUBECONFIG set. One thread creates, updates and deletes ConfigMaps; the main
thread follows them by list and watch, resuming where a watch ends, and at the end both must have seen the same.
"""

import random
import sys
import threading
import time

from kubernetes import client, config, watch

NAMESPACE = "default"
LABEL = "churn=python"


def churn(api, until, expected, counts):
    rng = random.Random(7)
    names = [f"churn-{index}" for index in range(50)]
    while time.monotonic() < until:
        name = rng.choice(names)
        if name not in expected:
            body = client.V1ConfigMap(
                metadata=client.V1ObjectMeta(name=name, labels={"churn": "python"}), data={"n": "0"}
            )
            expected[name] = api.create_namespaced_config_map(NAMESPACE, body).metadata.resource_version
        elif rng.random() < 0.2:
            api.delete_namespaced_config_map(name, NAMESPACE)
            del expected[name]
        else:
            patched = api.patch_namespaced_config_map(name, NAMESPACE, {"data": {"n": str(rng.random())}})
            expected[name] = patched.metadata.resource_version
        counts["writes"] += 1


def follow(api, stop, seen, counts):
    listed = api.list_namespaced_config_map(NAMESPACE, label_selector=LABEL)
    version = listed.metadata.resource_version
    for item in listed.items:
        seen[item.metadata.name] = item.metadata.resource_version
    while not stop.is_set():
        stream = watch.Watch().stream(
            api.list_namespaced_config_map, NAMESPACE, label_selector=LABEL, resource_version=version, timeout_seconds=5
        )
        for event in stream:
            metadata = event["object"].metadata
            assert int(metadata.resource_version) > int(version), "events come in order and once"
            version = metadata.resource_version
            counts["events"] += 1
            if event["type"] == "DELETED":
                del seen[metadata.name]
            else:
                seen[metadata.name] = metadata.resource_version


def main(seconds):
    config.load_kube_config()
    api = client.CoreV1Api()
    for item in api.list_namespaced_config_map(NAMESPACE, label_selector=LABEL).items:
        api.delete_namespaced_config_map(item.metadata.name, NAMESPACE)
    stop, seen, expected, counts = threading.Event(), {}, {}, {"writes": 0, "events": 0}
    follower = threading.Thread(target=follow, args=(api, stop, seen, counts))
    follower.start()
    time.sleep(0.5)
    churn(client.CoreV1Api(), time.monotonic() + seconds, expected, counts)
    time.sleep(1)
    stop.set()
    follower.join(timeout=30)
    assert seen == expected, "the follower has what was written"
    assert counts["events"] == counts["writes"], counts
    print(f"{counts['writes']} writes in {seconds} s, as many events, none missed, none twice")


main(float(sys.argv[1]))
