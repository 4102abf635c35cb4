"""Confidence intervals for means over takes, by resampling.

Everything here is a function of its arguments, to the last bit: draws come from a seed, and sums
do not depend on the order of their terms.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.low > 0 or self.high < 0


class Bootstrap:
    """Draws takes with replacement: the same draws for all measures with equally many values."""

    def __init__(self, seed: int, resamples: int = RESAMPLES) -> None:
        self._seed = seed
        self._resamples = resamples

    def mean(self, values: Sequence[float]) -> Interval:
        """Returns the mean of values, one per take, with its percentile interval."""
        count = len(values)
        if count == 0:
            return Interval(math.nan, math.nan, math.nan)
        mean = math.fsum(values) / count
        chance = random.Random(f"{self._seed} {count}")
        means = sorted(
            math.fsum(chance.choices(values, k=count)) / count for _ in range(self._resamples))
        return Interval(mean, quantile(means, (1 - LEVEL) / 2), quantile(means, (1 + LEVEL) / 2))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Returns a quantile of sorted values, interpolated linearly between two of them."""
    if not ordered:
        return math.nan
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(frozen=True)
class Spread:
    """A distribution's deciles."""

    low: float
    """A tenth of the values is less."""
    median: float
    high: float
    """A tenth of the values is greater."""


def spread(values: Iterable[float]) -> Spread:
    """Returns the deciles of values."""
    ordered = sorted(values)
    return Spread(*(quantile(ordered, share) for share in (0.1, 0.5, 0.9)))
