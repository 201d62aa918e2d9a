"""Compares proxies in front of one endpoint; run.sh builds what this runs.

Usage: compare.py BENCH, BENCH being the gateway's example `gateway_bench`. From the environment:
PROXIES       which, separated by blanks (gateway nginx haproxy, and litellm if LITELLM is set)
ROUNDS        how often each figure is taken; proxies take turns, and the median counts (5)
SECONDS_EACH  how long each load runs (4)
RATE          requests per second of the fixed rate (2000)
IDLE          idle connections (10000, or as many as there are descriptors for)
STREAMS       live streams (2000)
LITELLM       the program `litellm`, for reference: it gets a fiftieth of the rate and a tenth of the streams
"""

import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
ENDPOINT, LISTEN = "127.0.0.1:18000", "127.0.0.1:18080"
CHAT = "/v1/chat/completions"

LITELLM_CONFIG = f"""
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "http://{ENDPOINT}/v1", api_key: none}}
general_settings: {{dangerously_permit_weak_or_unset_master_key: true}}
"""


def setting(name, default):
    return int(os.environ.get(name, default))


class Proxy:
    """One of the programs compared, with what it is asked for."""

    def __init__(self, name, bench, directory, descriptors):
        self.name, self.bench, self.directory = name, bench, directory
        self.descriptors = descriptors
        self.slow = name == "litellm"
        self.address = ENDPOINT if name == "none" else LISTEN
        self.prefix = "" if name in ("none", "litellm") else "/ml-team/chat"

    def command(self):
        if self.name == "gateway":
            return [self.bench, "gateway", LISTEN, ENDPOINT, "2"]
        if self.name == "nginx":
            return ["nginx", "-c", self.config("nginx.conf")]
        if self.name == "haproxy":
            return ["haproxy", "-db", "-q", "-f", self.config("haproxy.cfg")]
        config = self.directory / "litellm.yaml"
        config.write_text(LITELLM_CONFIG)
        host, port = LISTEN.split(":")
        return [os.environ["LITELLM"], "--config", str(config), "--host", host, "--port", port, "--num_workers", "2"]

    def config(self, file):
        text = (HERE / file).read_text()
        most = str(self.descriptors // 2 - 200)
        for name, value in {"DIR": self.directory, "LISTEN": LISTEN, "ENDPOINT": ENDPOINT, "MOST": most}.items():
            text = text.replace(f"@{name}@", str(value))
        path = self.directory / file
        path.write_text(text)
        return str(path)

    def target(self):
        return self.address + self.prefix

    def __enter__(self):
        self.processes = [start([self.bench, "endpoint", ENDPOINT])]
        if self.name != "none":
            self.processes.append(start(self.command()))
        try:
            wait_for(lambda: self.load("rate", 20, 1, quiet=True))
        except SystemExit:
            self.__exit__()
            sys.exit(f"{self.name} does not answer")
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.3)

    def load(self, kind, number, seconds, quiet=False):
        """Runs a load; its figures by name, in microseconds."""
        done = subprocess.run(
            [self.bench, kind, self.target(), str(number), str(seconds)], capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            if quiet:
                return None
            sys.exit(f"{kind} on {self.name}: {done.stderr}")
        return quantiles(done.stdout)

    def throughput(self, seconds):
        """Requests per second of 64 connections that ask again as soon as they are answered."""
        url = f"http://{self.target()}{CHAT}"
        script = str(HERE / "request.lua")
        done = subprocess.run(
            ["wrk", "-t1", "-c64", f"-d{seconds}s", "-s", script, url], capture_output=True, text=True, check=True
        )
        if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
            print(f"{self.name}: {done.stdout}", file=sys.stderr)
        return float(re.search(r"Requests/sec: +([\d.]+)", done.stdout)[1])

    def held(self, kind, number):
        """KiB per connection held by a load, and the load's figures."""
        before = memory(self.processes[-1].pid)
        with subprocess.Popen(
            [self.bench, kind, self.target(), str(number), "6"], stdout=subprocess.PIPE, text=True
        ) as load:
            text = ""
            for line in load.stdout:
                text += line
                if line.startswith("ready"):
                    # Long enough for what is released after a moment of idling to be released.
                    time.sleep(3)
                    after = memory(self.processes[-1].pid)
                    load.terminate()
                    return (after - before) / number, quantiles(text)
        sys.exit(f"{kind} on {self.name} failed")


def start(command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def wait_for(ready):
    for _ in range(120):
        if ready():
            return
        time.sleep(0.5)
    sys.exit(1)


def quantiles(text):
    found = re.search(r"p50 (\d+) us, p99 (\d+) us", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def memory(process):
    """Resident memory of a process and its children, in KiB."""
    children = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()
    total = 0
    for one in [str(process), *children]:
        try:
            status = pathlib.Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        total += int(re.search(r"VmRSS:\s+(\d+)", status)[1])
    return total


def measure(proxies, rounds, seconds, rate):
    """Throughput, latencies at a fixed rate and times to the first byte of streams, by proxy; medians."""
    taken = {proxy.name: {"throughput": [], "rate": [], "first": []} for proxy in proxies}
    for round in range(rounds):
        for proxy in proxies:
            print(f"round {round + 1}: {proxy.name}", file=sys.stderr)
            figures = taken[proxy.name]
            with proxy:
                figures["throughput"].append(proxy.throughput(seconds))
                figures["rate"].append(proxy.load("rate", rate // 50 if proxy.slow else rate, seconds))
                figures["first"].append(proxy.load("first", 100 if proxy.slow else 1000, 0))
    middle = statistics.median
    return {
        name: {
            "throughput": middle(figures["throughput"]),
            "rate": [middle(quantile) for quantile in zip(*figures["rate"])],
            "first": [middle(quantile) for quantile in zip(*figures["first"])],
        }
        for name, figures in taken.items()
    }


def main(bench):
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    rate, streams = setting("RATE", 2000), setting("STREAMS", 2000)
    idle = min(setting("IDLE", 10_000), descriptors // 2 - 400)
    names = os.environ.get("PROXIES", "gateway nginx haproxy" + (" litellm" if "LITELLM" in os.environ else ""))
    with tempfile.TemporaryDirectory() as directory:
        proxies = [Proxy(name, bench, pathlib.Path(directory), descriptors) for name in ["none", *names.split()]]
        figures = measure(proxies, setting("ROUNDS", 5), setting("SECONDS_EACH", 4), rate)
        rows = []
        for proxy in proxies[1:]:
            print(f"memory: {proxy.name}", file=sys.stderr)
            few = 10 if proxy.slow else 1
            with proxy:
                kept, _ = proxy.held("idle", idle // few)
            with proxy:
                live, _ = proxy.held("streams", streams // few)
            rows.append((proxy, kept, live))
    direct = figures["none"]
    print(f"| | Requests/s | p50 added at {rate}/s | p99 added | first byte of a stream added, p50 | p99 |"
          f" per idle connection (of {idle}) | per live stream (of {streams}) |\n|---|---|---|---|---|---|---|---|")
    for proxy, kept, live in rows:
        own = figures[proxy.name]
        added = [(own[what][index] - direct[what][index]) / 1000 for what in ("rate", "first") for index in (0, 1)]
        cells = [f"{own['throughput']:,.0f}", *(f"{value:.2f} ms" for value in added), f"{kept:.1f} KiB", f"{live:.1f} KiB"]
        name = f"{proxy.name} (at {rate // 50}/s, a tenth of the connections)" if proxy.slow else proxy.name
        print(f"| {name} | " + " | ".join(cells) + " |")
    first, last = direct["rate"]
    print(f"\nWithout a proxy: {direct['throughput']:,.0f} requests/s, p50 {first / 1000:.2f} ms, p99 {last / 1000:.2f} ms.")


main(sys.argv[1])
