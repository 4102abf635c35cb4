"""Controls Retake from outside, through its command line and its HTTP interface only."""

import asyncio
import json
import re
import shutil
import signal
from pathlib import Path

import aiohttp

from processes import Child, ProcessError, free_ports

_START_SECONDS = 90
_REQUEST_SECONDS = 60
_FINISH_SECONDS = 90
_REPLAY_SECONDS = 600

# Ways to replay, none of which may affect the result: a name, a command to run first, and
# environment variables.
REPLAYS = [
    ("first", [], {}),
    ("second", [], {}),
    ("third", [], {}),
    ("other hash seed", [], {"SWIFT_DETERMINISTIC_HASHING": "1"}),
    ("other date", ["faketime", "-m", "2001-02-03 04:05:06"], {}),
    ("other surroundings", [], {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "HOME": "/"}),
]


class Recorder:
    """A running `retake record serve`."""

    def __init__(self, child, address, take, client):
        self._child = child
        self._client = client
        self.address = address
        self.take = take

    @classmethod
    async def start(cls, program, folder, bind, send, options=()):
        """Starts a recorder on a free port. `bind` is the address for ICE, or None for Retake's own
        choice; `options` are further command-line options."""
        take = folder / "call.take"
        (port,) = free_ports(1)
        arguments = [program, "record", "serve", "--out", take, "--listen", f"127.0.0.1:{port}"]
        arguments += ["--send", send, "--label", f"interop {folder.name}"]
        if bind:
            arguments += ["--bind", bind]
        arguments += options
        child = await Child.start(arguments, folder / "record.log")
        client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_REQUEST_SECONDS))
        recorder = cls(child, f"http://127.0.0.1:{port}", take, client)
        try:
            await recorder._answers()
        except BaseException:
            await recorder.abandon()
            raise
        return recorder

    async def offer(self, sdp):
        """Sends an offer to Retake; returns its answer."""
        return (await self.begin(sdp))[1]

    async def begin(self, sdp):
        """Sends an offer to Retake; returns the call's id and the answer."""
        reply = _expected(await self._post("/offer", {"type": "offer", "sdp": sdp}), "answer")
        return reply["id"], reply["sdp"]

    async def offer_again(self, identifier, sdp):
        """Sends another offer within a call; returns the answer."""
        message = {"id": identifier, "type": "offer", "sdp": sdp}
        return _expected(await self._post("/offer", message), "answer")["sdp"]

    async def make_offer(self, **changes):
        """Requests an offer from Retake, within a call if its id is given; returns the call's id
        and the offer."""
        reply = _expected(await self._post("/mkoffer", changes), "offer")
        return reply["id"], reply["sdp"]

    async def answer(self, identifier, sdp):
        """Sends the answer to Retake's offer."""
        await self._post("/answer", {"id": identifier, "type": "answer", "sdp": sdp})

    async def stats(self):
        """Returns Retake's own statistics."""
        token = re.search(r"#token=(\w+)", "\n".join(self._child.errors)).group(1)
        headers = {"Authorization": f"Bearer {token}"}
        async with self._client.get(self.address + "/stats", headers=headers) as response:
            return json.loads(await response.text())

    async def conversation(self):
        """Returns how many messages were echoed on open channels, and how many channels are
        closed."""
        (call,) = (await self.stats()).values()
        received = sum(each.get("messagesReceived", 0) for each in call["stats"])
        closed = sum(each.get("dataChannelsClosed", 0) for each in call["stats"])
        return received, closed

    async def request(self, method, path, body=None, headers=None):
        """Sends any request; returns the response's status, headers and text."""
        async with self._client.request(
            method, self.address + path, data=body, headers=headers
        ) as response:
            return response.status, response.headers, await response.text()

    async def finish(self):
        """Ends the recording with an interrupt, as users do; returns the printed summary."""
        await self._client.close()
        said = len(self._child.output)
        status = await self._child.finish(_FINISH_SECONDS, sending=signal.SIGINT)
        last = self._child.output[said:]
        if status != 0:
            raise ProcessError(f"record ended with status {status} after an interrupt")
        if len(last) != 1 or not last[0].strip():
            raise ProcessError(f"record should end with one line of summary, it printed {last}")
        return last[0]

    async def end_itself(self):
        """Waits for a recording that ends by itself."""
        await self._client.close()
        if status := await self._child.finish(_FINISH_SECONDS):
            raise ProcessError(f"record ended with status {status} after its only call")

    async def abandon(self):
        """Ends the recorder without checks, gracefully if possible."""
        try:
            await self.finish()
        except ProcessError:
            await self._child.end()

    async def _answers(self):
        """Waits until the port accepts connections."""
        async with asyncio.timeout(_START_SECONDS):
            while self._child.status is None:
                try:
                    await self.request("GET", "/")
                    return
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.05)
        raise ProcessError(f"record serve ended with status {self._child.status}")

    async def _post(self, path, message):
        status, _, text = await self.request(
            "POST", path, json.dumps(message), {"Content-Type": "application/json"}
        )
        if status != 200:
            raise ProcessError(f"POST {path}: status {status}: {text[:300]}")
        return json.loads(text) if text else {}


async def replay(program, take, folder):
    """Replays a take in every way in `REPLAYS`; returns the problems, how many replays were
    identical, and how many were made."""
    tried = [each for each in REPLAYS if not each[1] or shutil.which(each[1][0])]
    slots = asyncio.Semaphore(2)

    async def one(number, name, before, environment):
        async with slots:
            log = folder / f"replay-{number}.log"
            child = await Child.start([*before, program, "replay", take], log, environment)
            try:
                status = await child.finish(_REPLAY_SECONDS)
            except ProcessError as error:
                return f"replay ({name}): {error}"
        if status != 0 or not any("identical" in line for line in child.output):
            last = (child.output + child.errors)[-1:] or ["no word"]
            return f"replay ({name}): status {status}: {last[0]}"
        return None

    results = await asyncio.gather(*(one(n, *each) for n, each in enumerate(tried, 1)))
    problems = [problem for problem in results if problem]
    return problems, (len(tried) - len(problems), len(tried))


async def look(program, take, folder):
    """Runs the verbs that inspect a take; returns the problems."""
    problems = []
    for verb, arguments, is_json in (
        ("info", ["--json"], True),
        ("timeline", [], False),
        ("stats", ["--json"], True),
        ("sql", ["SELECT count(*) FROM packet"], False),
    ):
        child = await Child.start([program, verb, take, *arguments], folder / f"{verb}.log")
        try:
            status = await child.finish(_REPLAY_SECONDS)
            if status != 0 or not child.output:
                problems.append(f"{verb}: status {status}, {len(child.output)} lines")
            elif is_json:
                _parse("\n".join(child.output))
        except (ProcessError, ValueError) as error:
            problems.append(f"{verb}: {error}")
    return problems


def _parse(text):
    """Parses JSON: one value, or one value per line."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def _expected(reply, kind):
    missing = {"id", "sdp", "type"} - set(reply)
    if missing or reply["type"] != kind:
        raise ProcessError(f"the reply should be an {kind} with id, sdp and type: {reply}")
    return reply


def is_private(path: Path):
    """Returns whether only the owner may read a file."""
    return path.stat().st_mode & 0o077 == 0
