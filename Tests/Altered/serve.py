"""Requests everything that `retake open` has from altered takes.

usage: serve.py RETAKE FOLDER

The folder contains takes written by `altered --write`. The server has to answer each request within
20 seconds, with an error or without, and to run until the end with less than a gigabyte of memory.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

QUERIES = [
    "SELECT * FROM packet LIMIT 50",
    "SELECT * FROM stat LIMIT 50",
    "SELECT * FROM stream",
    "SELECT * FROM freeze",
]


def peak(process):
    with open(f"/proc/{process.pid}/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


def main():
    retake, folder = sys.argv[1:]
    process = subprocess.Popen(
        [retake, "open", folder, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    address = json.loads(process.stdout.readline())
    base, _, token = address["url"].partition("#token=")
    findings, requests, slowest = [], 0, 0.0

    def ask(path, body=None, **parameters):
        nonlocal requests, slowest
        url = urllib.parse.urljoin(base, path) + "?" + urllib.parse.urlencode(parameters)
        request = urllib.request.Request(url, data=body)
        request.add_header("Authorization", f"Bearer {token}")
        start = time.monotonic()
        try:
            data = urllib.request.urlopen(request, timeout=30).read()
        except urllib.error.HTTPError as error:
            data = error.read()
            if error.code == 401:
                findings.append(f"{url}: the token is refused")
        except Exception as error:
            findings.append(f"{url}: {error}")
            data = b""
        requests += 1
        slowest = max(slowest, time.monotonic() - start)
        if time.monotonic() - start > 20:
            findings.append(f"{url}: {time.monotonic() - start:.0f} s")
        return data

    ask("takes")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".take"))
    for name in names:
        for path in ["details", "findings"]:
            ask(path, name=name)
        for overview in [{}, {"overview": "1"}]:
            # The answer starts with a length in four bytes and a JSON object of that length; the
            # columns follow.
            data = ask("take", name=name, **overview)
            try:
                length = int.from_bytes(data[:4], "big")
                session = json.loads(data[4 : 4 + length])["session"]
            except (ValueError, KeyError, TypeError):
                continue
            ask("late", session=session)
            ask("more", session=session)
        ask("stats", name=name, at="0.2")
        ask("packets", name=name, filter="", **{"from": "0"}, count="500")
        ask("packet-at", name=name, filter="", at="0.2")
        for path in ["packet", "clear"]:
            ask(path, name=name, row=str(20 << 16))
        ask("media", name=name, peer="1", direction="in", track="1", kind="video")
        for sql in QUERIES:
            ask("sql", name=name, body=sql.encode())
        if process.poll() is not None:
            findings.append(f"{name}: the server ended with status {process.returncode}")
            break
    memory = peak(process) if process.poll() is None else 0
    if memory > 1024:
        findings.append(f"{memory} MB of memory")
    process.terminate()
    for finding in findings:
        print(finding)
    print(
        f"{len(names)} altered takes, {requests} requests, the slowest {slowest:.1f} s, "
        f"{memory} MB, {len(findings)} findings"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
