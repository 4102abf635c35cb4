"""Processes thousands of takes in batches, on this machine's cores or on several machines with Ray.

A batch is a task of a few seconds. A task that is lost because a process or a machine died is run
again, and only the one result that arrives counts. A batch that fails is run again take by take, so
that a bad take does not cost the others their results.
"""

import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .. import __version__
from ..command import CommandError
from ..views import NoTake
from . import probe
from .storage import FleetError, Source, workspace

Result = TypeVar("Result")
Work = Callable[[Sequence[Source]], Result]

_TRIES = 3
"""How many times a task may lose its process before its takes are tried one by one, or fail."""
_LARGEST_BATCH = 500
_REACH_SECONDS = 10
_PROBE_SECONDS = 120
"""How long a node may take to start its first process."""
_LAST_SHARE = 10
"""The factor by which the last batches may be shorter than wanted."""


@dataclass
class Batch:
    """Takes that one task works on."""

    number: int
    sources: list[Source]
    tries: int = 0


@dataclass
class Done(Generic[Result]):
    """A finished batch: its result, or the reason for its failure after several tries."""

    sources: list[Source]
    result: Result | None
    reason: str = ""


@dataclass(frozen=True)
class Failed:
    """Returned by a task in place of its exception, which not every process could unpickle."""

    reason: str


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
        # Share the last takes among the workers, so that no worker waits for a long batch of
        # another; much smaller batches would only start the executable more often.
        smallest = max(1, int(self.rate * self.seconds / _LAST_SHARE))
        size = min(size, max(smallest, -(-left // (2 * self.workers))))
        batch = self._batch(self.sources[self.place:self.place + size])
        self.place += size
        return batch

    def _batch(self, sources: Sequence[Source]) -> Batch:
        self.number += 1
        return Batch(self.number - 1, list(sources))

    def finish(
        self, batch: Batch, outcome: tuple[float, Result | Failed]
    ) -> Done[Result] | None:
        """Returns a task's result; None if its takes are run again one by one."""
        seconds, result = outcome
        if not isinstance(result, Failed):
            rate = len(batch.sources) / max(seconds, 0.001)
            self.rate = rate if not self.rate else 0.5 * self.rate + 0.5 * rate
            return Done(batch.sources, result)
        return self._split(batch, result.reason)

    def lose(self, batch: Batch, reason: str) -> Done[Result] | None:
        """Puts a batch back whose process died; returns its failure if that happened too often."""
        batch.tries += 1
        if batch.tries >= _TRIES:
            return self._split(batch, reason)
        self.again.append(batch)
        return None

    def _split(self, batch: Batch, reason: str) -> Done[Result] | None:
        if len(batch.sources) == 1:
            return Done(batch.sources, None, reason)
        self.again.extend(self._batch([source]) for source in batch.sources)
        return None


def timed(work: Work[Result], sources: Sequence[Source]) -> tuple[float, Result | Failed]:
    """Runs a batch, and returns how long it took on its worker along with the result."""
    began = time.monotonic()
    try:
        result: Result | Failed = work(sources)
    except Exception as error:
        result = Failed(reason_of(error))
    return time.monotonic() - began, result


def reason_of(error: Exception) -> str:
    """Returns an exception's text as one line, with its type unless this package raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, CommandError | FleetError | NoTake):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _begin_worker(folder: str) -> None:
    """Ends a worker, and the executable that it runs, when its parent dies.

    Its temporary files are in the parent's folder and are removed along with it.
    """
    tempfile.tempdir = folder
    # The worker has its own process group, so Ctrl-C reaches only the parent, which then ends the
    # group.
    os.setpgid(0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os.killpg(os.getpgid(0), signal.SIGKILL)


class Worker:
    """One process, which runs one batch at a time, so that a crash affects only that batch."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # A process forked from a process with threads, such as DuckDB's, may hang.
        return ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), initializer=_begin_worker,
            initargs=(self._folder,))

    def submit(
        self, work: Work[Result], sources: Sequence[Source]
    ) -> Future[tuple[float, Result | Failed]]:
        """Starts a batch."""
        try:
            return self._pool.submit(timed, work, sources)
        except BrokenProcessPool:
            # The worker's process died between two batches.
            self.restart()
            return self._pool.submit(timed, work, sources)

    def restart(self) -> None:
        """Replaces a process that died."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._start()

    def end(self) -> None:
        """Ends the process, even in the middle of a batch."""
        for process in list((self._pool._processes or {}).values()):
            try:
                if process.pid:
                    os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                # The process group has ended, or does not exist yet.
                process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)


class LocalFarm:
    """Processes on this machine."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or os.cpu_count() or 1
        self.name = f"{self.jobs} {'process' if self.jobs == 1 else 'processes'}"

    def run(
        self, sources: Sequence[Source], work: Work[Result], seconds: float
    ) -> Iterator[Done[Result]]:
        """Runs all batches and yields results as they are ready."""
        with workspace() as folder:
            yield from self._run(folder, sources, work, seconds)

    def _run(
        self, folder: str, sources: Sequence[Source], work: Work[Result], seconds: float
    ) -> Iterator[Done[Result]]:
        queue = Queue(sources, seconds, self.jobs)
        idle = [Worker(folder) for _ in range(min(self.jobs, len(sources)))]
        running: dict[Future[tuple[float, Result | Failed]], tuple[Worker, Batch]] = {}
        try:
            while True:
                while idle and (batch := queue.next()):
                    worker = idle.pop()
                    running[worker.submit(work, batch.sources)] = worker, batch
                if not running:
                    return
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    worker, batch = running.pop(future)
                    idle.append(worker)
                    done: Done[Result] | None
                    try:
                        done = queue.finish(batch, future.result())
                    except BrokenProcessPool:
                        worker.restart()
                        done = queue.lose(batch, "its process died several times")
                    if done:
                        yield done
        finally:
            for worker in [*idle, *(worker for worker, _ in running.values())]:
                worker.end()


class RayFarm:
    """Tasks on a Ray cluster; without an address, on a cluster started here."""

    def __init__(
        self, address: str | None = None, jobs: int | None = None, programs: Sequence[str] = (),
    ) -> None:
        self._programs = list(programs)
        self._checked: set[str] = set()
        try:
            import ray
        except ImportError:
            raise FleetError("a farm needs Ray: pip install 'retake-takes[ray]'") from None
        self._ray: Any = ray
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if address:
            _reach(address)
        settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if address:
            settings["address"] = address
        else:
            # By default, Ray's workers have a low priority (nice 15).
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
                self._check_nodes()
                queue.workers = self.workers
                # Two tasks per core, so that no core waits for its next task.
                while len(running) < 2 * queue.workers and (batch := queue.next()):
                    running[task.options(name=f"batch {batch.number}").remote(
                        shared, batch.sources)] = batch
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1, timeout=1)
                for reference in ready:
                    batch = running.pop(reference)
                    done: Done[Result] | None
                    try:
                        done = queue.finish(batch, ray.get(reference))
                    except ray.exceptions.RayError as error:
                        lines = str(error).strip().splitlines() or [type(error).__name__]
                        done = queue.lose(batch, f"its task died: {lines[0]}")
                    if done:
                        yield done
        finally:
            ray.shutdown()
            sys.stdout = self._output


    def _check_nodes(self) -> None:
        """Raises if a node that was not checked yet lacks something that tasks need.

        Without that, Ray reports each task that a node cannot even read as a failure of its own.
        """
        ray = self._ray
        ray.cloudpickle.register_pickle_by_value(probe)
        running: dict[Any, str] = {}
        for node in ray.nodes():
            id = node["NodeID"]
            if not node["Alive"] or not node["Resources"].get("CPU") or id in self._checked:
                continue
            self._checked.add(id)
            place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(id, soft=False)
            task = ray.remote(num_cpus=0, scheduling_strategy=place)(probe.lack)
            running[task.remote(__version__, self._programs)] = (
                f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})")
        for reference, name in running.items():
            try:
                lack = ray.get(reference, timeout=_PROBE_SECONDS)
            except ray.exceptions.RayError:
                # The node is gone, or too busy to answer; its tasks will show which.
                continue
            if lack:
                raise FleetError(f"--ray: {probe.sentence(name, lack, __version__)}")


def _reach(address: str) -> None:
    """Raises if nothing answers at an address; Ray itself tries for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator and address in ("auto", "local"):
        return
    if not port.isdigit():
        raise FleetError(f"--ray {address}: it must be auto, or HOST:PORT of a cluster")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise FleetError(
            f"--ray {address}: no cluster answers there ({error}); ray start --head starts one"
        ) from None


Farm = LocalFarm | RayFarm


def make_farm(ray: str | None, jobs: int | None, programs: Sequence[str] = ()) -> Farm:
    """Creates the requested farm: `ray` is `local`, `auto`, an address, or None for processes.

    `programs` are the executables that tasks run, which every node must have.
    """
    if ray is None:
        return LocalFarm(jobs)
    return RayFarm(None if ray == "local" else ray, jobs, programs)
