"""Tests what-if runs over a corpus."""

import random
from pathlib import Path

import pytest
import retake_takes as retake
from conftest import RETAKE, fleet, fleet_text
from retake_takes.fleet import bootstrap, cli, whatif
from retake_takes.fleet.storage import FleetError


def test_it_repeats_bit_for_bit_and_equals_each_takes_result(corpus: Path, tmp_path: Path) -> None:
    words = ("whatif", corpus, "--jitter-buffer", "60,300", "--seed", "7")
    one = fleet_text(*words, "--json", "--jobs", "2", "--out", tmp_path / "rows.parquet").stdout
    other = fleet_text(*words, "--json", "--jobs", "1", "--batch-seconds", "0.01").stdout
    assert one == other
    import duckdb

    rows = duckdb.sql(f"SELECT * FROM '{tmp_path}/rows.parquet'").fetchall()
    path = str(corpus / "call-3.take")
    by_hand = retake.whatif(path, jitter_buffer=300)
    mine = {row[2]: row[3:] for row in rows
            if row[0] == path and row[1] == "jitter buffer 300 ms"}
    for measure, pattern in (
        ("concealed_ms", "mid 0 audio concealed ms"),
        ("freezes", "track 2 video freezes"), ("sent_kbit_s", "sent kbit/s"),
    ):
        pairs = [outcome.numbers for peer in by_hand.peers for outcome in peer.outcomes
                 if outcome.name == pattern and outcome.numbers]
        assert mine[measure] == pytest.approx(
            (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))), measure
    delays = [outcome.numbers for peer in by_hand.peers for outcome in peer.outcomes
              if outcome.name == "mid 0 audio mean delay in the jitter buffer ms"]
    assert mine["audio_delay_ms"][1] == pytest.approx(
        sum(pair[1] for pair in delays if pair) / len(delays))


def test_the_table_has_changes_and_their_confidence(corpus: Path) -> None:
    found = fleet("whatif", corpus, "--jitter-buffer", "300", "--grep",
                  "label LIKE 'call%'")
    assert found["takes"] == 8
    lines = {line["measure"]: line for line in found["lines"]}
    delay = lines["audio_delay_ms"]
    assert delay["difference"] > 100 and delay["low"] > 0 and delay["worse"] == 8
    assert delay["low"] <= delay["difference"] <= delay["high"]
    assert delay["changed"] - delay["recorded"] == pytest.approx(delay["difference"])
    text = fleet_text(
        "whatif", corpus, "--jitter-buffer", "300", "--grep", "loss > 3 and not relay").stdout
    assert "95 % bootstrap interval" in text and "Open loop" in text


def test_omitted_takes_are_counted(corpus: Path) -> None:
    found = fleet("whatif", corpus, "--jitter-buffer", "200", "--grep",
                  "label NOT LIKE 'call%'")
    assert found["takes"] == 3
    # In a take of a room, only the peer runs again; the room's machine is left out.
    assert found["left_out"] == {"only endpoints are run, but not the take's room": 1}
    assert {line["takes"] for line in found["lines"]} <= {1, 2, 3}
    other = fleet("whatif", corpus, "--set", "videoBitrateMaximum=100000", "--grep",
                  "label NOT LIKE 'call%'")
    assert other["left_out"]["only endpoints are run, and the take is only of: observer"] == 1


def test_what_observed_ends_received_takes_part(corpus: Path) -> None:
    condition = "take LIKE '%observed%'"
    found = fleet("whatif", corpus, "--jitter-buffer", "500", "--grep", condition)
    assert (found["takes"], found["failed"], found["left_out"]) == (1, 0, {})
    lines = {line["measure"]: line for line in found["lines"]}
    # What observed ends sent is fixed by the capture, so it is not a measure.
    assert "sent_kbit_s" not in lines
    delay = lines["audio_delay_ms"]
    assert delay["changed"] > delay["recorded"] + 200 and delay["worse"] == 1
    path = str(corpus / "observed-aiortc.take")
    peers = retake.whatif(path, jitter_buffer=500).peers
    delays = [outcome.numbers for peer in peers for outcome in peer.outcomes
              if outcome.name.endswith("audio mean delay in the jitter buffer ms")]
    assert delay["changed"] == pytest.approx(
        sum(pair[1] for pair in delays if pair) / len(delays))


def test_what_the_remote_peer_would_answer_is_left_out(corpus: Path) -> None:
    found = fleet("whatif", corpus, "--set", "videoBitrateMaximum=100000,200000",
                  "--jitter-buffer", "300", "--grep", "label LIKE 'call%'")
    measures: dict[str, set[str]] = {}
    for line in found["lines"]:
        measures.setdefault(line["setting"], set()).add(line["measure"])
    # A sender's setting changes what the remote peer receives, and so what it requests.
    assert measures["videoBitrateMaximum=100000"] == {"sent_kbit_s"}
    assert measures["jitter buffer 300 ms"] >= {"freezes", "concealed_ms", "sent_kbit_s"}
    left = {reason: count for reason, count in found["left_out"].items()
            if "videoBitrateMaximum=100000" in reason}
    assert len(left) >= 5 and set(left.values()) == {8}
    assert any(reason.startswith("concealed_ms under ") for reason in left)
    text = fleet_text("whatif", corpus / "call-3.take", "--set", "videoBitrateMaximum=100000")
    assert "remote peer would then have sent" in text.stdout
    assert "frozen_ms" not in text.stdout.partition("Left out")[0]


