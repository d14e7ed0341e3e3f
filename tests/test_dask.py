# SPDX-License-Identifier: Apache-2.0
"""Checks on the workers of a Dask client: the same bits as in this process, also if a worker dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from partitioned_data import assert_identical, in_parts

pytest.importorskip("distributed")

from dask import config
from distributed import Client, LocalCluster

from pyro_ksd import MarkovSequence, PartitionedSequences, Sequences, ksd_check
from pyro_ksd.common.part_runs import TreeSum, active_client, run_and_add, run_each
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.held_out import _ReplicatedStatistics
from pyro_ksd.fit_tests.null_draws import _DrawnStatistics, _RefittedStatistics
from pyro_ksd.fit_tests.predictive import _Part
from pyro_ksd.models import SequenceModel, fit_markov

WALK = random_walk(3, hold=0.1)
VIEWS = ["content-2", "start", "length"]
OPTIONS: dict[str, Any] = {"views": VIEWS, "num_bootstrap": 49, "progress": False, "seed": 3}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two processes on this machine, with two threads each."""
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as found:
        yield found


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with config.set(scheduler=None), Client(cluster) as found:  # a client whose worker died may leave its settings
        yield found


def data() -> Sequences:
    return random_walk(3, hold=0.3).draw(240, torch.Generator().manual_seed(0)).over("abc")


def parts() -> PartitionedSequences:
    return in_parts(data(), range(30, 240, 30))


@pytest.fixture(scope="module")
def in_this_process() -> Any:
    """The check without a client."""
    return ksd_check(WALK, parts(), tolerance=0.01, **OPTIONS)


def where(_: int) -> tuple[int, int]:
    return os.getpid(), torch.get_num_threads()


def test_tasks_run_on_all_workers_of_the_active_client(client: Client) -> None:
    assert active_client() is client
    found = list(run_each(where, range(20), name="words"))
    processes = {process for process, _ in found}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert {threads for _, threads in found} == {1}


def test_without_a_client_they_run_here(cluster: LocalCluster) -> None:
    assert active_client() is None
    assert list(run_each(where, [0], name="words")) == [(os.getpid(), 1)]


class Words(str):
    def __add__(self, other: str) -> Words:
        return Words(f"({self!s}+{other!s})")


def word(number: int) -> Words:
    return Words(number)


