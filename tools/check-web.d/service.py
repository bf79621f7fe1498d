"""A running `wm serve` for the checks of tools/check-web, and a client for it. Loopback only."""

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
WM = os.environ.get("WM", str(REPO / "target/debug/wm"))


class Service:
    """Starts the program with a configuration and a key of its own; ends it again."""

    def __init__(self, config="", flags=(), key=True):
        self.folder = tempfile.TemporaryDirectory()
        home = Path(self.folder.name)
        (home / "serve.toml").write_text(config)
        self.config = home / "serve.toml"
        self.environment = dict(os.environ, XDG_CONFIG_HOME=str(home / "config"))
        if key and not (home / "config/wm/key").exists():
            (home / "config/wm").mkdir(parents=True)
            self.run("keygen")
        self.flags = ["serve", "--config", str(self.config), "--port", "0", *flags]
        self.start()

    def run(self, *arguments):
        result = subprocess.run(
            [WM, *arguments], env=self.environment, capture_output=True, text=True, check=True
        )
        return result.stdout

    def start(self):
        self.process = subprocess.Popen(
            [WM, *self.flags], env=self.environment, stderr=subprocess.PIPE, text=True
        )
        self.said = []
        self.port = None
        while self.port is None:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the service ended:\n" + "".join(self.said))
            self.said.append(line)
            found = re.search(r"listening on http://[^:]+:(\d+)", line)
            self.port = found and int(found[1])
        threading.Thread(target=self._listen, daemon=True).start()
        deadline = time.monotonic() + 300
        while self.request("GET", "/ready")[0] != 200:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit("the service did not become ready:\n" + "".join(self.said))
            time.sleep(0.05)

    def _listen(self):
        for line in self.process.stderr:
            self.said.append(line)

    def request(self, method, path, body=None, headers=None, timeout=120):
        """Status, headers and body of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def resident(self):
        """Resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def peak(self):
        """The most memory it ever held, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def cpu_seconds(self):
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def quantile(values, share):
    """The smallest value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def passages():
    """The human texts of the repository."""
    lines = (REPO / "data/human/passages.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


def verdict_of(name, held, figures):
    """Prints one bar, and gives whether it holds."""
    print(f"{'ok  ' if held else 'MISS'} {name}: {figures}", flush=True)
    return held