def test_settings_of_receivers_answer_what_is_received() -> None:
    settings = whatif.settings_of(
        jitter_buffer=["60"], assignments=["jitterBufferMinimum=60", "audioBitrate=20000"],
        selectors=[("drop", "packet rtp")])
    frozen, sent = (next(one for one in whatif.MEASURES if one.name == name)
                    for name in ("frozen_ms", "sent_kbit_s"))
    assert [setting.answers(frozen) for setting in settings] == [True, True, False, True]
    assert all(setting.answers(sent) for setting in settings)


def test_the_text_has_distributions(corpus: Path) -> None:
    words = ("whatif", corpus, "--jitter-buffer", "300", "--grep", "label LIKE 'call%'")
    lines = {line["measure"]: line for line in fleet(*words)["lines"]}
    spread = lines["audio_delay_ms"]["changed_spread"]
    assert spread["low"] <= spread["median"] <= spread["high"]
    text = fleet_text(*words).stdout
    assert "difference 90 %" in text and cli._cell(spread["median"]) in text
    assert bootstrap.spread([float(n) for n in range(11)]) == bootstrap.Spread(1, 5, 9)


def test_conditions_name_tags_and_count_unreadable_takes(corpus: Path, tmp_path: Path) -> None:
    words = ("--jitter-buffer", "100", "--grep", "tag_site = 'lima'")
    assert fleet("whatif", corpus, *words)["takes"] == 2
    for path in corpus.glob("call-*.take"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "gone.take").symlink_to("/nonexistent")
    found = fleet("whatif", tmp_path, *words, status=1)
    assert (found["takes"], found["failed"]) == (2, 1)


def test_a_build_is_compared_with_another_one(corpus: Path) -> None:
    found = fleet("whatif", corpus, "--build", RETAKE, "--build", RETAKE,
                  "--grep", "label IN ('call 1', 'call 2')")
    assert found["takes"] == 2 and not found["gains"] and not found["losses"]
    assert all(line["difference"] == 0 for line in found["lines"])
    assert found["lines"]


@pytest.mark.parametrize("words, part", [
    ((), "no setting"), (("--build", RETAKE), "two builds"),
    (("--set", "videoBitrateMaximum"), "NAME=VALUE"),
    (("--jitter-buffer", "60", "--grep", "nonsense >"), "--grep"),
    (("--jitter-buffer", "60", "--grep", "duration_ns < 0"), "none of 11 takes"),
    (("--jitter-buffer", "60", "--shard", "4/3"), "--shard"),
])
def test_invalid_values_are_refused(corpus: Path, words: tuple[str, ...], part: str) -> None:
    done = fleet_text("whatif", corpus, *words, status=1)
    assert part in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_intervals_have_their_coverage() -> None:
    chance = random.Random(4)
    held = 0
    for number in range(120):
        values = [chance.gauss(10, 4) for _ in range(40)]
        interval = bootstrap.Bootstrap(number, 400).mean(values)
        held += interval.low <= 10 <= interval.high
        again = bootstrap.Bootstrap(number, 400).mean(values)
        assert interval == again
    assert 105 <= held <= 120
    assert bootstrap.spread([3, 1, 2, 10]).median == 2.5
    assert bootstrap.Bootstrap(1).mean([5.0]) == bootstrap.Interval(5, 5, 5)


def test_conditions_apply_to_single_takes() -> None:
    rows = [{"take": "a", "relay": 1, "round_trip_ms": 10.0, "jitter_ms": 0.0, "loss_share": 0.02,
             "concealed_share": None, "frozen_ns": 0},
            {"take": "b", "relay": 0, "round_trip_ms": 250.0, "jitter_ms": 0.0, "loss_share": 0.5,
             "concealed_share": None, "frozen_ns": 0}]
    assert cli.select(rows, "relay or round_trip > 200") == {"a", "b"}
    assert cli.select(rows, "loss > 10") == {"b"}
    with pytest.raises(FleetError):
        cli.select(rows, "1); DELETE FROM rows; --")


def test_takes_that_failed_do_not_move_the_rest() -> None:
    setting = whatif.Setting("s", ())
    runs = [whatif.TakeRun(f"{n}", {"s": {"freezes": (n, n - 1.0)}}) for n in range(1, 6)]
    runs.append(whatif.TakeRun("broken", failure="it cannot be read"))
    found = whatif.report(reversed(runs), [setting], 1)
    assert found.takes == 5 and found.failures == [("broken", "it cannot be read")]
    line = found.lines[0]
    assert (line.takes, line.difference.mean, line.better, line.worse) == (5, -1, 5, 0)
    assert found == whatif.report(runs, [setting], 1)
