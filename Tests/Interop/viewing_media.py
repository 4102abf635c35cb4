"""Tests media in the page of a take: playback in step with the clock, pictures on lanes, and
print."""

from visit import CAPTURES

# A call for every codec that browsers play, sent by browsers and other stacks.
_CALLS = {
    "firefox-peer-offers": "VP8", "chromium-peer-offers-vp9": "VP9",
    "chromium-retake-offers-h264": "H.264",
}
_IN_STEP_SECONDS = 0.3

# Plays from a point where all media have started; starts again if the take has ended meanwhile.
_PLAYING = """(() => {
  const play = document.getElementById("play");
  const all = retake.mediaTimes();
  if (all.length < 4 || !all.every((each) => each.isReady)) return false;
  const begin = Math.max(...all.map((each) => each.begin));
  if (play.textContent.includes("play")) {
    retake.visit(begin);
    play.click();
    return false;
  }
  const now = retake.clock.cursor;
  return now > begin + 0.3 && all.every((each) =>
    each.isPlaying && Math.abs(each.time - now) < %s && (each.kind === "audio" || each.width > 0));
})()""" % _IN_STEP_SECONDS

# Compares some pictures of each video with another player's frame at the same time, or with the
# frame before or after it.
_PICTURES = """(async () => {
  const found = { count: 0, late: [], other: [], moving: 0 };
  const pixels = (source, { width, height }) => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.drawImage(source, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  };
  const difference = (a, b) => {
    let sum = 0;
    for (let index = 1; index < a.length; index += 4) sum += Math.abs(a[index] - b[index]);
    return sum / (a.length / 4);
  };
  for (const { key, begin, end, kind } of retake.mediaTimes()) {
    if (kind !== "video") continue;
    const video = document.querySelector(`[data-way="${key}"]`);
    const seek = (time) => new Promise((done) => {
      video.addEventListener("seeked", done, { once: true });
      video.currentTime = Math.min(Math.max(time - begin, 0), video.duration - 0.001);
    });
    const { from, to } = retake.clock;
    const all = retake.seenPictures().filter((each) => each.key === key
      && each.time > Math.max(begin + 0.05, from) && each.time < Math.min(end - 0.3, to))
      .sort((a, b) => a.time - b.time);
    // A quarter of what lies between two of them, or little more than a frame.
    const most = Math.max(0.25 * 80 * (to - from) / document.getElementById("axis").clientWidth,
      0.04) + 0.04;
    for (const { time, shown } of all) {
      if (shown - time > most || time - shown > 0.03) found.late.push([key, time, shown]);
    }
    const step = Math.max(Math.floor(all.length / 2), 1);
    for (let index = 0; index < all.length; index += step) {
      const { canvas, time, shown } = all[index];
      const picture = pixels(canvas, canvas);
      const at = async (other) => {
        await seek(other);
        return difference(picture, pixels(video, canvas));
      };
      const near = [];
      for (const other of [time, shown, time - 0.03, (time + shown) / 2, shown + 0.03]) {
        near.push(await at(other));
        if (near.at(-1) < 6) break;
      }
      const least = Math.min(...near);
      found.count += 1;
      if (least > 6) found.other.push([key, time, shown, least]);
      // Where the video stands still, any picture would do.
      if (!index && Math.max(await at(time - 0.5), await at(time + 0.5)) > 6) found.moving += 1;
    }
  }
  return found;
})()"""

_BEFORE_PAPER = """void window.addEventListener("beforeprint", () => {
  const isBlank = ({ canvas }) => !canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data
    .some((value, index) => index % 4 === 3 && value > 0);
  const colour = getComputedStyle(document.body).color.match(/\\d+/g).map(Number);
  window.onPaper = {
    lanes: retake.board.lanes.length, isLight: Math.max(...colour.slice(0, 3)) < 100,
    // Pictures come in their own time.
    blank: retake.board.lanes.filter((each) => each.label !== "seen").filter(isBlank)
      .map(({ id }) => id),
    width: document.body.clientWidth,
  };
})"""


async def playing(visit):
    """Checks that audio and video of every codec play in step with the cursor, and stop with it."""
    for call, codec in _CALLS.items():
        await visit.page(CAPTURES / f"{call}.take")
        # Click like a user: without a click, browsers play no audio.
        left, top, width, height = await visit.box("#play")
        await visit.viewer.click(left + width / 2, top + height / 2)
        await visit.until(_PLAYING, f"{codec} does not play in step with the cursor")
        await visit.ask(
            "void (document.getElementById('play').textContent.includes('pause')"
            " && document.getElementById('play').click())"
        )
        await visit.until(
            "retake.mediaTimes().every(each => !each.isPlaying)", f"{codec} does not stop"
        )


async def pictures(visit):
    """Checks that a lane's pictures are those at their time, zoomed in and out."""
    await visit.page(CAPTURES / "chromium-negotiates.take")
    await visit.ask(
        "void document.querySelectorAll('.screen .load').forEach(each => each.click())"
    )
    for view in ("0, retake.take.seconds", "2, 2.6"):
        await visit.ask(f"void retake.show({view})")
        await visit.until(
            "(() => { const lanes = retake.board.lanes.filter(each => each.label === 'seen');"
            " lanes[0].canvas.scrollIntoView({block: 'center'}); retake.redraw();"
            " return retake.mediaTimes().filter(each => each.kind === 'video')"
            ".every(each => each.isReady) && !retake.isFilming()"
            " && retake.seenPictures().length > 8; })()",
            "pictures are never all there",
        )
        found = await visit.ask(_PICTURES)
        visit.expect(found["count"] >= 4, f"only {found['count']} pictures")
        visit.expect(not found["late"], f"pictures are of another time: {found['late']}")
        visit.expect(not found["other"], f"pictures are of another frame: {found['other']}")
        visit.expect(found["moving"] > 0, "too few moving pictures to tell")


async def printing(visit):
    """Checks that the printed page is light and has every lane whole, and is restored
    afterwards."""
    path = await visit.page(CAPTURES / "virtual-heavy-loss.take")
    await visit.viewer.open(f"{path.as_uri()}#scheme=dark")
    lanes = "[retake.board.lanes.length, document.getElementById('axis').clientWidth]"
    before = await visit.ask(lanes)
    await visit.ask(_BEFORE_PAPER)
    paper = visit.folder / "paper.pdf"
    await visit.viewer.paper(paper)
    visit.expect(paper.read_bytes().startswith(b"%PDF-"), "the printed file is not a PDF")
    await visit.until("window.onPaper !== undefined", "the page is not informed of printing")
    printed = await visit.ask("window.onPaper ?? {}")
    if printed:
        visit.expect(printed["isLight"], "dark colours are printed")
        visit.expect(printed["lanes"] > 60, f"{printed['lanes']} lanes are printed")
        visit.expect(not printed["blank"], f"nothing is printed of {printed['blank']}")
        visit.expect(printed["width"] < 720, f"{printed['width']} pixels do not fit on paper")
    await visit.until(
        f"JSON.stringify({lanes}) === '{str(before).replace(' ', '')}'"
        " && document.documentElement.style.colorScheme === 'dark'",
        "the page has changed after it was printed",
    )
