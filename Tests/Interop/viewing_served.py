"""Tests served pages, pages of running recordings, and pages of malicious takes."""

import asyncio
import shutil
import signal
import sqlite3

import aiohttp

from visit import CAPTURES

_END_SECONDS = 120

_HARM = (
    "</script><img src=x onerror='window.harmed=1'><script>window.harmed=1</script>{{data}}<!--"
)


def _harmed(folder):
    """Makes a take in which every string contains markup."""
    path = folder / "harm.take"
    shutil.copyfile(CAPTURES / "virtual-heavy-loss.take", path)
    take = sqlite3.connect(path)
    take.execute("PRAGMA writable_schema = OFF")
    for table, column in (
        ("peer", "label"), ("peer", "role"), ("signaling", "type"),
        ("signaling", "message"), ("candidate", "address"), ("candidate_pair", "local"),
        ("channel", "label"), ("track", "mid"), ("track", "codec"), ("state", "to_state"),
        ("state", "machine"), ("call_request", "name"), ("event", "type"),
    ):
        take.execute(f"UPDATE {table} SET {column} = ? || {column}", (_HARM,))
    take.commit()
    take.close()
    return path


async def harmless(visit):
    """Checks that nothing in a take runs, or becomes an element of the page."""
    await visit.page(_harmed(visit.folder))
    for tab in ("events", "signaling", "connection", "packets", "stats", "sql", "call"):
        await visit.ask(f"void document.getElementById('tab-{tab}').click()")
        await visit.settle()
    await visit.ask("void retake.visit(1.5)")
    await visit.settle()
    visit.expect(await visit.ask("window.harmed === undefined"), "a text of the take ran")
    strange = await visit.ask("document.querySelectorAll('img, iframe, object, embed').length")
    visit.expect(strange == 0, f"{strange} elements were made from texts")
    visit.expect(
        _HARM in await visit.ask("document.getElementById('title').textContent"),
        "the label is not shown unchanged",
    )
    inserted = await visit.ask(
        "(() => { const script = document.createElement('script');"
        " script.textContent = 'window.harmed = 2'; document.body.append(script);"
        " return new Promise(done => setTimeout(() => done(window.harmed ?? 0), 50)); })()"
    )
    visit.expect(inserted == 0, "the policy lets a script in that the page does not have")
    loaded = await visit.ask(
        "fetch('http://127.0.0.1:9/').then(() => 'loaded', () => 'refused')"
    )
    visit.expect(loaded == "refused", "the page may reach other hosts")


def _unbroken(folder):
    """Makes a take whose strings are words wider than any screen."""
    path = folder / "unbroken.take"
    shutil.copyfile(CAPTURES / "virtual-heavy-loss.take", path)
    word = "unbroken" * 60
    take = sqlite3.connect(path)
    for table, column in (
        ("peer", "role"), ("signaling", "type"), ("candidate", "address"),
        ("candidate_pair", "local"), ("channel", "label"), ("state", "to_state"),
        ("call_request", "name"), ("event", "type"), ("event", "detail"), ("track", "codec"),
    ):
        take.execute(f"UPDATE {table} SET {column} = {column} || ?", (word,))
    take.commit()
    take.close()
    return path, word


# The innermost elements whose text is wider than they are and not clipped, and the page itself.
_WIDER = """(() => {
  const wider = [document.documentElement, ...document.body.querySelectorAll('*')]
    .filter(each => each.clientWidth > 4 && each.scrollWidth > each.clientWidth + 1
      && each.id !== 'window' // the cursor's mark reaches over its edges
      && (getComputedStyle(each).overflowX === 'visible' || each === document.documentElement));
  return wider.filter(each => !wider.some(other => other !== each && each.contains(other)))
    .map(each => `${each.tagName} ${each.id} ${each.className} in `
      + `${each.parentElement?.tagName} ${each.parentElement?.className}`);
})()"""


