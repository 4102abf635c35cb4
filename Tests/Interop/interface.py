"""Checks that invalid HTTP requests are rejected with a reason, and that the server continues."""

import shutil

from peers.opening import open_peer
from plan import Call
from retake import Recorder

_TOO_LONG = 4 << 20

# Method, path, body, headers, and the accepted statuses.
_REQUESTS = [
    ("GET", "/", None, {}, {200}),
    ("GET", "/nowhere", None, {}, {404}),
    ("GET", "/stats", None, {}, {401}),
    ("GET", "/stats?id=call-1", None, {}, {404}),
    ("GET", "/page?id=call-1", None, {}, {404}),
    ("GET", "/offer", None, {}, {404, 405}),
    ("POST", "/offer", b"", {}, {400, 422}),
    ("POST", "/offer", b"{", {}, {400, 422}),
    ("POST", "/offer", b"\xff\xfe\x00", {}, {400, 422}),
    ("POST", "/offer", b"[1, 2]", {}, {400, 422}),
    ("POST", "/offer", b'{"type": "offer", "sdp": ""}', {}, {400, 422}),
    ("POST", "/offer", b'{"type": "offer", "sdp": "v=0\\r\\nm=audio"}', {}, {400, 422}),
    ("POST", "/offer", b'{"type": "offer"' + b" " * _TOO_LONG + b"}", {}, {400, 413}),
    ("POST", "/answer", b'{"id": "none", "type": "answer", "sdp": "v=0"}', {}, {400, 404, 422}),
]


async def run(program, folder):
    """Sends all requests, then checks that a call is still accepted; returns the problems."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems = []
    recorder = await Recorder.start(program, folder, "127.0.0.1", "echo")
    try:
        for method, path, body, headers, right in _REQUESTS:
            problems += await _try(recorder, method, path, body, headers, right)
        for foreign in ({"Origin": "http://127.0.0.1:9"}, {"Host": "recorder.example"}):
            for method, path in (("OPTIONS", "/offer"), ("POST", "/mkoffer"), ("GET", "/stats")):
                status, headers, _ = await recorder.request(method, path, None, foreign)
                if status not in (403, 421) or "Access-Control-Allow-Origin" in headers:
                    problems.append(f"{method} {path} with {foreign}: status {status}")
        peer = await open_peer(Call("aiortc", "peer"), folder)
        try:
            await recorder.offer(await peer.offer())
        finally:
            await peer.close()
        await recorder.finish()
    except Exception as error:  # everything that ends this early is a problem to report
        problems.append(f"{type(error).__name__}: {error}")
        await recorder.abandon()
    return problems


async def _try(recorder, method, path, body, headers, right):
    shown = f"{method} {path} {body[:40]!r}" if body else f"{method} {path}"
    try:
        status, _, _ = await recorder.request(method, path, body, headers)
    except Exception as error:
        # If a body is too long, the server may close the connection before it has received all of
        # it.
        if body and len(body) > _TOO_LONG:
            return []
        return [f"{shown}: {type(error).__name__}: {error}"]
    return [] if status in right else [f"{shown}: status {status}, not one of {sorted(right)}"]
