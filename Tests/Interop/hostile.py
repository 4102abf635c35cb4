"""Sends hostile requests to Retake's servers: none may trap, hang, use unlimited memory or let
anyone in.

    python3 Tests/Interop/hostile.py --retake .build/release/retake --requests 10000

Needs only Python. It starts `record serve`, `record serve --rooms` and `open`, sends each of
them that many requests from a seeded generator, and keeps sending valid requests meanwhile.
The exit status is 1 if a server ended, if a response took longer than 20 s, if a server and
its processes used more than 1 GB, or if a request succeeded that must be rejected.
"""

import argparse
import concurrent.futures
import glob
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import hostile_frames
import hostile_queries
import hostile_requests

_LONGEST_SECONDS = 20
_MOST_MEGABYTES = 1000
_WORKERS = 16


class Server:
    """A server under attack, and its measurements."""

    def __init__(self, retake, kind, folder, take):
        self.kind = kind
        self.seconds = 0.0
        self.megabytes = 0.0
        self.problems = []
        self.take = take
        if kind == "open":
            arguments = [retake, "open", take, "--json"]
        else:
            arguments = [
                retake,
                "record",
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--bind",
                "127.0.0.1",
                "--out",
                f"{folder}/{kind}.take",
                "--connect-within",
                "10",
            ]
            arguments += ["--rooms", "--guests", "20"] if kind == "rooms" else []
        self.log = open(f"{folder}/{kind}.log", "w+b")
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log)
        for _ in range(600):
            text = Path(self.log.name).read_text(errors="replace")
            found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\w+)", text)
            if found and (kind == "open" or "/whep" in text):
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{kind}: it does not begin: {text}")
        self.port, self.token = int(found[1]), found[2]
        self._isOver = threading.Event()
        self._watchers = [threading.Thread(target=each) for each in (self._weigh, self._ask)]
        for watcher in self._watchers:
            watcher.start()

    def connect(self, timeout=_LONGEST_SECONDS):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        connection.settimeout(timeout)
        return connection

    def exchange(self, data, ends=False):
        """Sends bytes and reads the response until the connection ends, or until a second passes
        without data."""
        begin = time.monotonic()
        answer = b""
        with self.connect() as connection:
            try:
                connection.sendall(data)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                while len(answer) < 1 << 20:
                    part = connection.recv(1 << 16)
                    if not part:
                        break
                    answer += part
                    head, _, body = answer.partition(b"\r\n\r\n")
                    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
                    if length and len(body) >= int(length[1]):
                        break
            except TimeoutError:
                raise hostile_requests.Failure(
                    f"no answer in {_LONGEST_SECONDS} s to {data[:200]!r}"
                ) from None
            except OSError:
                pass  # a server may hang up on what it does not want to read
        self.note(time.monotonic() - begin, data)
        return answer

    def request(self, method, path, headers=(), body=b"", host="localhost"):
        """Sends a well-formed request; returns the status and the response."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close"]
        lines += list(headers) + (
            [f"Content-Length: {len(body)}"] if body or method == "POST" else []
        )
        answer = self.exchange("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        status = re.match(rb"HTTP/1\.\d (\d+)", answer)
        return int(status[1]) if status else 0, answer

    @property
    def bearer(self):
        return f"Authorization: Bearer {self.token}"

    def note(self, seconds, what):
        self.seconds = max(self.seconds, seconds)
        if seconds > _LONGEST_SECONDS:
            self.problems.append(f"{seconds:.1f} s for {what[:200]!r}")

    def _weigh(self):
        while not self._isOver.wait(0.05):
            total = 0
            for pid in [self.process.pid, *_children(self.process.pid)]:
                try:
                    text = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                total += int((re.search(r"VmRSS:\s+(\d+)", text) or [0, 0])[1]) / 1024
            self.megabytes = max(self.megabytes, total)

    def _ask(self):
        while not self._isOver.wait(1):
            try:
                status, _ = self.request("GET", "/", [self.bearer])
                if status != 200:
                    self.problems.append(f"a good request got status {status}")
            except (hostile_requests.Failure, OSError) as error:
                self.problems.append(f"a good request failed: {error}")

    def finish(self):
        self._isOver.set()
        for watcher in self._watchers:
            watcher.join()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "none: it had to be killed"
        if status != 0:
            end = Path(self.log.name).read_text(errors="replace")[-500:]
            self.problems.append(f"it ended with status {status}: {end}")
        if self.megabytes > _MOST_MEGABYTES:
            self.problems.append(f"it had {self.megabytes:.0f} MB")


def _children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            found += Path(path).read_text().split()
        except OSError:
            pass
    return found


_FAILURES = (hostile_requests.Failure, hostile_frames.Failure, hostile_queries.Failure)
_COMMON = [
    (hostile_requests.mutated, 20),
    (hostile_requests.malformed, 15),
    (hostile_requests.headers, 5),
    (hostile_requests.chunks, 5),
    (hostile_requests.pipeline, 5),
    (hostile_requests.slow, 5),
    (hostile_requests.traversal, 8),
    (hostile_requests.wrongToken, 5),
    (hostile_requests.foreign, 8),
    (hostile_requests.anyPath, 20),
]
_KINDS = {
    "serve": _COMMON + [(hostile_requests.body, 15)],
    "rooms": _COMMON + [(hostile_requests.body, 5), (hostile_frames.send, 30)],
    "open": _COMMON + [(hostile_queries.light, 30), (hostile_queries.heavy, 0.6)],
}


def attack(server, count, seed):
    """Sends `count` requests; returns how many of each kind."""
    tally = {}
    lock = threading.Lock()

    def one(number):
        rng = random.Random(f"{seed} {server.kind} {number}")
        sends, weights = zip(*_KINDS[server.kind])
        send = rng.choices(sends, weights)[0]
        try:
            send(server, rng)
        except _FAILURES as failure:
            with lock:
                server.problems.append(f"request {number}: {failure}")
        except OSError as error:
            if server.process.poll() is not None:
                with lock:
                    server.problems.append(f"request {number}, {send.__name__}: {error}")
        with lock:
            name = f"{send.__module__.removeprefix('hostile_')}.{send.__name__}".replace(
                "__main__.", ""
            )
            tally[name] = tally.get(name, 0) + 1

    with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(one, range(count)))
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retake", required=True, help="the executable")
    parser.add_argument("--take", help="the take for open; a short demo is recorded without one")
    parser.add_argument("--requests", type=int, default=10_000, help="to each server")
    parser.add_argument("--servers", default="serve,rooms,open")
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    isBad = False
    with tempfile.TemporaryDirectory() as folder:
        take = options.take
        if not take:
            take = f"{folder}/demo.take"
            subprocess.run(
                [options.retake, "record", "demo", "--seconds", "1", "--out", take],
                check=True,
                capture_output=True,
            )
        for kind in options.servers.split(","):
            begin = time.monotonic()
            server = Server(options.retake, kind, folder, take)
            server.name = os.path.basename(take)
            tally = attack(server, options.requests, options.seed)
            server.finish()
            print(
                f"{kind}: {options.requests} requests in {time.monotonic() - begin:.0f} s, longest "
                f"answer {server.seconds:.1f} s, most memory {server.megabytes:.0f} MB, "
                f"{len(server.problems)} problems",
                flush=True,
            )
            print("  " + ", ".join(f"{name} {count}" for name, count in sorted(tally.items())))
            for problem in server.problems[:20]:
                print("  " + problem[:1000].replace("\n", " "))
            isBad = isBad or bool(server.problems)
    sys.exit(isBad)


if __name__ == "__main__":
    main()
