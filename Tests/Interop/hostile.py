"""Hostile requests to the servers of Retake: nothing may trap, hang, fill memory or let anybody in.

    python3 Tests/Interop/hostile.py --retake .build/release/retake --requests 10000

Needs nothing but Python. It starts `record serve`, `record serve --rooms` and `open`, sends each
so many requests out of a seeded generator, and asks a good question all the while. Its exit status
is 1 when a server ended, when an answer took longer than 20 s, when a server and its processes had
more than 1 GB, or when something was answered that must not be.
"""

import argparse
import concurrent.futures
import glob
import json
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

_LONGEST_SECONDS = 20
_MOST_MEGABYTES = 1000
_WORKERS = 16

_PATHS = [
    "/",
    "/calls",
    "/stats",
    "/stats?id=call-1",
    "/page?id=call-1",
    "/page",
    "/offer",
    "/whip",
    "/whep",
    "/whip/none",
    "/call/call-1",
    "/cookie",
    "/rooms",
    "/rooms/token",
    "/takes",
    "/take?name=a.take",
    "/details?name=a.take",
    "/more?session=1",
    "/late?session=-1",
    "/findings?name=a.take",
    "/packets?name=a.take&filter=rtp&from=0&count=9999999999",
    "/packet?name=a.take&row=9223372036854775807",
    "/stats?name=a.take&at=1e400",
    "/clear?name=a.take&row=-9223372036854775808",
    "/media?name=a.take&peer=-1&track=99&kind=video&direction=in",
]
_TRAVERSALS = [
    "/../../../../etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/take?name=../../../../etc/passwd",
    "/take?name=/etc/passwd",
    "/take?name=%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/page?id=../../etc/passwd",
    "/details?name=....//....//etc/passwd",
    "//etc/passwd",
    "/take?name=a.take%00/etc/passwd",
]
_SDP = (
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=fingerprint:sha-256 "
    + ":".join(["AB"] * 32)
    + "\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=setup:actpass\r\n"
    "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendrecv\r\na=rtcp-mux\r\n"
    "a=rtpmap:111 opus/48000/2\r\n"
)


class Failure(Exception):
    """Something that must not be."""


class Server:
    """A server under attack, and what is watched of it."""

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
        """Sends bytes and reads the answer to its end, or until nothing comes for a second."""
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
                raise Failure(f"no answer in {_LONGEST_SECONDS} s to {data[:200]!r}") from None
            except OSError:
                pass  # a server may hang up on what it does not want to read
        self.note(time.monotonic() - begin, data)
        return answer

    def request(self, method, path, headers=(), body=b"", host="localhost"):
        """One request as it should be; the status and the whole answer."""
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
            except (Failure, OSError) as error:
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


# What is sent. Each takes the server and a random generator, and fails for a wrong success.


def _mutated(server, rng):
    data = bytearray(
        f"POST /offer?x=%41 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n".encode()
        + b'{"sdp":"xx"}'
    )
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data))
        rng.choice(
            [
                lambda: data.__setitem__(at, rng.randrange(256)),
                lambda: data.pop(at),
                lambda: data.insert(at, rng.randrange(256)),
            ]
        )()
    server.exchange(bytes(data), ends=True)


def _malformed(server, rng):
    server.exchange(
        rng.choice(
            [
                rng.randbytes(rng.randint(1, 3000)),
                b"GET / HTTP/9.9\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01" * 50,
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"GET  HTTP/1.1\r\n\r\n",
                b"\r\n" * 5000,
                b"\0" * 9000,
                b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
                b"Content-Length: 2\r\n\r\nxx",
                b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                b"POST / HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 99999999999999999999\r\n\r\nx",
                b"POST /offer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /stats HTTP/1.1\r\n\r\n",
            ]
        ),
        ends=True,
    )


def _headers(server, rng):
    server.exchange(
        b"GET / HTTP/1.1\r\nHost: localhost\r\n"
        + rng.choice(
            [
                b"X: " + b"y" * rng.randint(1000, 300_000),
                b"X: y\r\n" * rng.randint(100, 30_000),
                b"Cookie: " + b"a=b; " * 5000,
                b"Authorization: " + b"Bearer " * 4000,
            ]
        )
        + b"\r\n\r\n",
        ends=True,
    )
    server.exchange(b"GET /" + b"a" * rng.randint(1, 200_000) + b" HTTP/1.1\r\n\r\n", ends=True)


def _chunks(server, rng):
    chunk = rng.choice(
        [
            b"zz\r\n",
            b"ffffffffffffffff\r\nx",
            b"1;" + b"e" * 70_000 + b"\r\nx\r\n",
            b"1\r\nxx\r\n",
            b"400\r\n" + b"x" * 1024 + b"\r\n",
        ]
    )
    server.exchange(
        b"POST /offer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk * rng.randint(1, 1200)
        + b"0\r\n\r\n",
        ends=True,
    )


def _pipeline(server, rng):
    """Asks many times and reads nothing."""
    path = rng.choice(_PATHS)
    data = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{server.bearer}\r\n\r\n".encode()
    with server.connect() as connection:
        connection.setblocking(False)
        end = time.monotonic() + 0.5
        data *= rng.randint(100, 3000)
        while data and time.monotonic() < end:
            try:
                data = data[connection.send(data[:65_536]) :]
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                return


