"""Tests media files exported from takes: a browser plays them and seeks in them."""

import asyncio
import json
import shutil

from visit import CAPTURES

# One capture per codec, with the container formats for it.
_EXPORTS = {
    "chromium-peer-offers": ("webm", "ogg"),
    "chromium-peer-offers-vp9": ("webm",),
    "chromium-retake-offers-h264": ("mp4",),
}

# Plays a file briefly, seeks to its middle, and plays it to its end.
_WATCHED = """(async () => {
  const media = document.createElement(%s);
  document.body.replaceChildren(media);
  const event = (name) => new Promise((done, fail) => {
    media.addEventListener(name, done, { once: true });
    media.addEventListener("error", () => fail(new Error(media.error?.message || name)),
      { once: true });
  });
  const ready = event("loadedmetadata");
  media.muted = true;
  media.src = %s;
  await ready;
  const { duration } = media;
  const middle = event("seeked");
  media.currentTime = duration / 2;
  await middle;
  const at = media.currentTime;
  const end = event("ended");
  await media.play();
  await end;
  const seen = media.getVideoPlaybackQuality?.().totalVideoFrames ?? 0;
  return { duration, at, end: media.currentTime, width: media.videoWidth ?? 0, seen };
})()"""


async def exports(visit):
    """Checks that files exported without decoding last as long as their track, seek, and play to
    the end."""
    for call, formats in _EXPORTS.items():
        for name in formats:
            if name == "mp4" and shutil.which("ffmpeg") is None:
                continue
            await _watch(visit, call, name)


async def _watch(visit, call, name):
    folder = visit.folder / f"{call}-{name}"
    process = await asyncio.create_subprocess_exec(
        visit.program, "export", CAPTURES / f"{call}.take", "--format", name, "--out", folder,
        "--json", "--force", stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    visit.expect(process.returncode == 0, f"{call}: --format {name} ends with {process.returncode}")
    files = [each for each in json.loads(output or b'{"files": []}')["files"]
             if each["kind"] == name]
    visit.expect(files, f"{call}: there is no file of {name}")
    # A file may only be loaded by a page in its own folder.
    page = folder / "page.html"
    page.write_text("<!doctype html><title>media</title><body></body>")
    await visit.viewer.page.load(page.as_uri())
    for each in files:
        kind = "audio" if each["codec"] == "opus" else "video"
        path = each["file"].rsplit("/", 1)[-1]
        found = await visit.ask(_WATCHED % (json.dumps(kind), json.dumps(path)))
        wanted = (each["to_ns"] - each["from_ns"]) / 1e9
        visit.expect(
            abs(found["duration"] - wanted) < 0.35,
            f"{path} lasts {found['duration']} s, its track {wanted} s")
        visit.expect(
            abs(found["at"] - found["duration"] / 2) < 0.1, f"{path}: the middle is {found['at']}")
        visit.expect(
            found["end"] > found["duration"] - 0.3, f"{path} ends at {found['end']} s")
        if kind == "video":
            visit.expect(found["width"] > 0 and found["seen"] > 5, f"{path} shows {found}")
