"""Has other programs judge media files exported from takes of all kinds of calls.

FFmpeg has to read and decode each file without an error. Chromium plays all files in formats that
browsers know, at the same time: to the end, every frame, and from a place in the middle.
"""

import asyncio
import json
import shutil
import subprocess

from peers.viewer import ChromiumViewer
from visit import CAPTURES

# Calls recorded at one end, observed, relayed, in rooms, under loss, and with each codec.
_CALLS = (
    "chromium-peer-offers", "chromium-peer-offers-vp9", "chromium-retake-offers-h264",
    "firefox-peer-offers", "gstreamer-peer-offers-h264", "janus-audiobridge-peer-offers",
    "janus-room", "libwebrtc-peer-offers", "live-loopback", "observed-clear-h264",
    "observed-firefox", "observed-late", "relayed-chromium", "relayed-janus",
    "virtual-heavy-loss",
)
_FORMATS = ("webm", "ogg", "ivf", "mp4", "wav", "y4m")
_PLAYED = {"webm", "ogg", "mp4"}
_SECONDS = 120

# Plays all files at once: jumps to the middle of each, then plays it from its beginning to its end.
_WATCHED = """(files => Promise.all(files.map(async ({ path, isVideo }) => {
  const media = document.createElement(isVideo ? "video" : "audio");
  document.body.append(media);
  const event = (name) => new Promise((done, fail) => {
    media.addEventListener(name, done, { once: true });
    media.addEventListener("error", () => fail(new Error(media.error?.message || name)),
      { once: true });
  });
  try {
    const ready = event("loadeddata");
    media.muted = true;
    media.src = path;
    await ready;
    const { duration } = media;
    let arrival = event("seeked");
    media.currentTime = duration / 2;
    await arrival;
    const middle = media.currentTime;
    arrival = event("seeked");
    media.currentTime = 0;
    await arrival;
    const before = media.getVideoPlaybackQuality?.().totalVideoFrames ?? 0;
    const end = event("ended");
    await media.play();
    await end;
    const frames = (media.getVideoPlaybackQuality?.().totalVideoFrames ?? 0) - before;
    return { duration, middle, end: media.currentTime, width: media.videoWidth ?? 0, frames };
  } catch (error) {
    return { error: String(error) };
  }
})))(%s)"""


async def run(program, folder):
    """Exports and judges; returns the problems and a summary."""
    if shutil.which("ffprobe") is None:
        return ["ffprobe is not installed"], ""
    folder.mkdir(parents=True)
    problems = []
    # Two at a time, for two processors.
    gate = asyncio.Semaphore(2)

    async def export(call):
        async with gate:
            return await _export(program, folder, call, problems)

    async def judge(file):
        async with gate:
            await _judge(folder, file, problems)

    files = sum(await asyncio.gather(*[export(call) for call in _CALLS]), [])
    await asyncio.gather(*[judge(file) for file in files])
    played = [file for file in files if file["kind"] in _PLAYED]
    await _play(folder, played, problems)
    kinds = {file["kind"] for file in files}
    for kind in _FORMATS:
        if kind not in kinds:
            problems.append(f"there is no file of {kind}")
    return problems, f"FFmpeg decoded {len(files)} files, Chromium played {len(played)}"


async def _run(*words):
    process = await asyncio.to_thread(
        subprocess.run, words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=_SECONDS)
    return process.returncode, process.stdout, process.stderr.strip()


async def _export(program, folder, call, problems):
    """Exports a call in every format; those for which it has no media are refused with a reason."""
    files = []
    for name in _FORMATS:
        into = f"{call}-{name}"
        status, output, errors = await _run(
            program, "export", CAPTURES / f"{call}.take", "--format", name, "--out", folder / into,
            "--json")
        if status != 0:
            if "is not written: " not in output + errors:
                problems.append(f"{into}: {errors or output}")
            continue
        for file in json.loads(output)["files"]:
            if file["kind"] != "tracks":
                file["path"] = f"{into}/{file['file'].rsplit('/', 1)[-1]}"
                file["kind"] = file["path"].rsplit(".", 1)[-1]
                files.append(file)
    return files


async def _judge(folder, file, problems):
    """Reads a file and decodes it whole with FFmpeg."""
    path = folder / file["path"]
    _, output, errors = await _run(
        "ffprobe", "-v", "error", "-count_frames", "-show_streams", "-show_format",
        "-show_entries", "packet=pts_time,flags", "-of", "json", path)
    found = json.loads(output or "{}")
    if errors:
        problems.append(f"{file['path']}: {errors.splitlines()[0]}")
    packets = found.get("packets", [])
    # H.264 without a decoder becomes a bare stream, which has no times.
    if file["kind"] == "h264" and packets:
        return
    times = [float(each["pts_time"]) for each in packets if "pts_time" in each]
    if not times or any(late <= early for early, late in zip(times, times[1:])):
        problems.append(f"{file['path']}: {len(times)} packets, whose times do not always grow")
        return
    if abs(times[0]) > 0.05:
        problems.append(f"{file['path']} begins at {times[0]} s")
    if "K" not in packets[0]["flags"]:
        problems.append(f"{file['path']} does not begin with a key frame")
    stream = found["streams"][0]
    frames = int(stream.get("nb_read_frames", 0))
    if file["kind"] in ("webm", "ivf", "mp4") and stream["codec_type"] == "video":
        if frames != file["frames"]:
            problems.append(f"{file['path']}: {frames} frames decoded of {file['frames']}")
    elif frames == 0:
        problems.append(f"{file['path']}: nothing decoded")
    duration = float(found["format"].get("duration", 0))
    file["duration"] = duration
    if "to_ns" in file:
        seconds = (file["to_ns"] - file["from_ns"]) / 1e9
        if abs(duration - seconds) > 0.35:
            problems.append(f"{file['path']} lasts {duration} s, its track {seconds} s")


async def _play(folder, files, problems):
    """Plays files in Chromium, all at once."""
    viewer = await ChromiumViewer.start(folder)
    try:
        # A file may only be loaded by a page in its own folder.
        page = folder / "page.html"
        page.write_text("<!doctype html><title>media</title><body></body>")
        await viewer.page.load(page.as_uri())
        asked = [{"path": file["path"], "isVideo": file["codec"] != "opus"} for file in files]
        async with asyncio.timeout(_SECONDS):
            seen = await viewer.page.evaluate(_WATCHED % json.dumps(asked))
    finally:
        await viewer.close()
    for file, found in zip(files, seen):
        if "error" in found:
            problems.append(f"{file['path']} in Chromium: {found['error']}")
            continue
        duration = file.get("duration", found["duration"])
        good = (
            abs(found["duration"] - duration) < 0.1
            and abs(found["middle"] - found["duration"] / 2) < 0.1
            and found["end"] > found["duration"] - 0.3
        )
        if file["codec"] != "opus":
            # A player may skip the frame that it already shows, and on a busy machine a few more.
            good = good and found["width"] > 0 and found["frames"] >= file["frames"] // 2
        if not good:
            problems.append(f"{file['path']} in Chromium: {found}, in the file {file['frames']}")
