"""The other end of `child.py`: reads commands from standard input and writes replies."""

import asyncio
import dataclasses
import json
import sys


async def serve(peer):
    """Executes the parent's commands on a peer until the input ends."""
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while line := await reader.readline():
        request = json.loads(line)
        reply = {"id": request["id"]}
        try:
            reply["result"] = await _run(peer, request["command"], request["argument"])
        except Exception as error:  # any error of the stack is the reply
            reply["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(reply), flush=True)
    await peer.close()


async def _run(peer, command, argument):
    match command:
        case "offer":
            return await peer.offer()
        case "answer":
            return await peer.answer(argument)
        case "accept":
            return await peer.accept(argument)
        case "report":
            return dataclasses.asdict(await peer.report())
        case "statistics":
            return await peer.statistics()
        case "received":
            return peer.received
    raise ValueError(f"no command {command}")