async def unbroken(visit):
    """Checks that a long word stays within its element."""
    path, word = _unbroken(visit.folder)
    address, token = await visit.serve(path)
    await visit.viewer.open(f"{address}#token={token}")
    await visit.until(
        "document.querySelectorAll('.finding, .symptoms li').length > 3", "no findings are shown"
    )
    for tab in ("call", "events", "signaling", "connection", "packets", "stats", "sql"):
        await visit.ask(f"void document.getElementById('tab-{tab}').click()")
        if tab == "sql":
            await visit.ask(
                "void (document.getElementById('query').value ="
                f" \"SELECT at_ns, '{word}' AS word FROM event\")"
            )
            await visit.ask("void document.getElementById('run-query').click()")
            await visit.until("document.querySelectorAll('#answer td').length > 3", "no answer")
        await visit.settle()
        wider = await visit.ask(_WIDER)
        visit.expect(not wider, f"{tab}: a word overflows {wider[:6]}")
    await visit.ask("void document.getElementById('draw-query').click()")
    await visit.until("retake.board.lanes[0].label === 'SQL'", "a query draws no lane")
    await visit.ask("void document.getElementById('tab-call').click()")
    await visit.ask("void retake.visit(1.5)")
    for key in ("n", "s", "j"):
        await visit.viewer.key(key)
        await visit.settle()
        wider = await visit.ask(_WIDER)
        visit.expect(not wider, f"after {key} a word overflows {wider[:6]}")


async def served(visit):
    """Checks `retake open`: the catalogue, packets down to their fields, SQL as a lane, and
    pictures."""
    folder = visit.folder / "takes"
    folder.mkdir(exist_ok=True)
    names = ["virtual-heavy-loss.take", "chromium-retake-offers.take", "observed-clear-vp8.take"]
    for name in names:
        shutil.copyfile(CAPTURES / name, folder / name)
    address, token = await visit.serve(folder)
    await _refusals(visit, address, token)
    await visit.viewer.open(f"{address}#token={token}")
    rows = "document.querySelectorAll('#takes tbody tr').length"
    await visit.until(f"{rows} === {len(names)}", "the catalogue has not all takes")
    await visit.until(
        "document.querySelectorAll('#takes path.spark').length === 3", "there are no sparklines"
    )
    worst = await visit.ask("document.querySelector('#takes').textContent")
    visit.expect("high: loss" in worst, "the catalogue does not show the worst finding")
    heads = await visit.ask(
        "['thead th:nth-child(2)', 'tbody td:nth-child(2)'].map(each =>"
        " document.querySelector(`#takes ${each}`).getBoundingClientRect().left)"
    )
    visit.expect(abs(heads[0] - heads[1]) < 2, "the heads of the catalogue are misplaced")
    await visit.viewer.open(f"{address}?2#token={token}&take={names[0]}&with={names[1]}")
    visit.expect(
        await visit.ask("document.querySelectorAll('#comparison tbody tr').length") > 4,
        "two takes are not compared",
    )
    peers = await visit.ask("new Set(retake.board.groups.flatMap(each => each.peers)).size")
    visit.expect(peers == 3, f"lanes of {peers} peers of two takes")
    await visit.viewer.open(f"{address}?1#token={token}&take={names[0]}")
    await visit.until(
        "document.querySelectorAll('.finding, .symptoms li').length > 3", "no findings are shown"
    )
    await visit.ask("void document.getElementById('tab-packets').click()")
    await visit.until("document.querySelectorAll('#packets .line').length > 10", "no packets")
    await visit.ask(
        "void (document.getElementById('packet-filter').value = 'stun',"
        " document.getElementById('packet-filter').dispatchEvent(new Event('change')))"
    )
    await visit.until(
        "[...document.querySelectorAll('#packets .line:not(.head)')].length > 3"
        " && [...document.querySelectorAll('#packets .line:not(.head)')]"
        ".every(each => each.textContent.includes('stun'))",
        "the filter lets other packets through",
    )
    await visit.ask(
        "void [...document.querySelectorAll('#packets .line:not(.head)')]"
        ".find(each => each.textContent.includes('success')).click()"
    )
    await visit.until(
        "document.getElementById('packet').textContent.includes('XOR-MAPPED-ADDRESS')",
        "no dissection",
    )
    await visit.until(
        "document.getElementById('packet').textContent.includes('same transaction')", "no request"
    )
    await visit.ask(
        "void (document.getElementById('packet-filter').value = 'in rtcp nack',"
        " document.getElementById('packet-filter').dispatchEvent(new Event('change')))"
    )
    await visit.until(
        "document.querySelector('#packets .line:not(.head)')?.textContent.includes('nack')", "nack"
    )
    await visit.ask("void document.querySelector('#packets .line:not(.head)').click()")
    await visit.until("document.getElementById('inside') !== null", "nothing takes SRTCP away")
    await visit.ask("void document.getElementById('inside').click()")
    await visit.until(
        "document.getElementById('packet').textContent.includes('SSRC of media')", "no clear RTCP"
    )
    await visit.ask("void document.getElementById('tab-sql').click()")
    await visit.ask("void document.getElementById('run-query').click()")
    await visit.until("document.querySelectorAll('#answer td').length > 1", "no answer is shown")
    await visit.ask("void (document.getElementById('query').value = 'SELECT nothing FROM nowhere')")
    await visit.ask("void document.getElementById('run-query').click()")
    await visit.until(
        "document.getElementById('answer').childElementCount === 0",
        "an error leaves the answer of another question",
    )
    await visit.ask(
        "void (document.getElementById('query').value ="
        " 'SELECT at_ns, round_trip_ms FROM round_trip')"
    )
    await visit.ask("void document.getElementById('draw-query').click()")
    await visit.until("retake.board.lanes[0].label === 'SQL'", "a query draws no lane")
    await visit.ask("void document.getElementById('tab-call').click()")
    await visit.ask("void document.querySelectorAll('.screen .load').forEach(each => each.click())")
    await visit.until(
        "retake.mediaTimes().some(each => each.isReady && each.width === 160)", "no video plays"
    )
    await visit.ask("void retake.visit(2.5)")
    await visit.until(
        "retake.mediaTimes().every(each => Math.abs(each.time - 2.5) < 0.2)",
        "video does not follow",
    )


