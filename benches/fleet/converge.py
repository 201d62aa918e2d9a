"""How long a fleet of simulated clusters takes to serve everything asked of it, and what memory that needs.

Usage: converge.py MODELPLANE [CLUSTERS [DEPLOYMENTS [REPLICAS]]], by default 200, 2000 and 3 replicas each. Starts
`MODELPLANE up --ephemeral`, puts the clusters in, waits until all are ready, puts the deployments in, waits until all
are ready, and prints times and resident memory. Uses nothing but Python's standard library.
"""

import base64
import concurrent.futures
import http.client
import json
import os
import re
import resource
import ssl
import subprocess
import sys
import tempfile
import threading
import time

CLASS = {
    "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceClass", "metadata": {"name": "h100-1x"},
    "spec": {"devices": [{
        "name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 1,
        "attributes": {"architecture": {"string": "Hopper"}}, "capacity": {"memory": {"value": "81559Mi"}},
    }]},
}


def cluster(name, nodes):
    spec = {
        "cluster": {"source": "Existing", "existing": {"secretRef": {"name": f"{name}-kubeconfig"}}},
        "nodePools": [{"name": "h100", "className": "h100-1x", "nodeCount": nodes}],
    }
    return {"apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster", "metadata": {"name": name}, "spec": spec}


def simulated(name):
    metadata = {"name": name}
    return {"apiVersion": "simulation.modelplane.ai/v1alpha1", "kind": "SimulatedCluster", "metadata": metadata, "spec": {}}


def deployment(name, replicas):
    selector = {"cel": 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'}
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.23.0", "args": ["--model=m", "--served-model-name=m"]}
    member = {
        "role": "Standalone",
        "nodeSelector": {"devices": [{"name": "gpu", "count": 1, "selectors": [selector]}]},
        "template": {"spec": {"containers": [container]}},
    }
    spec = {"replicas": replicas, "template": {"spec": {"engines": [{"name": "engine", "members": [member]}]}}}
    metadata = {"name": name, "namespace": "ml-team"}
    return {"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment", "metadata": metadata, "spec": spec}


class Api:
    """One connection for each thread."""

    def __init__(self, kubeconfig):
        text = open(kubeconfig).read()
        field = lambda key: re.search(rf"{key}: (?:>-\s+)?\"?([^\s\"]+)", text).group(1)
        self.host = field("server").removeprefix("https://")
        files = {}
        for key in ("certificate-authority-data", "client-certificate-data", "client-key-data"):
            with tempfile.NamedTemporaryFile(delete=False) as file:
                file.write(base64.b64decode(field(key)))
            files[key] = file.name
        self.tls = ssl.create_default_context(cafile=files["certificate-authority-data"])
        self.tls.load_cert_chain(files["client-certificate-data"], files["client-key-data"])
        self.local = threading.local()

    def call(self, method, path, body=None):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPSConnection(self.host, context=self.tls)
        data = None if body is None else json.dumps(body)
        self.local.connection.request(method, path, data, {"Content-Type": "application/json"})
        response = self.local.connection.getresponse()
        answer = json.loads(response.read())
        assert response.status < 300, answer
        return answer

    def ready(self, path):
        items = self.call("GET", path)["items"]
        is_ready = lambda item: any(
            c["type"] == "Ready" and c["status"] == "True" for c in item.get("status", {}).get("conditions", [])
        )
        return sum(map(is_ready, items))


def memory(process, field):
    status = open(f"/proc/{process.pid}/status").read()
    return int(re.search(rf"{field}:\s+(\d+)", status).group(1)) / 1024


def cpu(process):
    """Seconds of processor time it has used: what a busy machine does not distort."""
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait(api, what, path, count, since, patience=1800):
    while True:
        ready = api.ready(path)
        elapsed = time.monotonic() - since
        if ready >= count:
            return elapsed
        if elapsed > patience:
            sys.exit(f"{ready} of {count} {what} are ready after {elapsed:.0f} s")
        print(f"  {elapsed:6.1f} s  {ready} of {count} {what} ready", file=sys.stderr)
        # Looking costs the server something, too.
        time.sleep(4)


def main(program, clusters=200, deployments=2000, replicas=3):
    clusters, deployments, replicas = int(clusters), int(deployments), int(replicas)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = f"{folder}/kubeconfig"
        command = [program, "up", "--ephemeral", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0"]
        process = subprocess.Popen([*command, "--gateway-listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            print(process.stdout.readline().strip())
            for line in process.stdout:
                if line.startswith("Next"):
                    break
            api = Api(kubeconfig)
            print(f"idle: {memory(process, 'VmRSS'):.0f} MiB")
            group = "/apis/modelplane.ai/v1alpha1"
            api.call("POST", f"{group}/inferenceclasses", CLASS)
            api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "ml-team"}})
            # A replica takes a node for itself; a fifth of them stays free.
            nodes = -(-deployments * replicas * 6 // (clusters * 5))
            since = time.monotonic()
            for index in range(clusters):
                name = f"c{index:03}"
                api.call("POST", "/apis/simulation.modelplane.ai/v1alpha1/simulatedclusters", simulated(name))
                api.call("POST", f"{group}/inferenceclusters", cluster(name, nodes))
            wait(api, "serving stacks", "/apis/infrastructure.modelplane.ai/v1alpha1/servingstacks", clusters, since)
            took = wait(api, "clusters", f"{group}/inferenceclusters", clusters, since)
            print(f"{clusters} clusters ready: {took:.1f} s, {cpu(process):.1f} s of CPU, {memory(process, 'VmRSS'):.0f} MiB")
            since = time.monotonic()
            path = f"{group}/namespaces/ml-team/modeldeployments"
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                made = [pool.submit(api.call, "POST", path, deployment(f"m{i:04}", replicas)) for i in range(deployments)]
                for future in made:
                    future.result()
            print(f"{deployments} deployments created: {time.monotonic() - since:.1f} s")
            took = wait(api, "deployments", f"{group}/modeldeployments", deployments, since)
            print(
                f"{deployments} deployments, {deployments * replicas} replicas ready: {took:.1f} s, "
                f"{cpu(process):.1f} s of CPU in all, "
                f"{memory(process, 'VmRSS'):.0f} MiB now, {memory(process, 'VmHWM'):.0f} MiB at most"
            )
        finally:
            process.terminate()
            process.wait()


main(*sys.argv[1:])
