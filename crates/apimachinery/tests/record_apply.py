#!/usr/bin/env python3
"""Records how a real kube-apiserver answers the scenarios of a folder.

usage: record_apply.py BINARIES FOLDER...

BINARIES holds `etcd` and `kube-apiserver`. Every `<name>.yaml` of a folder is a list of scenarios; each
is played on a fresh object and written, with every answer, to `<name>.recorded.json` beside it.
A step names one of: create, update (a merge onto what is live, sent as PUT), apply, json, merge,
strategic; and optionally manager, force, subresource, version, wait (seconds before the step).
"""
import copy, http.client, json, os, pathlib, shutil, socket, ssl, subprocess, sys, tempfile, time
import urllib.parse
import yaml

CONTENT_TYPES = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
TOKEN = "recorder"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, binaries):
        self.folder = tempfile.mkdtemp()
        client, peer, self.port = free_port(), free_port(), free_port()
        self.etcd = subprocess.Popen(
            [f"{binaries}/etcd", "--data-dir", f"{self.folder}/etcd", "--listen-client-urls",
             f"http://127.0.0.1:{client}", "--advertise-client-urls", f"http://127.0.0.1:{client}",
             "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls",
             f"http://127.0.0.1:{peer}", "--initial-cluster", f"default=http://127.0.0.1:{peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pathlib.Path(self.folder, "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        subprocess.run(["openssl", "genrsa", "-out", f"{self.folder}/sa.key", "2048"], check=True, capture_output=True)
        self.api = subprocess.Popen(
            [f"{binaries}/kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", f"--cert-dir={self.folder}/certs",
             f"--secure-port={self.port}", "--bind-address=127.0.0.1", f"--token-auth-file={self.folder}/tokens.csv",
             "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/16",
             f"--service-account-key-file={self.folder}/sa.key", f"--service-account-signing-key-file={self.folder}/sa.key",
             "--service-account-issuer=https://kubernetes.default.svc", "--disable-admission-plugins=ServiceAccount"],
            stdout=subprocess.DEVNULL, stderr=open(f"{self.folder}/api.log", "w"))
        self.connection = None

    def request(self, method, path, body=None, content_type="application/json"):
        for attempt in range(3):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPSConnection(
                        "127.0.0.1", self.port, context=ssl._create_unverified_context())
                data = None if body is None else body if isinstance(body, str) else json.dumps(body)
                self.connection.request(method, path, data, {
                    "Authorization": f"Bearer {TOKEN}", "Content-Type": content_type, "User-Agent": "recorder/1.0"})
                answer = self.connection.getresponse()
                text = answer.read()
                try:
                    return answer.status, json.loads(text)
                except ValueError:
                    return answer.status, text.decode()
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt == 2:
                    raise

    def wait(self):
        for _ in range(600):
            try:
                if self.request("GET", "/readyz")[0] == 200:
                    return
            except (http.client.HTTPException, OSError):
                pass
            time.sleep(0.2)
        raise SystemExit("the API server is not ready")

    def stop(self):
        for process in (self.api, self.etcd):
            process.terminate()
            process.wait()
        shutil.rmtree(self.folder)


def merged(target, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def play(server, document, scenario):
    name = scenario["name"].lower()[:50].replace(" ", "-").replace(",", "").replace("'", "").replace("_", "-").replace("$", "").replace(":", "").rstrip("-")
    steps = []
    plural, group_version, kind = document["plural"], document["apiVersion"], document["kind"]
    for step in scenario["steps"]:
        step = copy.deepcopy(step)
        time.sleep(step.get("wait", 0))
        version = step.get("version", group_version)
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        collection = f"{root}/namespaces/default/{plural}"
        query = {"fieldManager": step.get("manager", "tester")}
        if step.get("force"):
            query["force"] = "true"
        if "validation" in step:
            query["fieldValidation"] = step["validation"]
        query = "?" + urllib.parse.urlencode(query)
        path = f"{collection}/{name}" + (f"/{step['subresource']}" if "subresource" in step else "") + query
        operation = next(key for key in ("create", "update", *CONTENT_TYPES) if key in step)
        body = step[operation]
        identity = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}}
        if operation == "create":
            step["sent"] = merged(merged(document.get("template", {}), identity), body)
            status, answer = server.request("POST", collection + query, step["sent"])
        elif operation == "update":
            _, live = server.request("GET", path)
            step["sent"] = merged(live, body)
            status, answer = server.request("PUT", path, step["sent"])
        elif operation == "apply":
            step["sent"] = {**identity, **body, "metadata": {**identity["metadata"], **body.get("metadata", {})}}
            if step.get("raw"):
                step["sent"] = body
            status, answer = server.request("PATCH", path, step["sent"], CONTENT_TYPES[operation])
        else:
            step["sent"] = body
            status, answer = server.request("PATCH", path, body, CONTENT_TYPES[operation])
        step.pop(operation)
        step.update({"operation": operation, "code": status, "answer": answer})
        if step.get("subresource") == "scale" and status == 200:
            step["main"] = server.request("GET", f"{collection}/{name}")[1]
        steps.append(step)
    return {"name": scenario["name"], "object": name, "steps": steps}


def lines(document):
    """JSON with one scenario per line."""
    scenarios = ",\n".join(json.dumps(scenario, separators=(",", ":")) for scenario in document.pop("scenarios"))
    head = json.dumps(document, separators=(",", ":"))
    return f'{head[:-1]},"scenarios":[\n{scenarios}\n]}}\n'


def main():
    server = Server(sys.argv[1])
    try:
        server.wait()
        for folder in sys.argv[2:]:
            for path in sorted(pathlib.Path(folder).glob("*.yaml")):
                document = yaml.safe_load(path.read_text())
                for definition in document.get("definitions", []):
                    server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
                root = f"/apis/{document['apiVersion']}" if "/" in document["apiVersion"] else f"/api/{document['apiVersion']}"
                while server.request("GET", f"{root}/namespaces/default/{document['plural']}")[0] != 200:
                    time.sleep(0.2)
                time.sleep(2)
                recorded = [play(server, document, scenario) for scenario in document["scenarios"]]
                out = {"apiVersion": document["apiVersion"], "kind": document["kind"],
                       "definitions": document.get("definitions", []), "scenarios": recorded}
                path.with_suffix(".recorded.json").write_text(lines(out))
                print(path.name, len(recorded))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
