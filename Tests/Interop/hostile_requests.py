"""Invalid HTTP requests, and valid ones that must be rejected."""

import json
import re
import time

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
    """A violated expectation."""


# Each function gets the server and a random generator, and raises if a request wrongly succeeds.


def mutated(server, rng):
    data = bytearray(
        "POST /offer?x=%41 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n".encode()
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


def malformed(server, rng):
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


def headers(server, rng):
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


def chunks(server, rng):
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


def pipeline(server, rng):
    """Pipelines many requests and reads nothing."""
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


def slow(server, rng):
    """Sends a few bytes at a time, then nothing."""
    with server.connect() as connection:
        try:
            for byte in b"POST /offer HTTP/1.1\r\nHost: l"[: rng.randint(1, 28)]:
                connection.send(bytes([byte]))
                time.sleep(0.005)
            time.sleep(rng.random() / 2)
        except OSError:
            pass


def traversal(server, rng):
    path = rng.choice(_TRAVERSALS)
    headers = [server.bearer] if rng.random() < 0.5 else []
    status, answer = server.request("GET", path, headers)
    if b"root:" in answer or status == 200:
        raise Failure(f"{path} was answered: {answer[:200]!r}")


def wrongToken(server, rng):
    """Checks that a wrong token neither reads nor ends anything."""
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


def foreign(server, rng):
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


def anyPath(server, rng):
    path = rng.choice(_PATHS).replace("a.take", getattr(server, "name", "a.take"))
    method = rng.choice(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"])
    headers = [server.bearer] if rng.random() < 0.7 else []
    status, _ = server.request(method, path, headers, rng.choice([b"", b"{}", rng.randbytes(200)]))
    if status >= 500 and status != 503:
        raise Failure(f"{method} {path}: status {status}")


def body(server, rng):
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
