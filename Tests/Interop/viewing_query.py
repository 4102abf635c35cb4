"""Tests the SQL tab and the catalogue of a served page, with the keyboard where possible."""

import csv
import io
import json
import shutil

import aiohttp

from visit import CAPTURES

_TAKE = "virtual-heavy-loss.take"


async def query(visit):
    """Checks a query's schema, examples, history and file; errors leave no answer behind."""
    path = visit.folder / _TAKE
    shutil.copyfile(CAPTURES / _TAKE, path)
    address, token = await visit.serve(path)
    await visit.viewer.open(f"{address}#token={token}")
    await visit.ask("void document.body.focus()")
    await visit.viewer.key("7")
    await visit.until(
        "document.querySelectorAll('#schema-list > details').length > 30", "no schema is shown"
    )
    await _schema(visit)
    await _run(visit, "SELECT 1 AS one UNION ALL SELECT 2")
    visit.expect(
        await visit.ask("[...document.querySelectorAll('#answer td')].map(each =>"
                        " each.textContent).join() === '1,2'"),
        "Ctrl and Enter run no query",
    )
    await _run(visit, "SELECT 3 AS three")
    await visit.viewer.key("ArrowUp", with_control=True)
    text = "document.getElementById('query').value"
    visit.expect(
        (await visit.ask(text)).startswith("SELECT 1 AS one"), "keys find no earlier query"
    )
    await visit.viewer.key("ArrowDown", with_control=True)
    visit.expect(await visit.ask(text) == "SELECT 3 AS three", "keys do not go forward again")
    await _run(visit, "SELECT absent FROM nowhere")
    visit.expect(
        await visit.ask("document.getElementById('answer').childElementCount") == 0,
        "an error leaves the answer of another question",
    )
    note = await visit.ask("document.getElementById('query-note').textContent")
    visit.expect("nowhere" in note, f"for an error it shows {note}")
    await _examples(visit)
    await _file(visit, address, token)
    # A page at the same address still has the query history.
    await visit.viewer.open(f"{address}?again#token={token}&view=sql")
    kept = await visit.ask(
        "[...document.querySelectorAll('#query-history li')].map(each => each.textContent)"
    )
    visit.expect("SELECT 3 AS three" in kept, f"the history of a new page: {kept}")
    await visit.ask("document.querySelector('#query-history li:last-child button').click()")
    visit.expect(
        await visit.ask("localStorage.length === 0"), "a history that is forgotten stays"
    )


async def _schema(visit):
    """Checks tables and views with their comments, the search, and that a click inserts a name."""
    packet = await visit.ask(
        "document.querySelector('[data-relation=packet]').textContent"
    )
    visit.expect(
        "bytes of UDP payload" in packet and "Datagrams." in packet, f"of packets: {packet[:200]}"
    )
    await visit.ask(
        "void (document.getElementById('schema-words').value = 'loss lost',"
        " document.getElementById('schema-words').dispatchEvent(new Event('input')))"
    )
    found = await visit.ask(
        "[...document.querySelectorAll('#schema-list [data-relation=loss] li button')]"
        ".map(each => each.textContent)"
    )
    visit.expect("lost" in found and "ssrc" not in found, f"the search finds {found}")
    await visit.ask(
        "void (document.getElementById('query').value = 'SELECT ',"
        " document.getElementById('query').setSelectionRange(7, 7))"
    )
    await visit.ask(
        "void [...document.querySelectorAll('[data-relation=loss] li button')]"
        ".find(each => each.textContent === 'lost').click()"
    )
    visit.expect(
        await visit.ask("document.getElementById('query').value") == "SELECT lost",
        "a click inserts no name",
    )
    visit.expect(
        await visit.ask("document.activeElement.id") == "query", "the query has no focus then"
    )


async def _run(visit, sql):
    """Types a query and runs it with the keyboard."""
    await visit.ask(
        f"void (document.getElementById('query').value = {json.dumps(sql)},"
        " document.getElementById('query').focus(),"
        " document.getElementById('query-note').textContent = 'unasked')"
    )
    await visit.viewer.key("Enter", with_control=True)
    await visit.until(
        "!['unasked', '…'].includes(document.getElementById('query-note').textContent)",
        f"no answer to {sql}",
    )


async def _examples(visit):
    """Checks that every example has an answer."""
    count = await visit.ask("document.querySelectorAll('#query-examples li').length")
    visit.expect(count >= 8, f"{count} examples")
    for place in range(count):
        await visit.ask(
            f"document.querySelectorAll('#query-examples li button')[{place}].click()"
        )
        sql = await visit.ask("document.getElementById('query').value")
        await _run(visit, sql)
        visit.expect(
            await visit.ask("document.querySelectorAll('#answer th').length > 1"),
            f"an example has no answer: {sql}",
        )


