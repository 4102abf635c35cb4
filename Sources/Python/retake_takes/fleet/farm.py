"""Works on thousands of takes in batches, on this machine's cores or on several machines with Ray.

A batch is a task of a few seconds. A task that is lost because a process or a machine died is run
again, and only the one result that arrives counts.
"""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .storage import FleetError, Source

Result = TypeVar("Result")
Work = Callable[[Sequence[Source]], Result]

_TRIES = 5
_LARGEST_BATCH = 500
_LAST_SHARE = 10
"""How many times shorter than wanted the last batches may be."""


@dataclass
class Batch:
    """Takes that one task works on."""

    number: int
    sources: list[Source]
    tries: int = 0
    began: float = 0


@dataclass
class Done(Generic[Result]):
    """A finished batch: its result, or the reason that there is none after several tries."""

    sources: list[Source]
    result: Result | None
    reason: str = ""


@dataclass
class Queue:
    """Splits takes into batches of about the wanted duration, according to measured speed."""

    sources: Sequence[Source]
    seconds: float
    workers: int
    place: int = 0
    number: int = 0
    rate: float = 0
    again: deque[Batch] = field(default_factory=deque)

    def next(self) -> Batch | None:
        """Returns the next batch; None if nothing is left."""
        if self.again:
            return self.again.popleft()
        left = len(self.sources) - self.place
        if left <= 0:
            return None
        size = max(1, min(_LARGEST_BATCH, int(self.rate * self.seconds))) if self.rate else 4
        # Share the last takes among the workers, so that none waits for one long batch; much
        # smaller ones would only start the executable more often.
        smallest = max(1, int(self.rate * self.seconds / _LAST_SHARE))
        size = min(size, max(smallest, -(-left // (2 * self.workers))))
        batch = Batch(self.number, list(self.sources[self.place:self.place + size]))
        self.place += size
        self.number += 1
        return batch

    def measure(self, batch: Batch, seconds: float) -> None:
        """Records how many takes a worker finishes per second."""
        rate = len(batch.sources) / max(seconds, 0.001)
        self.rate = rate if not self.rate else 0.5 * self.rate + 0.5 * rate

    def fail(self, batch: Batch) -> bool:
        """Puts a batch back; returns False if it was tried often enough."""
        batch.tries += 1
        if batch.tries >= _TRIES:
            return False
        self.again.append(batch)
        return True


def timed(work: Work[Result], sources: Sequence[Source]) -> tuple[float, Result]:
    """Runs a batch, and returns how long it took on its worker along with the result."""
    began = time.monotonic()
    result = work(sources)
    return time.monotonic() - began, result


class LocalFarm:
    """Processes on this machine."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or os.cpu_count() or 1
        self.name = f"{self.jobs} {'process' if self.jobs == 1 else 'processes'}"

    def run(
        self, sources: Sequence[Source], work: Work[Result], seconds: float
    ) -> Iterator[Done[Result]]:
        """Runs all batches and yields results as they are ready."""
        queue = Queue(sources, seconds, self.jobs)
        pool = ProcessPoolExecutor(self.jobs)
        running: dict[Future[tuple[float, Result]], Batch] = {}
        try:
            while True:
                while len(running) < self.jobs and (batch := queue.next()):
                    running[pool.submit(timed, work, batch.sources)] = batch
                if not running:
                    return
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                is_broken = False
                for future in ready:
                    batch = running.pop(future)
                    try:
                        spent, result = future.result()
                    except BrokenProcessPool:
                        is_broken = True
                        if not queue.fail(batch):
                            yield Done(batch.sources, None, "its process died several times")
                        continue
                    queue.measure(batch, spent)
                    yield Done(batch.sources, result)
                if is_broken:
                    # Everything that was running in the pool is lost with it.
                    for batch in running.values():
                        queue.again.append(batch)
                    running.clear()
                    pool.shutdown(wait=False, cancel_futures=True)
                    pool = ProcessPoolExecutor(self.jobs)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class RayFarm:
    """Tasks on a Ray cluster; without an address, on a cluster started here."""

    def __init__(self, address: str | None = None, jobs: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise FleetError("a farm needs Ray: pip install 'retake-takes[ray]'") from None
        self._ray: Any = ray
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if address:
            settings["address"] = address
        else:
            # By default Ray lets its workers wait for every other program (nice 15).
            os.environ.setdefault("RAY_worker_niceness", "0")
            if jobs:
                settings["num_cpus"] = jobs
        # Ray prints messages about itself at any time; they must not mix with results.
        self._output, sys.stdout = sys.stdout, sys.stderr
        try:
            context = ray.init(**settings)
        except ConnectionError as error:
            sys.stdout = self._output
            raise FleetError(
                f"--ray {address}: no cluster answers there ({str(error).splitlines()[0]}); "
                "ray start --head starts one") from None
        page = getattr(context, "dashboard_url", "") or ""
        self.name = f"Ray on {self.workers} cores" + (f", http://{page}" if page else "")

    @property
    def workers(self) -> int:
        """How many cores the cluster currently has."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(
        self, sources: Sequence[Source], work: Work[Result], seconds: float
    ) -> Iterator[Done[Result]]:
        """Runs all batches and yields results as they are ready."""
        ray = self._ray
        queue = Queue(sources, seconds, self.workers)
        task = ray.remote(num_cpus=1, max_retries=_TRIES)(timed)
        shared = ray.put(work)
        running: dict[Any, Batch] = {}
        try:
            while True:
                queue.workers = self.workers
                # Two tasks per core, so that none waits for its next.
                while len(running) < 2 * queue.workers and (batch := queue.next()):
                    running[task.options(name=f"batch {batch.number}").remote(
                        shared, batch.sources)] = batch
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1, timeout=1)
                for reference in ready:
                    batch = running.pop(reference)
                    try:
                        spent, result = ray.get(reference)
                    except (
                        ray.exceptions.WorkerCrashedError, ray.exceptions.ObjectLostError,
                        ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError,
                    ) as error:
                        if not queue.fail(batch):
                            reason = str(error).splitlines()[0]
                            yield Done(batch.sources, None, f"its task died: {reason}")
                        continue
                    queue.measure(batch, spent)
                    yield Done(batch.sources, result)
        finally:
            ray.shutdown()
            sys.stdout = self._output


Farm = LocalFarm | RayFarm


def make_farm(ray: str | None, jobs: int | None) -> Farm:
    """Creates the requested farm: `ray` is `local`, `auto`, an address, or None for processes."""
    if ray is None:
        return LocalFarm(jobs)
    return RayFarm(None if ray == "local" else ray, jobs)
