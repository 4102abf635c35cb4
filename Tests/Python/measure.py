"""Measures a fleet: publishing, querying, the same answers from the takes one by one, replaying on
processes and on Ray, and what-if.

    make fleet TAKES=2000

Prints each figure as it is measured, with the machine's load.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Sources/Python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2] / "Sources/Python")
os.environ.update({
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32)})

import answers  # noqa: E402
from queries import FLEET_QUERIES  # noqa: E402
from retake_takes.fleet.lake import Lake, database  # noqa: E402
from retake_takes.fleet.storage import listing  # noqa: E402


def say(what: str, value: str) -> None:
    print(f"{what:44} {value:30} load {os.getloadavg()[0]:.1f}", flush=True)


def fleet(*words: object, program: str) -> tuple[dict, float, float]:
    """Returns a command's result, the elapsed seconds, and the processor seconds."""
    before = os.times()
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "retake_takes.fleet.cli", *map(str, words), "--retake", program,
         "--json"], capture_output=True, text=True)
    seconds = time.monotonic() - began
    after = os.times()
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    used = (after.children_user + after.children_system
            - before.children_user - before.children_system)
    return json.loads(done.stdout), seconds, used


def size(folder: Path, ending: str = "") -> int:
    return sum(path.stat().st_size for path in folder.rglob("*" + ending) if path.is_file())


def publishing(takes: Path, lake: Path, program: str) -> None:
    shutil.rmtree(lake, ignore_errors=True)
    result, seconds, used = fleet("publish", takes, "--to", lake, program=program)
    count = result["takes"]
    say("takes", f"{count}, {result['read_bytes'] / 1e6:.0f} MB")
    say("published", f"{result['added']} in {seconds:.0f} s")
    say("  a take", f"{1000 * used / max(count, 1):.0f} ms of processors")
    parquet = size(lake, ".parquet")
    say("  Parquet", f"{parquet / 1e6:.1f} MB, {parquet / max(count, 1) / 1e3:.1f} kB a take")
    result, seconds, _ = fleet("publish", takes, "--to", lake, program=program)
    say("published again", f"{result['added']} added in {seconds:.1f} s")


def asking(lake: Path) -> None:
    with Lake(str(lake)) as one:
        duck = one.ask()
        duck.execute("SELECT count(*) FROM take").fetchall()
        for title, query in FLEET_QUERIES.items():
            began = time.monotonic()
            cpu = time.process_time()
            rows = duck.execute(query).fetchall()
            say(f"  {title}", f"{time.monotonic() - began:.3f} s, "
                f"{time.process_time() - cpu:.3f} s CPU, {len(rows)} rows")


def comparing(takes: Path, lake: Path, program: str) -> None:
    """Compares the lake's rows and answers with those of the takes one by one."""
    began = time.monotonic()
    equal = answers.compare(
        takes, str(lake), program, FLEET_QUERIES, say=lambda text: print(f"  {text}", flush=True),
        report=say)
    say("the lake and the takes one by one",
        f"{'equal' if equal else 'DIFFERENT'}, {time.monotonic() - began:.0f} s")
    if not equal:
        sys.exit(1)


def rerunning(takes: Path, count: int, program: str) -> None:
    sources = listing([str(takes)])[:count]
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        chosen = Path(folder) / "takes"
        chosen.mkdir()
        for number, source in enumerate(sources):
            (chosen / f"{number:05d}.take").symlink_to(source.name)
        halves = [sorted(str(path) for path in chosen.iterdir())[half::2] for half in (0, 1)]
        began = time.monotonic()
        bare = [subprocess.Popen(
            [program, "verify", *half, "--jobs", "1", "--reports", f"{folder}/reports{number}"],
            stdout=subprocess.DEVNULL) for number, half in enumerate(halves)]
        for process in bare:
            process.wait()
        alone = time.monotonic() - began
        say(f"{len(sources)} verified by two processes", f"{len(sources) / alone:.1f} a second")
        start_ray(folder)
        try:
            result, _, _ = fleet(
                "verify", chosen, "--ray", "127.0.0.1:26379", program=program)
        finally:
            stop_ray(folder)
        seconds = result["elapsed_seconds"]
        say("  by Ray on two nodes", f"{len(result['results']) / seconds:.1f} a second, "
            f"{100 * alone / seconds:.0f} %")
        start_ray(folder)
        try:
            found = killing(chosen, folder, seconds / 3, program)
        finally:
            stop_ray(folder)
        names = [row["take"] for row in found["results"]]
        good = names == sorted(str(path) for path in chosen.iterdir()) and not found["not_run"]
        say("  with a node killed in the middle",
            f"{len(names)} results, {'each once' if good else 'NOT each once'}")


