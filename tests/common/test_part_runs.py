# SPDX-License-Identifier: Apache-2.0
"""Tasks on parts: the order of additions is the same wherever they run."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from pyro_ksd.common import part_runs
from pyro_ksd.common.part_runs import TreeSum, active_client, run_and_add, run_each


class Words(str):
    """Words whose sum shows how they were added."""

    def __add__(self, other: str) -> Words:
        return Words(f"({self!s}+{other!s})")


TREES = {
    1: "0",
    2: "(0+1)",
    3: "((0+1)+2)",
    5: "(((0+1)+(2+3))+4)",
    7: "(((0+1)+(2+3))+((4+5)+6))",
    8: "(((0+1)+(2+3))+((4+5)+(6+7)))",
}


def word(number: int) -> Words:
    return Words(number)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("size", TREES)
@pytest.mark.parametrize("most", [1, 2, 64])
def test_the_tree_depends_on_the_number_of_parts_alone(
    size: int, most: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_runs, "_GROUPS", most)
    tree = TreeSum()
    done = list(run_and_add(word, range(size), tree, name="words", in_threads=threads > 1))
    assert tree.value() == TREES[size]
    assert sum(done) == tree.count == size
    if most == 1:
        assert len(done) == bin(size).count("1")


@pytest.mark.parametrize("done", range(8))
@pytest.mark.parametrize("most", [1, 64])
def test_a_sum_goes_on_where_it_was_stopped(done: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_runs, "_GROUPS", most)
    first = TreeSum()
    for _ in run_and_add(word, range(done), first, name="words"):
        pass
    rest = TreeSum(first.count, first.branches)
    assert sum(run_and_add(word, range(8), rest, name="words")) == 8 - done
    assert rest.value() == TREES[8]


def test_results_are_in_the_order_of_the_parts(threads: int) -> None:
    assert list(run_each(word, range(20), name="words", in_threads=True)) == [str(number) for number in range(20)]
    assert list(run_each(word, [], name="words", in_threads=True)) == []


def test_torch_has_one_thread_within(threads: int) -> None:
    assert list(run_each(num_threads, range(3), name="words", in_threads=True)) == [1, 1, 1]
    assert torch.get_num_threads() == threads


def num_threads(_: int) -> int:
    return torch.get_num_threads()


def test_threads_are_used_only_where_they_may_be(threads: int) -> None:
    here = threading.get_ident()
    idents = set(run_each(lambda _: threading.get_ident(), range(8), name="words", in_threads=True))
    assert (here in idents) == (threads == 1)
    assert set(run_each(lambda _: threading.get_ident(), range(8), name="words")) == {here}


def test_no_more_parts_than_needed_are_in_memory_at_a_time() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    started: list[int] = []
    try:
        results = run_each(started.append, range(100), name="words", in_threads=True)
        next(results)
        assert len(started) < 10
        results.close()  # type: ignore[attr-defined]  # it is a generator
        assert len(started) < 10
    finally:
        torch.set_num_threads(before)


def test_an_error_in_a_part_is_that_of_the_call(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_each(lambda number: 1 // number, [1, 0, 1], name="words", in_threads=True))


def test_there_is_no_client_unless_somebody_made_one() -> None:
    assert active_client() is None