def _slow(server, rng):
    """Says a little at a time, and then nothing."""
    with server.connect() as connection:
        try:
            for byte in b"POST /offer HTTP/1.1\r\nHost: l"[: rng.randint(1, 28)]:
                connection.send(bytes([byte]))
                time.sleep(0.005)
            time.sleep(rng.random() / 2)
        except OSError:
            pass


def _traversal(server, rng):
    path = rng.choice(_TRAVERSALS)
    headers = [server.bearer] if rng.random() < 0.5 else []
    status, answer = server.request("GET", path, headers)
    if b"root:" in answer or status == 200:
        raise Failure(f"{path} was answered: {answer[:200]!r}")


def _wrongToken(server, rng):
    """Nobody reads or ends anything with a token that is not the server's."""
    wrong = rng.choice(
        [server.token[:-1], server.token + "0", "", "0" * 32, server.token[::-1], "x y"]
    )
    header = rng.choice(
        [
            f"Authorization: Bearer {wrong}",
            f"Authorization: Basic {server.token}",
            f"Cookie: retake-{server.port}={wrong}",
            f"Cookie: retake-1={server.token}",
            "X: y",
        ]
    )
    if server.kind == "open":
        method, path = rng.choice(
            [
                ("GET", "/takes"),
                ("POST", "/sql?name=" + server.name),
                ("GET", "/take?name=" + server.name),
                ("POST", "/cookie"),
            ]
        )
    else:
        method, path = rng.choice(
            [
                ("GET", "/stats"),
                ("POST", "/cookie"),
                ("GET", "/page?id=call-1"),
                ("DELETE", "/call/call-1"),
                ("GET", "/stats?id=call-1"),
            ]
        )
    status, answer = server.request(
        method, path, [header], b"SELECT 1" if method == "POST" else b""
    )
    if status < 400 or b"Set-Cookie" in answer:
        raise Failure(f"{method} {path} with {header}: status {status}")


def _foreign(server, rng):
    name = rng.choice(
        ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", ""]
    )
    origin = rng.choice(["http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}"])
    if rng.random() < 0.5:
        status, _ = server.request("GET", rng.choice(_PATHS), [server.bearer], host=name)
    else:
        header = rng.choice([f"Origin: {origin}", "Sec-Fetch-Site: cross-site"])
        status, _ = server.request("POST", rng.choice(_PATHS), [server.bearer, header], b"{}")
    if not 400 <= status < 500:
        raise Failure(f"Host {name} or Origin {origin}: status {status}")


def _anyPath(server, rng):
    path = rng.choice(_PATHS).replace("a.take", getattr(server, "name", "a.take"))
    method = rng.choice(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"])
    headers = [server.bearer] if rng.random() < 0.7 else []
    status, _ = server.request(method, path, headers, rng.choice([b"", b"{}", rng.randbytes(200)]))
    if status >= 500 and status != 503:
        raise Failure(f"{method} {path}: status {status}")


def _body(server, rng):
    sdp = bytearray(_SDP.encode())
    for _ in range(rng.randint(0, 6)):
        at = rng.randrange(len(sdp))
        sdp[at : at + rng.randint(0, 30)] = rng.choice(
            [b"", b"9" * 40, b"\xff", sdp[:200], b"m=video "]
        )
    text = sdp.decode(errors="replace")
    body = rng.choice(
        [
            b"[" * 100_000,
            b'{"a":' * 50_000,
            b'{"type":"offer","sdp":' + b"9" * 5000 + b"}",
            rng.randbytes(500),
            b'{"id":"call-1","type":"answer","sdp":"v=0"}',
            json.dumps({"type": "offer", "sdp": text}).encode(),
            json.dumps({"type": "offer", "sdp": text * 200}).encode(),
            b'{"add":' + b"[" * 400 + b"}",
            json.dumps({"id": "call-1", "add": ["audio"] * 10_000}).encode(),
        ]
    )
    path, kind = rng.choice(
        [
            ("/offer", "application/json"),
            ("/mkoffer", "application/json"),
            ("/answer", "application/json"),
            ("/candidate", "application/json"),
            ("/whip", "application/sdp"),
            ("/whep", "application/sdp"),
        ]
    )
    status, answer = server.request(
        "POST", path, [f"Content-Type: {kind}"], sdp if kind.endswith("sdp") else body
    )
    found = re.search(rb'"id":"([^"]+)"|\r\nLocation: (/\S+)', answer)
    if status < 300 and found:
        place = f"/call/{found[1].decode()}" if found[1] else found[2].decode()
        server.request("DELETE", place)


_COMMON = [
    (_mutated, 20),
    (_malformed, 15),
    (_headers, 5),
    (_chunks, 5),
    (_pipeline, 5),
    (_slow, 5),
    (_traversal, 8),
    (_wrongToken, 5),
    (_foreign, 8),
    (_anyPath, 20),
]
_KINDS = {
    "serve": _COMMON + [(_body, 15)],
    "rooms": _COMMON + [(_body, 5), (hostile_frames.send, 30)],
    "open": _COMMON + [(hostile_queries.light, 30), (hostile_queries.heavy, 0.6)],
}


def attack(server, count, seed):
    """Sends so many requests; how many of each kind there were."""
    tally = {}
    lock = threading.Lock()

    def one(number):
        rng = random.Random(f"{seed} {server.kind} {number}")
        sends, weights = zip(*_KINDS[server.kind])
        send = rng.choices(sends, weights)[0]
        try:
            send(server, rng)
        except (Failure, hostile_frames.Failure, hostile_queries.Failure) as failure:
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
