#!/usr/bin/env python3
"""Compares the throughput of data channels: Retake, aiortc and libwebrtc, each between two of its
peers.

All of them send messages of one size over loopback and keep 1 MiB buffered. The fastest of several
rounds counts, because other work on the machine only slows rounds down.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import namespace
from peers.child import ChildPeer
from processes import adopt_orphans, end_orphans

_ROOT = Path(__file__).resolve().parents[2]
_WARM_UP_SECONDS = 1
# Retake's required throughput, as a multiple of each of the others.
_GOALS = {"aiortc": 5, "libwebrtc": 0.6}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--retake", type=Path, default=_ROOT / ".build/release/retake", metavar="PATH",
        help="the program under test (default: the release build)",
    )
    parser.add_argument(
        "--seconds", type=float, default=4, help="how long messages are counted (default: 4)",
    )
    parser.add_argument(
        "--message-size", type=int, default=16384, metavar="BYTES", help="(default: 16384)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    return parser.parse_args()


@dataclass
class Result:
    """The bytes that one peer received from the other, and the processor time of both."""

    bytes: int
    seconds: float
    processorSeconds: float

    @property
    def rate(self):
        """Megabytes per second."""
        return self.bytes / self.seconds / 1e6

    @property
    def effort(self):
        """Processor seconds per gigabyte."""
        return self.processorSeconds / max(self.bytes, 1) * 1e9


async def _retake(options, *more):
    """Measures two Retake peers, each on its own thread."""
    process = await asyncio.create_subprocess_exec(
        options.retake.resolve().with_name("retake-bench"), "data", "--json",
        "--seconds", str(options.seconds),
        "--message-size", str(options.message_size), *more, stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"retake-bench data ended with status {process.returncode}")
    return Result(**json.loads(output))


async def _others(stack, options, folder):
    """Measures two peers of another stack, each in its own process."""
    ends = []
    try:
        for name in ("sender", "receiver"):
            (folder / name).mkdir(parents=True)
            arguments = [stack, options.message_size]
            ends.append(await ChildPeer.open("flood.py", folder / name, arguments=arguments))
        sender, receiver = ends
        await sender.accept(await receiver.answer(await sender.offer()))
        await asyncio.sleep(_WARM_UP_SECONDS)
        before = await _look(sender, receiver)
        await asyncio.sleep(options.seconds)
        after = await _look(sender, receiver)
        return Result(*(new - old for new, old in zip(after, before)))
    finally:
        for end in ends:
            await end.close()


async def _look(sender, receiver):
    """Returns the bytes received so far, the time, and the processor time of both."""
    received = await receiver.received()
    used = sender.processor_seconds + receiver.processor_seconds
    return received, time.monotonic(), used


async def _measure(options, folder):
    """Returns the best of all rounds, by name."""
    contenders = {
        "retake": lambda folder: _retake(options),
        "retake, both recorded": lambda folder: _retake(options, "--record"),
        "aiortc": lambda folder: _others("aiortc", options, folder),
        "libwebrtc": lambda folder: _others("libwebrtc", options, folder),
    }
    best = {}
    for number in range(options.rounds):
        for name, run in contenders.items():
            result = await run(folder / f"{number}-{name}")
            best[name] = max(best.get(name, result), result, key=lambda each: each.rate)
    return best


def _show(best, message_size):
    print(f"data channel, messages of {message_size} bytes:")
    for name, result in best.items():
        print(f"  {name:22} {result.rate:7.1f} MB/s  {result.effort:7.1f} s of processors per GB")
    met = True
    for name, goal in _GOALS.items():
        ratio = best["retake"].rate / best[name].rate
        met &= ratio >= goal
        verdict = "met" if ratio >= goal else "not met"
        print(f"  retake : {name:13} {ratio:7.2f}       goal >= {goal}  {verdict}")
    return met


def main():
    """Runs all stacks in turn; the exit status is 1 if a goal is not met."""
    options = _arguments()
    namespace.enter()
    adopt_orphans()
    try:
        with tempfile.TemporaryDirectory(prefix="retake-throughput-") as folder:
            best = asyncio.run(_measure(options, Path(folder)))
    finally:
        end_orphans()
    return 0 if _show(best, options.message_size) else 1


if __name__ == "__main__":
    sys.exit(main())
