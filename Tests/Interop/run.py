#!/usr/bin/env python3
"""Makes calls between Retake and real WebRTC peers in every direction, and replays each recorded
call.

Needs the packages of requirements.txt, and browsers: `make interop` installs both.
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import namespace
import plan
from peers.talk import BRIEF
from processes import adopt_orphans, end_orphans

_ROOT = Path(__file__).resolve().parents[2]
# A peer's variants, such as a server's applications, follow a dash.
_PEERS = list(dict.fromkeys(name.partition("-")[0] for name in plan.ABILITIES))


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peers", type=lambda text: text.split(","), default=_PEERS, metavar="NAMES",
        help=f"comma-separated, of {','.join(_PEERS)} (default: all)",
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only calls whose name contains this",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep takes and logs there, also of good calls",
    )
    parser.add_argument(
        "--seconds", type=float, default=5, help="how long a call is held (default: 5)",
    )
    parser.add_argument(
        "--brief", action="store_true",
        help="say little over data channels, so that the takes are small",
    )
    parser.add_argument(
        "--runs", type=int, default=0, metavar="COUNT",
        help="also play calls with freezes once more, each so often (reenacted-freezes; ten take "
        "half an hour)",
    )
    parser.add_argument(
        "--retake", type=Path, default=_ROOT / ".build/release/retake", metavar="PATH",
        help="the program under test (default: the release build)",
    )
    options = parser.parse_args()
    if unknown := set(options.peers) - set(_PEERS):
        parser.error(f"no peer is called {', '.join(sorted(unknown))}")
    if not options.retake.exists():
        parser.error(f"{options.retake} is not there: build it, or name it with --retake")
    options.retake = options.retake.resolve()
    return options


async def _main(options, folder):
    # Imported here, because these modules need the virtual environment's packages.
    import calls
    import interface
    import matrix
    import negotiations
    import observed
    import observed_loss
    import observed_tshark
    import reenacted
    import relayed
    import relayed_others
    import rooms
    import sessions
    import statistics_call
    import statistics_marks
    import viewing

    outcomes = []
    problems = []
    for call in plan.CALLS:
        if call.peer.partition("-")[0] not in options.peers or options.only not in call.name:
            continue
        if call.needs_private_network and not namespace.address():
            print(f"{call.name}: skipped, it needs a private network")
            continue
        outcome = await calls.run(call, options.retake, folder / call.name, options.seconds)
        outcomes.append(outcome)
        problems += _tell(call.name, outcome.problems, outcome.summary)
    if "aiortc" in options.peers and options.only in "interface":
        found = await interface.run(options.retake, folder / "interface")
        problems += _tell("interface", found, "every wrong request was refused, calls go on")
    if "aiortc" in options.peers and options.only in "sessions":
        found = await sessions.run(options.retake, folder / "sessions")
        problems += _tell("sessions", found, "published by WHIP and played by WHEP")
    if "chromium" in options.peers and options.only in "reenacted":
        found, words = await reenacted.run(
            options.retake, folder / "reenacted", options.brief)
        problems += _tell("reenacted", found, words)
    if "chromium" in options.peers and options.only in "reenacted-freezes" and options.runs:
        import reenacted_freezes

        found, table = await reenacted_freezes.run(
            options.retake, folder / "reenacted-freezes", options.runs)
        problems += _tell("reenacted-freezes", found, "the freezes came back")
        print(table)
    for name, relay in (
        ("relayed-call", relayed.run_call), ("relayed-both", relayed.run_both),
        ("relayed-whip", relayed.run_whip),
    ):
        if options.brief and relay is relayed.run_both:
            continue
        if "chromium" in options.peers and options.only in name:
            problems += _tell(name, *await relay(options.retake, folder / name, options.seconds))
    if "firefox" in options.peers and options.only in "relayed-firefox" and not options.brief:
        if namespace.address():
            problems += _tell(
                "relayed-firefox", *await relayed.run_call(
                    options.retake, folder / "relayed-firefox", options.seconds, "firefox"))
        else:
            print("relayed-firefox: skipped, it needs a private network")
    for name, relay, peers, is_private in (
        ("relayed-data", relayed_others.run_data, {"chromium"}, False),
        ("relayed-tcp", relayed_others.run_tcp, {"chromium"}, False),
        ("relayed-turn", relayed_others.run_turn, {"chromium"}, True),
        ("relayed-browsers", relayed_others.run_browsers, {"chromium", "firefox"}, True),
        ("relayed-simulcast", relayed_others.run_simulcast, {"chromium", "janus"}, True),
    ):
        if options.brief or options.only not in name or not peers <= set(options.peers):
            continue
        if is_private and not namespace.address():
            print(f"{name}: left out, it needs a private network")
            continue
        problems += _tell(name, *await relay(options.retake, folder / name, options.seconds))
    for name, relay, peers in (
        ("relayed-chromium", relayed_others.run_small, {"chromium"}),
        ("relayed-janus", relayed_others.run_small_room, {"chromium", "janus"}),
    ):
        # These calls make captures, so a brief run includes them only with `--keep`.
        is_wanted = options.keep or not options.brief
        if is_wanted and options.only in name and peers <= set(options.peers):
            problems += _tell(name, *await relay(options.retake, folder / name))
    for name, demo in (("relayed-demo", relayed.run_demo), ("reenacted-demo", reenacted.run_demo)):
        wanted = options.only in name and not options.brief
        if not wanted or not {"chromium", "janus"} <= set(options.peers):
            continue
        import recorded_others

        if recorded_others.demos_are_there():
            problems += _tell(name, *await demo(options.retake, folder / name, options.seconds))
        else:
            print(f"{name}: skipped, it needs janus, janus-demos and a private network")
    for peer in ("chromium", "firefox"):
        name = f"negotiations-{peer}"
        if peer not in options.peers or options.only not in name:
            continue
        if peer == "firefox" and not namespace.address():
            print(f"{name}: skipped, it needs a private network")
            continue
        found = await negotiations.run(options.retake, folder / name, peer)
        problems += _tell(name, found, f"{len(negotiations.STEPS)} more exchanges by both sides")
    # A brief run skips these calls, because those with Retake as an end cover the same code.
    for cell in [] if options.brief else observed.CELLS:
        if not cell.peers <= set(options.peers) or options.only not in cell.name:
            continue
        if hindrance := observed.hindrance():
            print(f"{cell.name}: skipped, {hindrance}")
            continue
        found, table = await observed.run(
            cell, options.retake, folder / cell.name, options.seconds
        )
        problems += _tell(cell.name, found, "every packet decrypted, tshark counts the same")
        print(table)
    if options.only in "observed-tshark":
        if hindrance := observed_tshark.hindrance():
            print(f"observed-tshark: skipped, {hindrance}")
        else:
            found, table = observed_tshark.run(options.retake, folder / "observed-tshark")
            problems += _tell(
                "observed-tshark", found, "tshark counts the same in every capture that is kept")
            print(table)
    # Each of these calls lasts at least twenty seconds and is made three times, so a brief run
    # skips them.
    for cell in [] if options.brief else observed_loss.CELLS:
        if not set(cell.peers) <= set(options.peers) or options.only not in cell.name:
            continue
        if hindrance := observed.hindrance():
            print(f"{cell.name}: skipped, {hindrance}")
            continue
        found, table = await observed_loss.run(
            cell, options.retake, folder / cell.name, options.seconds
        )
        problems += _tell(cell.name, found, "receivers on lossy paths count the same")
        print(table)
    for name, (peer, _) in observed.OWN_CELLS.items():
        if peer not in options.peers or options.only not in name or observed.hindrance():
            continue
        if options.brief and peer != "aiortc":
            continue
        found, words = await observed.run_own(name, options.retake, folder / name, options.seconds)
        problems += _tell(name, found, words)
    for peer in ("chromium", "firefox"):
        name = f"statistics-{peer}"
        if peer not in options.peers or options.only not in name:
            continue
        if peer == "firefox" and not namespace.address():
            print(f"{name}: skipped, it needs a private network")
            continue
        found, tables = await statistics_call.run(
            options.retake, folder / name, options.seconds, peer
        )
        problems += _tell(name, found, "both ends count the same")
        print("\n\n".join(tables))
    if "chromium" in options.peers and options.only in "statistics-marks":
        if namespace.address():
            found, words = await statistics_marks.run(
                options.retake, folder / "statistics-marks", options.seconds)
            problems += _tell("statistics-marks", found, words)
        else:
            print("statistics-marks: skipped, it needs a private network")
    for peer in ("chromium", "firefox"):
        name = f"page-{peer}"
        if peer not in options.peers or options.only not in name:
            continue
        found = await viewing.run(options.retake, folder / name, peer)
        problems += _tell(name, found, "pages of takes, moved through, kept safe, served and live")
    problems += await _recorded_pages(options, folder)
    if "chromium" in options.peers and options.only in "files-agree":
        import files_agree

        found = await files_agree.run(
            options.retake, folder / "files-agree", 8 if options.brief else 20)
        problems += _tell("files-agree", *found)
    if "chromium" in options.peers and options.only in "files-judged":
        import files_judged

        found = await files_judged.run(options.retake, folder / "files-judged")
        problems += _tell("files-judged", *found)
    if "janus" in options.peers and options.only in "janus-room":
        found = await rooms.run_short(options.retake, folder / "janus-room")
        problems += _tell("janus-room", found, "entered, published, subscribed and left")
    if "janus" in options.peers and options.only in "rooms-layers" and not options.brief:
        found = await rooms.run_layers(options.retake, folder / "rooms-layers")
        problems += _tell("rooms-layers", found, "each layer that was asked for was shown")
    # This call lasts two minutes, so a brief run makes only the short visit.
    if "janus" in options.peers and options.only in "rooms-janus" and not options.brief:
        if namespace.address():
            found, figures = await rooms.run(options.retake, folder / "rooms-janus")
            problems += _tell("rooms-janus", found, "; ".join(figures))
        else:
            print("rooms-janus: skipped, it needs a private network")
    if outcomes:
        print()
        matrix.show(outcomes)
    return problems


async def _recorded_pages(options, folder):
    """Records pages' own calls with the script and with the extension."""
    import recorded_others
    import recorded_page

    problems = []
    if options.only in "recorded-rtcstats":
        name = "recorded-rtcstats"
        problems += _tell(
            name, *await recorded_others.run_rtcstats(options.retake, folder / name))
    for peer in ("chromium", "firefox"):
        if peer not in options.peers or peer == "firefox" and not namespace.address():
            continue
        for kind, media in (("page", False), ("frames", True)):
            name = f"recorded-{kind}-{peer}"
            if options.only not in name:
                continue
            # A minute, over which the script's cost is averaged.
            seconds = 60 if kind == "page" and not options.brief else 8
            problems += _tell(
                name,
                *await recorded_page.run_own(options.retake, folder / name, peer, seconds, media))
        for kind in ("script", "extension"):
            name = f"recorded-demo-{kind}-{peer}"
            if options.only not in name or (kind, peer) == ("extension", "firefox"):
                continue
            if "janus" not in options.peers or not recorded_others.demos_are_there():
                print(f"{name}: skipped, it needs janus, janus-demos and a private network")
                continue
            problems += _tell(
                name,
                *await recorded_others.run_demo(
                    options.retake, folder / name, peer, kind == "extension"))
    return problems


def _tell(name, problems, good):
    print(f"{name}: {'failed' if problems else good or 'ok'}", flush=True)
    for problem in problems:
        print(f"  {problem}", flush=True)
    return [f"{name}: {problem}" for problem in problems]


def main():
    """Runs what the command line selects; the exit status is 1 if a call failed."""
    options = _arguments()
    if options.brief:
        os.environ[BRIEF] = "1"
    namespace.enter()
    adopt_orphans()
    # SIGTERM is handled like an interrupt, so that no process is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = (options.keep or Path(tempfile.mkdtemp(prefix="retake-interop-"))).resolve()
    try:
        problems = asyncio.run(_main(options, folder))
    except KeyboardInterrupt:
        print(f"\ninterrupted; takes and logs are in {folder}")
        return 130
    finally:
        end_orphans()
    if problems:
        # Repeat the problems at the end, because a long log may lose its beginning.
        print("\n" + "\n".join(problems))
        print(f"\nproblems: {len(problems)}; takes and logs are in {folder}")
        return 1
    if not options.keep:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
