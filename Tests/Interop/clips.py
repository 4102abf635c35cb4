"""Makes an H.264 file for Retake to send: a moving gradient."""

import fractions

import av

from peers import samples

# No other source here has this size, so a peer that shows video of this size shows the file.
WIDTH, HEIGHT = samples.WIDTH, samples.HEIGHT
_FRAMES = 50
_FRAMES_PER_SECOND = 25


def write(path):
    """Writes two seconds of baseline profile, with a key frame every second."""
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height = WIDTH, HEIGHT
    encoder.pix_fmt = "yuv420p"
    encoder.framerate = fractions.Fraction(_FRAMES_PER_SECOND, 1)
    encoder.time_base = fractions.Fraction(1, _FRAMES_PER_SECOND)
    encoder.gop_size = _FRAMES_PER_SECOND
    encoder.max_b_frames = 0
    encoder.bit_rate = 300_000
    # Without these options the encoder delays frames.
    encoder.options = {"profile": "baseline", "level": "31", "tune": "zerolatency"}
    stream = bytearray()
    for number in range(_FRAMES):
        frame = av.VideoFrame(WIDTH, HEIGHT, "yuv420p")
        frame.planes[0].update(samples.luma(5 * number))
        for chroma in frame.planes[1:]:
            chroma.update(b"\x80" * chroma.buffer_size)
        frame.pts, frame.time_base = number, encoder.time_base
        for packet in encoder.encode(frame):
            stream += bytes(packet)
    for packet in encoder.encode(None):
        stream += bytes(packet)
    path.write_bytes(stream)
