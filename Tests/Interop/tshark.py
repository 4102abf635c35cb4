"""tshark's table of RTP streams, and its way of computing jitter."""

import struct
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Stream:
    """A line in the table."""

    # The source and destination ports.
    port: int
    destination_port: int
    ssrc: int
    packets: int
    lost: int
    # The mean and the largest jitter in milliseconds; 0 if tshark does not know the clock.
    mean: float
    largest: float


def streams(capture):
    """Returns the streams that tshark finds in a capture."""
    printed = subprocess.run(
        ["tshark", "-r", capture, "-q", "-n", "-z", "rtp,streams"],
        check=True, capture_output=True, text=True,
    ).stdout
    return list(filter(None, map(row, printed.splitlines())))


def row(line):
    """Parses a line of the table; returns None for any other line."""
    fields = line.split()
    place = next((n for n, field in enumerate(fields) if field.startswith("0x")), None)
    percent = next((n for n, field in enumerate(fields) if field.startswith("(")), None)
    if place is None or percent is None or len(fields) <= percent + 6:
        return None
    return Stream(
        int(fields[place - 3]), int(fields[place - 1]), int(fields[place], 16),
        int(fields[percent - 2]), int(fields[percent - 1]),
        *map(float, fields[percent + 5 : percent + 7]),
    )


def jitters(packets, clock):
    """Returns the jitter in ms after each packet but the first (RFC 3550 section 6.4.1), with the
    packet, which starts with its arrival in ns and its RTP time."""
    jitter, last = 0.0, None
    for packet in packets:
        at, time = packet[:2]
        if last is not None:
            ticks = (time - last[1] + 0x80000000 & 0xFFFFFFFF) - 0x80000000
            jitter += (abs((at - last[0]) / 1e6 - ticks * 1e3 / clock) - jitter) / 16
            yield jitter, packet
        last = (at, time)


def mean_and_largest(packets, clock):
    """Returns the mean and maximum jitter as in the table, for packets given by arrival in ns, RTP
    time and marker.

    Packets with the marker bit are counted, but affect neither mean nor maximum.
    """
    mean = largest = 0.0
    for number, (jitter, packet) in enumerate(jitters(packets, clock), 1):
        if not packet[2]:
            mean += (jitter - mean) / number
            largest = max(largest, jitter)
    return mean, largest


def udp(source, target, payload):
    """Returns an IPv4 packet from 10.0.0.1 to 10.0.0.2."""
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    datagram = struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0x4000, 64, 17, 0)
    return header + addresses + datagram


def invite(payload_type, clock, port):
    """Returns a SIP call set-up that states the clock rate of a payload type at a port."""
    kind, name = ("audio", "opus") if clock == 48000 else ("video", "VP8")
    body = (
        "v=0\r\no=- 1 1 IN IP4 10.0.0.2\r\ns=-\r\nc=IN IP4 10.0.0.2\r\nt=0 0\r\n"
        f"m={kind} {port} RTP/AVP {payload_type}\r\n"
        f"a=rtpmap:{payload_type} {name}/{clock}\r\n"
    )
    return (
        "INVITE sip:b@10.0.0.2 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.1:5060;branch=z9hG4bK"
        f"{port}\r\nFrom: <sip:a@10.0.0.1>;tag={port}\r\nTo: <sip:b@10.0.0.2>\r\n"
        f"Call-ID: {port}\r\nCSeq: 1 INVITE\r\nContent-Type: application/sdp\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
