"""Queries that try to read other files, or to use unlimited memory or time."""

import json
import os

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

# Queries that must be rejected; any error will do.
_REFUSED = [
    "ATTACH 'file:/tmp/retake-hostile?mode=rwc' AS x",
    "ATTACH '/etc/passwd' AS x",
    "DETACH main",
    "VACUUM INTO '/tmp/retake-hostile'",
    "PRAGMA temp_store_directory = '/tmp/retake-hostile'",
    "PRAGMA data_store_directory = '/tmp'",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA temp_store = FILE",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA soft_heap_limit = 0",
    "PRAGMA mmap_size = 99999999999",
    "PRAGMA cache_size = 99999999",
    "PRAGMA user_version = 9",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE VIRTUAL TABLE temp.x USING fts5(a)",
    "DELETE FROM take",
    "DROP VIEW temp.bitrate",
    "UPDATE take SET label = 'x'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT x",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT writefile('/tmp/retake-hostile', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT edit('x', 'sh')",
    "SELECT 1; SELECT 2",
    "",
    ";",
    "SELECT",
    "SELECT * FROM nothing",
    "EXPLAIN DELETE FROM take; DROP TABLE take",
]

# Queries that may be answered or rejected, but soon.
_STRANGE = [
    "SELECT 1",
    "SELECT zeroblob(1000000000)",
    "SELECT randomblob(999999999)",
    "SELECT hex(zeroblob(16000000))",
    "SELECT printf('%*d', 1000000000, 1)",
    "SELECT " + "(" * 2000 + "1" + ")" * 2000,
    "SELECT 1" + " UNION SELECT 1" * 3000,
    "SELECT " + ",".join(["zeroblob(16000000)"] * 200),
    "SELECT '" + "x" * 99_000 + "'",
    "SELECT " + "9" * 5000,
    "SELECT 1e999, -1e999, 9223372036854775807 + 1",
    "SELECT count(*) FROM packet",
    "SELECT * FROM packet",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM pragma_table_info('take')",
    "EXPLAIN QUERY PLAN SELECT * FROM packet",
    "SELECT json('" + "[" * 3000 + "')",
    "SELECT char(0, 55296, 1114111)",
    "PRAGMA integrity_check",
    "PRAGMA table_info(take)",
    "PRAGMA compile_options",
    "VALUES (1), (2), (3)",
    "SELECT * FROM packet WHERE bytes MATCH 'x'",
    "SELECT abs(-9223372036854775808)",
    "SELECT \0 1",
    "SELECT replace(hex(zeroblob(4000000)), '0', '" + "x" * 500 + "')",
    "SELECT zeroblob(15000000) FROM packet",
    "SELECT group_concat(hex(zeroblob(100000))) FROM packet",
]

# Queries that would run forever, or use unlimited memory.
_ENDLESS = [
    f"{_NUMBERS} SELECT count(*) FROM n",
    f"{_NUMBERS} SELECT group_concat(i) FROM n",
    f"{_NUMBERS} SELECT i FROM n ORDER BY i DESC",
    f"{_NUMBERS} SELECT DISTINCT hex(randomblob(9999)) FROM n",
    f"{_NUMBERS} SELECT group_concat(zeroblob(1000000)) FROM n",
    f"{_NUMBERS} SELECT json_group_array(i) FROM n",
    f"{_NUMBERS} SELECT i, sum(i) OVER (ORDER BY -i) FROM n",
    f"{_NUMBERS} SELECT max(zeroblob(15000000)) FROM n",
    "SELECT count(*) FROM packet a, packet b, packet c, packet d, packet e, packet f",
    "SELECT a.bytes FROM packet a, packet b, packet c ORDER BY a.bytes || b.bytes || c.bytes",
    "SELECT instr(zeroblob(15000000), zeroblob(7000000) || x'01')",
    "SELECT replace(zeroblob(15000000), zeroblob(7000000) || x'01', '')",
    "SELECT ltrim(replace(hex(zeroblob(5000000)), '0', 'a'), "
    "replace(hex(zeroblob(5000000)), '0', 'b') || 'a')",
    "SELECT replace(hex(zeroblob(7000000)), '0', 'a') LIKE '%" + "a%" * 400 + "b'",
    "SELECT replace(hex(zeroblob(7000000)), '0', 'a') GLOB '*" + "a*" * 400 + "b'",
    "SELECT randomblob(15000000) = randomblob(15000000) FROM packet a, packet b, packet c",
]


class Failure(Exception):
    """A violated expectation."""


def _ask(server, sql):
    return server.request("POST", f"/sql?name={server.name}", [server.bearer], sql.encode())


def light(server, rng):
    """Sends queries that must be answered or rejected soon."""
    if rng.random() < 0.5:
        sql = rng.choice(_REFUSED)
        status, answer = _ask(server, sql)
        # Too many concurrent queries are rejected before they are parsed.
        if status == 200:
            raise Failure(f"{sql} was answered: {answer[-200:]!r}")
    else:
        sql = rng.choice(_STRANGE)
        if rng.random() < 0.2:
            sql = "".join(
                rng.choice([sql[:40], "SELECT ", "(", ")", "'", "%", "--", "/*", " FROM packet"])
                for _ in range(rng.randint(1, 12))
            )
        status, answer = _ask(server, sql)
        if status not in (200, 422):
            raise Failure(f"{sql[:200]}: status {status}")
        body = answer.partition(b"\r\n\r\n")[2]
        if status == 200 and len(body) < 1 << 19:
            json.loads(body)
    if os.path.exists("/tmp/retake-hostile"):
        raise Failure(f"{sql} made a file")


def heavy(server, rng):
    """Sends queries that never end by themselves."""
    sql = rng.choice(_ENDLESS)
    status, answer = _ask(server, sql)
    if status not in (200, 422):
        raise Failure(f"{sql[:200]}: status {status}")