def killing(chosen: Path, folder: str, seconds: float, program: str) -> dict:
    """Verifies takes on Ray, and kills the second node's processes after some time."""
    raylets = [process for process in ray_processes(folder) if is_raylet(process)]
    running = subprocess.Popen(
        [sys.executable, "-m", "retake_takes.fleet.cli", "verify", str(chosen), "--ray",
         "127.0.0.1:26379", "--retake", program, "--json"],
        stdout=subprocess.PIPE, text=True)
    time.sleep(seconds)
    # The head's raylet is the older process, so the highest number is the second node's.
    os.kill(max(raylets), 9)
    output, _ = running.communicate()
    return json.loads(output)


def is_raylet(process: int) -> bool:
    return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].endswith(b"/raylet")


def start_ray(folder: str) -> None:
    # Ray raises its workers' niceness by default; the local farm's processes have none.
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    ray = str(Path(sys.executable).parent / "ray")
    for words in (
        ["--head", "--port=26379", "--num-cpus=1", "--include-dashboard=false",
         f"--temp-dir={folder}/ray"],
        ["--address=127.0.0.1:26379", "--num-cpus=1"],
    ):
        subprocess.run(
            [ray, "start", *words, "--node-ip-address=127.0.0.1",
             "--object-store-memory=100000000"], env=environment, check=True, capture_output=True)


def stop_ray(folder: str) -> None:
    for process in ray_processes(folder):
        try:
            os.kill(process, 9)
        except OSError:
            continue


def ray_processes(folder: str) -> list[int]:
    """Returns a cluster's processes: their command lines contain its folder."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if f"{folder}/ray".encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return found


def asking_what_if(takes: Path, count: int, program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = lossy(takes, program)[:count]
        for number, name in enumerate(found):
            (Path(folder) / f"{number:05d}.take").symlink_to(name)
        out = f"{folder}/runs.parquet"
        words = ("whatif", folder, "--jitter-buffer", "60,120,200,400", "--out", out)
        one, seconds, used = fleet(*words, program=program)
        say(f"what-if over {one['takes']} takes, 4 settings", f"{seconds:.0f} s")
        share = 1000 * used / max(one["takes"], 1) / 4
        say("  a take and setting", f"{share:.0f} ms of processors")
        other, _, _ = fleet(*words, program=program)
        say("  again", "the same" if one == other else "ANOTHER")
        by_hand(one["gains"][0]["take"], out, program)
        for line in one["lines"]:
            if line["measure"] in ("concealed_ms", "audio_delay_ms"):
                say(f"  {line['setting']}, {line['measure']}",
                    f"{line['difference']:+.2f} ({line['low']:+.2f} to {line['high']:+.2f})")


def by_hand(take: str, out: str, program: str) -> None:
    """Compares a take's figures among those of all takes with `retake whatif` of that take."""
    rows = database().execute(
        f"SELECT measure, recorded, changed FROM '{out}' WHERE take = ? AND setting = ?",
        (take, "jitter buffer 200 ms")).fetchall()
    known = {measure: (recorded, changed) for measure, recorded, changed in rows}
    done = subprocess.run(
        [program, "whatif", take, "--jitter-buffer", "200", "--json"], capture_output=True,
        text=True)
    outcomes = [one for peer in json.loads(done.stdout)["peers"] for one in peer["outcomes"]]
    for measure, words in (
        ("concealed_ms", "audio concealed ms"), ("packets_discarded", "packets discarded"),
        ("freezes", "video freezes"),
    ):
        mine = [(float(one["recorded"]), float(one["changed"])) for one in outcomes
                if one["outcome"].endswith(words) and "-" not in (one["recorded"], one["changed"])]
        sums = tuple(sum(pair[place] for pair in mine) for place in (0, 1)) if mine else None
        found = known.get(measure)
        same = sums == found if not (sums and found) else all(
            abs(a - b) < 1e-9 for a, b in zip(sums, found))
        say(f"  {measure} of one take by hand", f"{sums}" if same else f"{sums}, NOT {found}")


def lossy(takes: Path, program: str) -> list[str]:
    """Returns the takes with lost packets."""
    done = subprocess.run(
        [program, "sql", str(takes),
         "SELECT take FROM take WHERE packets_lost > 0 ORDER BY take", "--json"],
        capture_output=True, text=True, check=True)
    return [row["take"] for row in json.loads(done.stdout)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--takes", type=Path, required=True)
    parser.add_argument("--lake", type=Path, required=True)
    parser.add_argument("--retake", required=True)
    parser.add_argument("--verify", type=int, default=2000)
    parser.add_argument("--whatif", type=int, default=500)
    parser.add_argument("--only", default="publish,ask,equal,verify,whatif")
    options = parser.parse_args()
    program = os.path.abspath(options.retake)
    takes = options.takes.resolve()
    steps = options.only.split(",")
    if "publish" in steps:
        publishing(takes, options.lake, program)
    if "ask" in steps:
        asking(options.lake)
    if "equal" in steps:
        comparing(takes, options.lake, program)
    if "verify" in steps:
        rerunning(takes, options.verify, program)
    if "whatif" in steps:
        asking_what_if(takes, options.whatif, program)


if __name__ == "__main__":
    main()