async def _refusals(visit, address, token):
    """Checks that requests without the token, under another host name, or from another page are
    rejected."""
    good = {"Authorization": f"Bearer {token}"}
    cases = [
        ({}, 401), ({"Authorization": "Bearer 0"}, 401), (good, 200),
        ({**good, "Origin": "http://127.0.0.1:9"}, 403), ({**good, "Host": "takes.example"}, 421),
    ]
    async with aiohttp.ClientSession() as client:
        for headers, expected in cases:
            async with client.get(f"{address}takes", headers=headers) as reply:
                visit.expect(reply.status == expected, f"{headers}: status {reply.status}")
        for path, expected in (
            ("take?name=../etc/passwd", 404), ("packets?name=virtual-heavy-loss.take", 422),
            ("nowhere", 404), ("more?session=99", 404),
            ("packet?name=virtual-heavy-loss.take&row=1%20OR%201", 422),
        ):
            async with client.get(f"{address}{path}", headers=good) as reply:
                visit.expect(reply.status == expected, f"{path}: status {reply.status}")
        body = "DELETE FROM take"
        url = f"{address}sql?name=virtual-heavy-loss.take"
        async with client.post(url, headers=good, data=body) as reply:
            visit.expect(reply.status == 422, f"a query that writes: status {reply.status}")


async def live(visit):
    """Checks that the page of a running recording follows it."""
    take = visit.folder / "live.take"
    recorder = await visit.start("record", "demo", "--seconds", "600", "--out", take)
    for _ in range(1200):
        if take.exists() and take.stat().st_size > 0:
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    address, token = await visit.serve(take)
    await visit.viewer.open(f"{address}#token={token}")
    first = await visit.ask("retake.take.seconds")
    await visit.until(f"retake.take.seconds > {first} + 1.5", "the page does not follow")
    visit.expect(not await visit.ask("retake.take.isComplete"), "the end is shown too early")
    visit.expect(await visit.ask("retake.clock.to >= retake.take.seconds - 0.6"), "the view stays")
    await recorder.finish(_END_SECONDS, signal.SIGINT)
    await visit.until("retake.take.isComplete", "the end does not show")
