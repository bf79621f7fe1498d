"""The bars of the service under load, printed one a line. Everything is bounded in count and time.

usage: load.py health | generations [MINUTES] | throughput | kill | sizing
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from service import REPO, WM, Service, passages, quantile, verdict_of


def large_texts(count, size):
    """Texts of `size` bytes without long repeats."""
    source = passages()
    texts = []
    for number in range(count):
        parts, length = [], 0
        while length < size:
            part = f"{length} {source[(len(parts) * 7 + number) % len(source)]}\n"
            parts.append(part)
            length += len(part.encode())
        texts.append("".join(parts).encode()[:size].decode(errors="ignore"))
    return texts


def health():
    """Four texts of 5 MB at once: how long does /health take meanwhile?"""
    texts = large_texts(4, 5_000_000)
    with Service(flags=["--no-engine"]) as service:
        results = []

        def judge(text):
            status, _, body = service.request("POST", "/v1/detect", {"text": text}, timeout=600)
            results.append((status, json.loads(body).get("tokens")))

        threads = [threading.Thread(target=judge, args=(text,)) for text in texts]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        delays = []
        while any(thread.is_alive() for thread in threads):
            before = time.monotonic()
            status, _, _ = service.request("GET", "/health")
            assert status == 200, status
            delays.append(time.monotonic() - before)
            time.sleep(0.05)
        took = time.monotonic() - started
        held = [status for status, _ in results] == [200] * 4 and quantile(delays, 0.99) < 0.2
        return verdict_of(
            "/health beside four texts of 5 MB, p99 < 200 ms",
            held,
            f"p50 {quantile(delays, 0.5) * 1e3:.1f} ms, p99 {quantile(delays, 0.99) * 1e3:.1f} ms, "
            f"largest {max(delays) * 1e3:.1f} ms of {len(delays)}; the texts took {took:.1f} s "
            f"({results[0][1]} tokens each)",
        )


def generations(minutes):
    """200 generations at once with a queue of 16, over and over; then a normal one."""
    config = "[generation]\nmax_batch = 8\nqueue = 16\n"
    with Service(config) as service:
        ask = {"prompt": "The harbour was quiet", "max_tokens": 64}

        def one(statuses, seed):
            status, headers, _ = service.request(
                "POST", "/v1/completions", {**ask, "seed": seed}, timeout=120
            )
            statuses[status] += 1
            if status == 429 and not headers.get("Retry-After"):
                statuses["429 without Retry-After"] += 1

        statuses = collections.Counter()
        memory = []
        deadline = time.monotonic() + minutes * 60
        rounds = 0
        while rounds == 0 or time.monotonic() < deadline:
            threads = [threading.Thread(target=one, args=(statuses, seed)) for seed in range(200)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            memory.append(service.resident())
            rounds += 1
        # The first round fills caches and pools; growth is what comes after it.
        growth = memory[-1] / memory[0] - 1
        asked = {"prompt": "Once", "max_tokens": 8}
        normal = service.request("POST", "/v1/completions", asked)[0]
        time.sleep(1)
        before = service.cpu_seconds()
        time.sleep(2)
        idle = service.cpu_seconds() - before
        ended = sum(statuses.values()) == 200 * rounds and set(statuses) <= {200, 429}
        return all(
            [
                verdict_of(
                    "200 generations at once, each 200 or 429", ended, f"{dict(statuses)}, {rounds} rounds"
                ),
                verdict_of(
                    f"memory over {minutes} minutes of load, growth < 5%",
                    growth < 0.05,
                    f"{memory[0] / 2**20:.0f} MiB after the first round, {memory[-1] / 2**20:.0f} MiB "
                    f"at the end, most {max(memory) / 2**20:.0f} MiB: {growth:+.1%}",
                ),
                verdict_of(
                    "afterwards a normal request works and the service is idle",
                    normal == 200 and idle < 0.1,
                    f"status {normal}, {idle:.2f} CPU seconds in 2 s",
                ),
            ]
        )


def throughput():
    """Texts of 1 kB over HTTP at 32 connections, beside the library alone, in one run."""
    # The bench cuts the same passages; both sides read the default model's tokenizer.
    models = json.loads(subprocess.run([WM, "models", "--json"], capture_output=True, check=True).stdout)
    environment = dict(os.environ, WM_TOKENIZER=models[0]["path"])
    bench = subprocess.run(
        ["cargo", "bench", "--locked", "--bench", "detect", "--profile", "dev"],
        cwd=REPO, env=environment, capture_output=True, text=True, check=True,
    ).stdout
    print(bench, end="")
    library = float(re.search(r"2 threads: ([\d.]+) texts/s", bench)[1])
    texts = [text[:1000] for text in passages() if len(text) > 1000 and text[:1000].isascii()]
    wrk = shutil.which("wrk") or sys.exit("wrk is missing: apt-get install wrk")
    with tempfile.TemporaryDirectory() as folder:
        # Audit lines go where an operator sends them, not through this script.
        flags = ["--no-engine", "--audit-log", str(Path(folder) / "audit.jsonl")]
        service = Service(flags=flags)
        script = Path(folder) / "post.lua"
        bodies = ",\n".join(json.dumps(json.dumps({"text": text})) for text in texts)
        script.write_text(
            # Written out before the run: the generator's own work is taken from the same cores.
            'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
            f"local bodies = {{{bodies}}}\nlocal requests, place = {{}}, 0\n"
            "init = function()\n  for i, body in ipairs(bodies) do\n"
            "    requests[i] = wrk.format(nil, nil, nil, body)\n  end\nend\n"
            "request = function()\n  place = place % #requests + 1\n  return requests[place]\nend\n"
        )
        address = f"http://127.0.0.1:{service.port}/v1/detect"
        command = [wrk, "-t1", "-c32", "-d15s", "--latency", "-s", str(script), address]
        with service:
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print(printed, end="")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", printed)[1])
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", printed)
    return verdict_of(
        "detection of 1 kB texts over HTTP, >= 80% of the library",
        rate >= 0.8 * library and wrong is None,
        f"{rate:.0f} against {library:.0f} texts/s: {rate / library:.0%} "
        "(the load generator shares the two cores)",
    )


def kill():
    """kill -9 under load, and a restart."""
    with Service(flags=["--no-engine"]) as service:
        keys = Path(service.environment["XDG_CONFIG_HOME"]) / "wm/apikeys.json"
        first = service.run("apikey", "add", "first", "--role", "reviewer").strip()
        audit = Path(service.folder.name) / "audit.jsonl"
        service.stop()
        service.flags += ["--keys-file", str(keys), "--audit-log", str(audit)]
        added, whole = 1, True
        for attempt in range(10):
            service.start()
            headers = {"Authorization": f"Bearer {first}"}
            running = True

            def load():
                while running:
                    try:
                        service.request("POST", "/v1/detect", {"text": passages()[0]}, headers)
                    except OSError:
                        return

            threads = [threading.Thread(target=load) for _ in range(4)]
            for thread in threads:
                thread.start()
            adding = subprocess.Popen(
                [WM,
                 "apikey", "add", f"key-{attempt}", "--role", "public"],
                env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            time.sleep(0.002 * attempt)
            adding.kill()
            service.process.kill()
            adding.wait()
            service.process.wait()
            running = False
            for thread in threads:
                thread.join()
            names = [key["name"] for key in json.loads(keys.read_text())["keys"]]
            added = len(names)
            whole &= "first" in names
            lines = audit.read_text().splitlines()
            for line in lines[:-1]:
                json.loads(line)
        service.start()
        status = service.request("POST", "/v1/detect", {"text": "a"}, {"Authorization": f"Bearer {first}"})[0]
        left = sorted(path.name for path in keys.parent.iterdir())
        return verdict_of(
            "kill -9 under load, ten times, and restart",
            whole and status == 200,
            f"{added} keys in a whole file, {len(lines)} whole audit lines, status {status}, "
            f"the folder holds {left}",
        )


def sizing():
    """The table of docs/deploy.md: memory and speed of one service on this machine."""
    mebi = 2**20
    (text,) = large_texts(1, 5_000_000)
    with Service(flags=["--no-engine"]) as service:
        part = {"text": text[:900_000]}
        service.request("POST", "/v1/detect", part, timeout=600)
        before = service.peak()
        service.request("POST", "/v1/detect", {**part, "detail": "tokens"}, timeout=600)
        more = (service.peak() - before) / mebi
        print(f"| the tokens of a text of 900 kB listed | {more:.0f} MiB above the peak before |")
    with Service(flags=["--no-engine"]) as service:
        print(f"| detection, idle | {service.resident() / mebi:.0f} MiB |")
        started = time.monotonic()
        service.request("POST", "/v1/detect", {"text": text}, timeout=600)
        took = time.monotonic() - started
        print(f"| one text of 5 MB | {took:.1f} s, then {service.resident() / mebi:.0f} MiB |")
        started = time.monotonic()
        asked = {"text": text[:1_000_000], "windows": True}
        status, _, _ = service.request("POST", "/v1/detect", asked, timeout=600)
        assert status == 200, status
        print(f"| one text of 1 MB with windows | {time.monotonic() - started:.1f} s |")
        lines = "\n".join(json.dumps({"text": text[:1000]}) for text in passages() * 20)
        started = time.monotonic()
        _, _, reply = service.request(
            "POST", "/v1/detect/batch", lines, {"Content-Type": "application/x-ndjson"}, timeout=600
        )
        rate = reply.count(b"\n") / (time.monotonic() - started)
        print(f"| a batch of texts of 1 kB | {rate:.0f} texts/s |")
    with Service("[generation]\nmax_batch = 8\n") as service:
        print(f"| with the default model, idle | {service.resident() / mebi:.0f} MiB |")
        for texts in (1, 2, 4, 8):
            ask = {"prompt": "The harbour was quiet", "max_tokens": 200, "min_tokens": 200, "n": texts}
            started = time.monotonic()
            service.request("POST", "/v1/completions", ask, timeout=600)
            rate = 200 * texts / (time.monotonic() - started)
            print(f"| {texts} texts at once | {rate:.0f} tokens/s in all |")
        print(f"| after them | {service.resident() / mebi:.0f} MiB |")
    return True


if __name__ == "__main__":
    name, *rest = sys.argv[1:] or ["?"]
    checks = {
        "health": health,
        "generations": lambda: generations(float(rest[0]) if rest else 5.0),
        "throughput": throughput,
        "kill": kill,
        "sizing": sizing,
    }
    if name not in checks:
        sys.exit(__doc__)
    sys.exit(0 if checks[name]() else 1)
