"""Invalid WebSocket frames, and meaningless messages for rooms."""

import base64
import json
import os
import re
import struct
import time


class Failure(Exception):
    """A violated expectation."""


def _frame(opcode, payload, rng, isLast=True, isMasked=True, length=None, reserved=0):
    """Returns a frame (RFC 6455 section 5.2), whose stated length may differ from the payload's."""
    length = len(payload) if length is None else length
    head = bytes([(0x80 if isLast else 0) | reserved << 4 | opcode])
    mask = 0x80 if isMasked else 0
    if length < 126:
        head += bytes([mask | length])
    elif length < 65_536:
        head += bytes([mask | 126]) + struct.pack(">H", length)
    else:
        head += bytes([mask | 127]) + struct.pack(">Q", length)
    if not isMasked:
        return head + payload
    key = rng.randbytes(4)
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


def _message(rng):
    return json.dumps(
        rng.choice(
            [
                {
                    "type": "join",
                    "room": rng.choice("abc"),
                    "role": "both",
                    "name": "x" * rng.randint(0, 300),
                },
                {
                    "type": "join",
                    "room": "a",
                    "role": "both",
                    "name": "n",
                    "participant": "p" * 5000,
                },
                {"type": "join", "room": "a", "role": "both", "name": "n", "resumes": "0" * 32},
                {"type": "subscribe", "request": 1, "media": list(range(500))},
                {"type": "subscribe", "request": -1, "media": [2**63, -1, 1.5, None]},
                {
                    "type": "message",
                    "request": 2,
                    "message": {"targets": ["p1"] * 256, "text": "x" * 100},
                },
                {
                    "type": "offer",
                    "request": 3,
                    "sdp": "v=0\r\n" * rng.randint(1, 2000),
                    "media": [],
                },
                {"type": "offer", "request": 4, "sdp": "", "media": [{"number": 1}] * 300},
                {"type": "answer", "sdp": "v=0"},
                {"type": "candidate", "connection": "up", "candidate": None},
                {"type": "candidate", "connection": "down", "candidate": {"candidate": "x" * 9000}},
                {"type": "leave"},
                {"type": "restart"},
                {"type": "stop", "request": 5},
                {"type": "nothing"},
                [],
                5,
                "x",
                None,
            ]
        )
    ).encode()


def _bytes(rng):
    text = _message(rng)
    return rng.choice(
        [
            lambda: _frame(1, text, rng),
            lambda: _frame(1, text, rng),
            lambda: _frame(1, text, rng),
            lambda: _frame(1, text, rng, isMasked=False),
            lambda: _frame(1, text, rng, reserved=7),
            lambda: _frame(1, b"", rng, length=1 << 62),
            lambda: _frame(2, b"x", rng, length=(1 << 64) - 1),
            lambda: _frame(9, b"x" * 200, rng),
            lambda: _frame(8, b"\x00", rng),
            lambda: _frame(8, b"\x03\xed", rng),
            lambda: _frame(0, text, rng),
            lambda: _frame(1, text, rng, isLast=False) * 2,
            lambda: _frame(1, b"\xff\xfe", rng),
            lambda: _frame(rng.randint(3, 15), text, rng),
            lambda: _frame(1, b"a", rng, isLast=False)
            + _frame(0, b"b" * 5000, rng, isLast=False) * 80,
            lambda: _frame(9, b"ping", rng) * 2000,
            lambda: rng.randbytes(500),
            lambda: _frame(1, text * 40, rng),
            lambda: _frame(1, b"[" * 60_000, rng),
        ]
    )()


def send(server, rng):
    """Opens a WebSocket, usually joins a room, and sends random frames; reads some of the
    responses."""
    key = base64.b64encode(os.urandom(16)).decode()
    with server.connect() as connection:
        connection.sendall(
            (
                "GET /rooms HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Protocol: retake-room\r\n\r\n"
            ).encode()
        )
        begin = time.monotonic()
        try:
            head = connection.recv(4096)
        except TimeoutError:
            raise Failure("a handshake was not answered in time") from None
        server.note(time.monotonic() - begin, b"a handshake")
        if not re.match(rb"HTTP/1.1 101", head):
            return
        parts = [_bytes(rng) for _ in range(rng.randint(1, 12))]
        if rng.random() < 0.8:
            join = {"type": "join", "room": rng.choice("abc"), "role": "both", "name": "n"}
            parts.insert(0, _frame(1, json.dumps(join).encode(), rng))
        connection.settimeout(0.2)
        reads = rng.random() < 0.7
        try:
            for part in parts:
                connection.sendall(part)
                if reads:
                    connection.recv(65_536)
        except OSError:
            pass