async def _file(visit, address, token):
    """Checks that the file has the complete result in the format of RFC 4180, and that a failed
    query makes no file."""
    await visit.ask("void document.getElementById('csv-query').click()")
    await visit.until(
        "document.getElementById('query-note').textContent.startsWith('saved as ')", "no file"
    )
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{address}csv?name={_TAKE}"
    async with aiohttp.ClientSession() as client:
        sql = "SELECT 'a,\"b\"' AS text, NULL AS none, x'00ff' AS bytes, 1.5 AS number"
        async with client.post(url, headers=headers, data=sql) as reply:
            rows = list(csv.reader(io.StringIO(await reply.text(), newline="")))
            expected = [["text", "none", "bytes", "number"], ['a,"b"', "", "00ff", "1.5"]]
            visit.expect(rows == expected, f"a file has {rows}")
        many = (
            "WITH RECURSIVE each(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each LIMIT 50000)"
            " SELECT n FROM each"
        )
        async with client.post(url, headers=headers, data=many) as reply:
            lines = (await reply.text()).splitlines()
            visit.expect(len(lines) == 50_001, f"a file of 50,000 rows has {len(lines)} lines")
        for bad in ("DELETE FROM take", "SELECT absent FROM nowhere"):
            async with client.post(url, headers=headers, data=bad) as reply:
                visit.expect(reply.status == 422, f"{bad}: status {reply.status}")
        async with client.get(url, headers=headers) as reply:
            visit.expect(reply.status == 405, f"a file without a query: status {reply.status}")
        for path, status in ((f"schema?name={_TAKE}", 200), ("schema?name=other", 404)):
            async with client.get(f"{address}{path}", headers=headers) as reply:
                visit.expect(reply.status == status, f"{path}: status {reply.status}")


async def catalogue(visit):
    """Checks that takes can be filtered, and that the filter is part of the address."""
    folder = visit.folder / "catalogue"
    folder.mkdir(exist_ok=True)
    names = [_TAKE, "chromium-retake-offers.take", "observed-clear-h264.take"]
    for name in names:
        shutil.copyfile(CAPTURES / name, folder / name)
    address, token = await visit.serve(folder)
    await visit.viewer.open(f"{address}#token={token}")
    await visit.until(
        "document.querySelectorAll('#takes path.spark').length === 3", "there are no sparklines"
    )
    shown = (
        "[...document.querySelectorAll('#takes [data-take]')].map(each => each.dataset.take)"
    )
    menus = await visit.ask(
        "[...document.querySelectorAll('[data-facet]:not([hidden])')].map(each =>"
        " each.dataset.facet)"
    )
    for facet in ("finding", "codec", "loss", "trip", "length"):
        visit.expect(facet in menus, f"there is no facet {facet}: {menus}")
    await _choose(visit, "codec", "h264")
    visit.expect(await visit.ask(shown) == [names[2]], f"of h264: {await visit.ask(shown)}")
    visit.expect("codec=h264" in await visit.ask("location.hash"), "the choice is not in the link")
    await _choose(visit, "codec", "h264")
    await _choose(visit, "finding", "loss")
    visit.expect(names[0] in await visit.ask(shown), f"with loss: {await visit.ask(shown)}")
    chosen = await visit.ask(shown)
    link = await visit.ask("location.hash")
    await visit.viewer.open(f"{address}?again#token={token}&{link.lstrip('#')}")
    same = f"{shown}.join() === {json.dumps(','.join(chosen))}"
    await visit.until(same, "a link leads elsewhere")
    await visit.ask("void document.getElementById('no-facets').click()")
    visit.expect(len(await visit.ask(shown)) == 3, "not all takes are listed again")
    await visit.ask(
        "void (document.getElementById('take-words').value = 'h264',"
        " document.getElementById('take-words').dispatchEvent(new Event('input')))"
    )
    visit.expect(await visit.ask(shown) == [names[2]], "words do not find a codec")
    # Uses only the keyboard: a menu opens, gets the focus, and is closed by Escape.
    await visit.ask("void document.querySelector('[data-facet=codec] summary').focus()")
    if visit.viewer.name == "firefox":
        # In a window without focus, Enter has no effect on elements.
        await visit.ask("void document.activeElement.click()")
    else:
        await visit.viewer.key("Enter")
    is_open = "document.querySelector('[data-facet=codec]').open"
    await visit.until(is_open, "Enter opens no menu")
    await visit.viewer.key("Escape")
    visit.expect(not await visit.ask(is_open), "Escape does not close a menu")
    visit.expect(
        await visit.ask("document.activeElement.matches('[data-facet=codec] summary')"),
        "a menu that is closed has no focus",
    )


async def _choose(visit, facet, value):
    """Selects a facet's value, or deselects it."""
    await visit.ask(
        f"void [...document.querySelectorAll('[data-facet={facet}] label')].find(each =>"
        f" each.textContent.trim().split(' ')[0] === {json.dumps(value)})"
        ".querySelector('input').click()"
    )
