"""Audio and video frames for peers without a camera, and measures of what they receive."""

import array
import math

WIDTH, HEIGHT = 320, 240


def sine_table(sample_rate, frequency=440, amplitude=8000):
    """Returns one second of a tone, signed 16 bit."""
    step = 2 * math.pi * frequency / sample_rate
    return array.array("h", (int(amplitude * math.sin(step * i)) for i in range(sample_rate)))


def tone(table, first, count):
    """Returns `count` samples of a repeated table, as little-endian bytes."""
    start = first % len(table)
    samples = table[start : start + count]
    return (samples + table[: count - len(samples)]).tobytes()


_RAMP = bytes(i * 255 // WIDTH for i in range(WIDTH)) * 2


def luma(number):
    """Returns the luma plane of a moving gradient: a video frame that is neither still nor flat."""
    return _RAMP[number % WIDTH :][:WIDTH] * HEIGHT


def energy(samples, sample_rate):
    """Returns what a block of 16-bit audio adds to W3C totalAudioEnergy."""
    values = array.array("h", samples)
    square = sum(v * v for v in values) / max(len(values), 1) / (32768 * 32768)
    return square * len(values) / sample_rate


def contrast(plane):
    """Returns the standard deviation of a luma plane, from every 97th sample."""
    picked = plane[::97]
    mean = sum(picked) / len(picked)
    return math.sqrt(sum((v - mean) ** 2 for v in picked) / len(picked))
