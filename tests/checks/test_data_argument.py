# SPDX-License-Identifier: Apache-2.0
"""The data, in the forms that users pass."""

from __future__ import annotations

from typing import Any

import pytest
from example_models import walk

from pyro_ksd import Sequences, View, ksd_check
from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.stein.operators import ZanellaOperator


def test_data_may_be_lists_whose_alphabet_is_the_models() -> None:
    lists = [[0, 1, 2], [1, 0], [2, 1, 2, 1]]
    views = [View("bigrams", ZanellaOperator(), ContiguousKernel(2))]
    a = ksd_check(walk(), lists, views=views, num_bootstrap=5, progress=False)
    b = ksd_check(walk(), Sequences.of(lists, 5), views=views, num_bootstrap=5, progress=False)
    assert float(a["ksd"]["statistic"][0]) == float(b["ksd"]["statistic"][0])
    with pytest.raises(ValueError, match=r"sequence 1, position 0: found the symbol 7, expected one of the"):
        ksd_check(walk(), [[0, 1], [7]], progress=False)


def test_integers_are_codes_of_the_models_symbols() -> None:
    found = as_sequences([[0, 1], [1]], walk())
    assert (found.alphabet, found.to_lists()) == (5, [[0, 1], [1]])
    assert as_sequences([[0, 1], [1]], None).alphabet == 2
    assert as_sequences([[0, 1], [1]], lambda x: None).alphabet == 2  # a program does not know


def test_data_may_be_iterators() -> None:
    rows = [[0, 1], [1]]
    for data in ((row for row in rows), map(iter, rows), [iter(row) for row in rows]):
        found = as_sequences(data, walk())
        assert (found.alphabet, found.to_lists()) == (5, rows)
    with pytest.raises(ValueError, match="sequence 1, position 0: found the symbol 5, expected one of the"):
        as_sequences((iter(row) for row in ([0], [5])), walk())


def test_names_and_sequences_stay_as_they_are() -> None:
    assert as_sequences(["ba", "a"], walk()).alphabet == ("a", "b")
    own = Sequences.of([[0, 1]], 7)
    assert as_sequences(own, walk()) is own
    empty = Sequences.of([[], []], 5)
    assert as_sequences(empty, walk()) is empty


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (walk(), "data: expected sequences, found MarkovSequence; the model comes first, then the data"),
        (print, "data: expected sequences, found builtin_function_or_method; the model comes first, then the data"),
        ([[], []], "data: expected symbols, found 2 empty sequences only; look at how the data were read"),
        (["", ""], "data: expected symbols, found 2 empty sequences only"),
        ([[0], [5]], "found the symbol 5, expected one of the"),
    ],
)
def test_what_cannot_be_data(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_sequences(data, walk())
