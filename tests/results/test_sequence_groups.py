# SPDX-License-Identifier: Apache-2.0
"""Data beside replicated data: the same names, each sequence in its row."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pyro_ksd.fit_tests.replicates import Replicates, counted_symbols  # noqa: E402
from pyro_ksd.results.sequence_groups import (  # noqa: E402
    log_likelihood_group,
    observed_beside,
    observed_group,
    predictive_group,
    sequences_group,
)
from pyro_ksd.sequences.container import Sequences  # noqa: E402

DATA = Sequences.of(["ab", "bbb", "", "ca"], "abc")
REPLICATED = Sequences.of(["a", "bb", "", "cab", "c", "cc", "a", "aa"], "abc")  # two chains of one draw each


def numbers(*, tokens: bool = False) -> Replicates:
    return Replicates.of(REPLICATED, 2, counted_symbols(DATA), tokens=tokens)


def test_the_data_alone() -> None:
    group = sequences_group(DATA)
    assert group["token"].values.tolist() == [[0, 1, -1], [1, 1, 1], [-1, -1, -1], [2, 0, -1]]
    assert group["length"].values.tolist() == [2, 3, 0, 2]
    assert json.loads(group["token"].attrs["alphabet"]) == ["a", "b", "c"]
    assert set(observed_group(DATA).variables) == {"length", "sequence"}


def test_data_and_replicated_data_have_the_same_variables() -> None:
    for tokens, more in ((False, set()), (True, {"token"})):
        replicates = numbers(tokens=tokens)
        made = predictive_group(replicates, DATA, np.arange(4), num_chains=2, parameters="posterior")
        own = observed_beside(replicates, DATA, np.arange(4))
        assert set(made.data_vars) == set(own.data_vars) == {"length", "distinct_symbols", "symbol_count"} | more
        for name, variable in own.data_vars.items():
            assert made[name].dims == ("chain", "draw", *variable.dims)
            assert made[name].dtype.kind == variable.dtype.kind == "i"  # ArviZ 0.23 draws no unsigned integers


def test_values_stand_where_they_belong() -> None:
    made = predictive_group(numbers(tokens=True), DATA, np.array([0, 1, 3, 4]), num_chains=2, parameters="posterior")
    assert made["length"].sel(chain=1, draw=0).values.tolist() == [1, 2, 1, 2]
    assert made["symbol_count"].sel(chain=0, draw=0, sequence=4, symbol="c") == 1
    assert made["token"].sel(chain=0, draw=0, sequence=4).values.tolist() == [2, 0, 1]
    assert made.attrs == {"parameters": "posterior", "sample_dims": ["chain", "draw"]}
    own = observed_beside(numbers(), DATA, np.arange(4))
    assert own["symbol_count"].sel(symbol="b").values.tolist() == [1, 3, 0, 0]
    assert own["distinct_symbols"].values.tolist() == [2, 1, 0, 2]


def test_counts_that_were_left_out_are_left_out_of_both() -> None:
    few = numbers()
    few = Replicates(few.length, few.distinct, few.symbols)
    made = predictive_group(few, DATA, np.arange(4), num_chains=1, parameters="given")
    assert set(made.variables) - set(made.dims) == {"length", "distinct_symbols"}
    assert set(observed_beside(few, DATA, np.arange(4)).variables) == {"length", "distinct_symbols", "sequence"}


def test_log_likelihoods_of_each_chain() -> None:
    values = torch.arange(12.0).view(4, 3)
    group = log_likelihood_group(values, np.array([0, 2, 5]), 2)
    assert group["token"].dims == ("chain", "draw", "sequence")
    assert group["token"].sel(chain=1, draw=0, sequence=5) == 8


def test_impossible_rows_are_left_out_of_the_numbers() -> None:
    own = observed_beside(numbers(tokens=True), DATA, np.array([0, 3]))
    assert own["sequence"].values.tolist() == [0, 3]
    assert own["length"].values.tolist() == [2, 2]
    assert own["token"].sel(sequence=3).values.tolist() == [2, 0]
