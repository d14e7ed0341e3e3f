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

from pyro_ksd import PartitionedSequences, Sequences, ksd_check
from pyro_ksd.common.part_runs import TreeSum, active_client, run_and_add, run_each
from pyro_ksd.examples import random_walk
from pyro_ksd.models import SequenceModel

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