@pytest.mark.parametrize("most", [1, 2, 64])
def test_workers_add_in_the_same_tree(client: Client, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.common.part_runs._GROUPS", most)
    tree = TreeSum()
    assert sum(run_and_add(word, range(7), tree, name="words")) == 7
    assert tree.value() == "(((0+1)+(2+3))+((4+5)+6))"


def test_the_same_bits_in_two_processes(client: Client, in_this_process: Any) -> None:
    assert_identical(ksd_check(WALK, parts(), tolerance=0.01, **OPTIONS), in_this_process)


def test_the_same_bits_in_two_threads_of_this_process(in_this_process: Any) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert_identical(ksd_check(WALK, parts(), tolerance=0.01, **OPTIONS), in_this_process)
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Deadly:
    """Reads a part; the first process that reads it dies, after the part was counted and looked at."""

    part: Sequences
    marks: Path
    deadly: bool

    def __call__(self) -> Sequences:
        reads = len(list(self.marks.iterdir()))
        if self.deadly:
            (self.marks / f"{reads}").touch()
            if reads == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.part


def test_a_worker_that_dies_is_survived_with_the_same_bits(
    cluster: LocalCluster, client: Client, in_this_process: Any, tmp_path: Path
) -> None:
    rows = data()
    readers = [Deadly(rows[begin : begin + 30].narrowed(), tmp_path, begin == 120) for begin in range(0, 240, 30)]
    before = set(client.run(os.getpid).values())
    check = ksd_check(WALK, PartitionedSequences.of(readers, "abc"), tolerance=0.01, **OPTIONS)
    assert_identical(check, in_this_process)
    assert len(list(tmp_path.iterdir())) > 4
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != before


def chain(x: Any = None, num_sequences: int | None = None) -> Any:
    """A program with a global site, for posteriors."""
    stop = pyro.sample("stop", dist.Beta(2.0, 2.0))
    walk = MarkovSequence.from_transitions(torch.full((3,), 1 / 3), torch.full((3, 3), 1 / 3), stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", walk, obs=x)


FITS: list[int] = []
"""The sizes of data for which this process has fitted the program."""


def fit(model: Any, sequences: Sequences) -> dict[str, torch.Tensor]:
    FITS.append(len(sequences))
    return {"stop": dist.Beta(2.0 + len(sequences), 2.0 + float(sequences.lengths.sum())).sample((2, 10))}


def fitted(_: Any, sequences: Sequences) -> MarkovSequence:
    return fit_markov(sequences, order=1, pseudocount=0.5)


class Planted(SequenceModel):
    """The walk, but for sequences with a word of four symbols, which are ten times as probable."""

    alphabet_size = 3

    def __init__(self, word: list[int]) -> None:
        self.word = torch.tensor(word)

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        tokens = torch.nn.functional.pad(sequences.padded(-1), (0, 4), value=-1)
        return WALK.log_joint(sequences) + 2.3 * (tokens.unfold(1, 4, 1) == self.word).all(-1).any(-1)

    @property
    def can_draw(self) -> bool:
        return True

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return WALK.draw(num_sequences, generator)


FEW = data()[:24].narrowed()
STOPS = {"stop": torch.linspace(0.15, 0.3, 20)}
MEMORY: dict[str, Any] = {"views": VIEWS, "num_bootstrap": 19, "progress": False, "seed": 3}
IN_MEMORY: dict[str, tuple[Any, dict[str, Any]]] = {
    "parametric": (WALK, {"bootstrap": "parametric"}),
    "tables": (Planted([-1] * 4), {"bootstrap": "parametric"}),
    "long-range term": (Planted([0, 1, 0, 1]), {"bootstrap": "parametric"}),
    "program": (chain, {"bootstrap": "parametric", "parameters": {"stop": torch.tensor(0.2)}}),
    "refit": (WALK, {"refit": fitted}),
    "posterior": (chain, {"posterior": STOPS}),
    "held out": (chain, {"posterior": STOPS, "held_out": True}),
    "divided": (chain, {"fit": fit, "folds": 3}),
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four null draws in a block, and a few posterior draws."""
    monkeypatch.setattr("pyro_ksd.fit_tests.null_draws.REPLICATES", 4)
    monkeypatch.setattr("pyro_ksd.fit_tests.predictive.WEIGHTED_PAIRS", 5_000)


@pytest.fixture
def computed_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that computed blocks, as far as this one knows."""
    processes: list[int] = []
    originals = {own: own.__call__ for own in (_DrawnStatistics, _RefittedStatistics, _ReplicatedStatistics)}
    for own, original in originals.items():

        def noted(task: Any, block: Any, original: Any = original) -> Any:
            processes.append(os.getpid())
            return original(task, block)

        monkeypatch.setattr(own, "__call__", noted)
    compared = _Part.compared
    monkeypatch.setattr(
        _Part, "compared", lambda part, generator: processes.append(os.getpid()) or compared(part, generator)
    )
    return processes


@pytest.mark.parametrize("kind", IN_MEMORY)
@pytest.mark.usefixtures("small_blocks")
def test_data_in_memory_are_checked_with_the_same_bits(
    kind: str, cluster: LocalCluster, client: Client, computed_here: list[int]
) -> None:
    model, options = IN_MEMORY[kind]
    FITS.clear()
    on_workers = ksd_check(model, FEW, **MEMORY | options)
    assert computed_here == FITS == []
    assert ("verified_order" in on_workers["ksd"].attrs) == (kind in ("tables", "program", "posterior"))
    client.close()
    assert_identical(on_workers, ksd_check(model, FEW, **MEMORY | options))
    assert len(computed_here) > 4


@pytest.mark.usefixtures("small_blocks")
def test_null_draws_have_the_same_bits_in_two_threads() -> None:
    model, options = IN_MEMORY["parametric"]
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(ksd_check(model, FEW, **MEMORY | options))
    finally:
        torch.set_num_threads(before)
    assert_identical(*found)


@dataclass(frozen=True)
class DeadlySampler:
    """Draws from the walk; the third draw in another process kills that process."""

    marks: Path
    here: int

    def __call__(self, num_sequences: int, generator: torch.Generator) -> Sequences:
        if os.getpid() != self.here:
            draws = len(list(self.marks.iterdir()))
            (self.marks / f"{draws} {os.getpid()}").touch()
            if draws == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return WALK.draw(num_sequences, generator)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_a_worker_that_dies_are_computed_again(client: Client, tmp_path: Path) -> None:
    options = MEMORY | {"bootstrap": "parametric", "localize": False}
    sampler = DeadlySampler(tmp_path, os.getpid())
    check = ksd_check(WALK, FEW, sampler=sampler, **options)
    assert len(list(tmp_path.iterdir())) > 5  # one of five blocks was begun twice
    client.close()
    assert_identical(check, ksd_check(WALK, FEW, sampler=sampler, **options))


@pytest.mark.usefixtures("small_blocks")
def test_finished_blocks_are_kept(client: Client, computed_here: list[int], tmp_path: Path) -> None:
    model, options = IN_MEMORY["refit"]
    check = ksd_check(model, FEW, checkpoint=tmp_path / "work", **MEMORY | options)
    client.close()
    assert_identical(check, ksd_check(model, FEW, checkpoint=tmp_path / "work", **MEMORY | options))
    assert computed_here == []


@pytest.mark.usefixtures("small_blocks")
def test_models_of_data_in_memory_that_cannot_be_sent_are_named(client: Client) -> None:
    options = MEMORY | {"bootstrap": "parametric", "sampler": lambda size, generator: WALK.draw(size, generator)}
    with pytest.raises(ValueError, match=r"^model: expected something that can be sent .* at model.*inner\['guard'\];"):
        ksd_check(Locked(), FEW, **options)
    guard = threading.Lock()

    def guarded(_: Any, sequences: Sequences) -> MarkovSequence:
        with guard:
            return fit_markov(sequences, order=1, pseudocount=0.5)

    with pytest.raises(ValueError, match=r"^refit: expected something that can be sent .*, variable guard;"):
        ksd_check(WALK, FEW, **MEMORY | {"refit": guarded})


def program(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
    """Its stop is what the parameter store of this process says, or another one by default."""
    stop = pyro.param("stop", torch.tensor(0.9), constraint=dist.constraints.unit_interval)
    with pyro.plate("sequences", len(lengths)):
        for t in pyro.markov(range(sequences.shape[1])):
            with pyro.poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3)), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=(lengths == t + 1).to(stop.dtype))


def test_programs_take_their_parameters_with_them(client: Client) -> None:
    few = in_parts(data()[:24].narrowed(), (12,))
    options = {**OPTIONS, "views": ["content-1"], "num_bootstrap": 9}
    pyro.clear_param_store()
    torch.set_default_dtype(torch.double)
    try:
        pyro.param("stop", torch.tensor(0.125), constraint=dist.constraints.unit_interval)
        on_workers = ksd_check(program, few, **options)
        client.close()
        assert_identical(on_workers, ksd_check(program, few, **options))
        pyro.clear_param_store()
        other = ksd_check(program, few, **options)
        assert (other["ksd"]["statistic"].values != on_workers["ksd"]["statistic"].values).any()
    finally:
        torch.set_default_dtype(torch.float)
        pyro.clear_param_store()


class Locked(SequenceModel):
    """A model that cannot be sent to other processes."""

    alphabet_size = 3

    def __init__(self) -> None:
        self.inner = {"guard": threading.Lock()}

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return WALK.log_joint(sequences)


def test_what_cannot_be_sent_is_named(client: Client) -> None:
    with pytest.raises(ValueError, match=r"^model: expected something that can be sent .* at model.*inner\['guard'\];"):
        ksd_check(Locked(), parts(), **OPTIONS)
    guard = threading.Lock()
    readers = PartitionedSequences.of([lambda: [["a"] * (1 + bool(guard))]], "abc")
    with pytest.raises(ValueError, match=r"^data: expected something that can be sent .*, variable guard;"):
        readers.load()


def test_errors_on_workers_are_those_of_the_call(client: Client) -> None:
    wrong = PartitionedSequences.of([["ab"], ["abd"]], "abc")
    with pytest.raises(ValueError, match=r"part 1 of the data: .*found the symbol 'd'"):
        ksd_check(WALK, wrong, **OPTIONS)


def test_dask_collections_are_read_by_workers(client: Client) -> None:
    bag = pytest.importorskip("dask.bag").from_sequence(data().to_lists(), partition_size=60)
    assert PartitionedSequences.from_dask(bag, "abc").load().tokens.equal(data().tokens)
    with pytest.raises(ValueError, match="collection: expected what is computed when it is needed, found persisted"):
        PartitionedSequences.from_dask(bag.persist(), "abc")


def test_finished_parts_are_kept(client: Client, in_this_process: Any, tmp_path: Path) -> None:
    monkey = pytest.MonkeyPatch()
    monkey.setattr("pyro_ksd.stein.part_sums.KEPT_SECONDS", 0.0)
    file = tmp_path / "work"
    assert_identical(ksd_check(WALK, parts(), tolerance=0.01, checkpoint=file, **OPTIONS), in_this_process)
    client.close()
    calls: list[int] = []
    monkey.setattr("pyro_ksd.stein.part_sums._SumPart.__call__", lambda self, part: calls.append(part.part.number))
    assert_identical(ksd_check(WALK, parts(), tolerance=0.01, checkpoint=file, **OPTIONS), in_this_process)
    assert calls == []
    monkey.undo()
