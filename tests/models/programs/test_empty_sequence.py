# SPDX-License-Identifier: Apache-2.0
"""What programs say of the empty sequence."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro import poutine
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, chain_with_end_symbol, chain_with_stop, nested_features
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.empty_sequence import beside_another
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences


def test_no_sequences_and_empty_sequences() -> None:
    model = as_model(programs.length_first, DATA)
    assert model.log_joint(DATA[:0]).shape == (0,)
    empty = Sequences.of([[], [], []], SIZE)
    assert model.log_joint(empty).tolist() == pytest.approx([-2.0] * 3)  # Poisson(2) at 0
    check = ksd_check(programs.length_first, Sequences.of([[], [0], [1, 1]], SIZE), num_bootstrap=5, progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1


EMPTY = Sequences.of([[], [0], []], SIZE)


def test_the_empty_sequence_stands_beside_a_symbol_with_different_paddings() -> None:
    tokens, lengths = beside_another(3)
    assert tokens.tolist() == [[[0], [0]], [[1], [1]]]
    assert lengths.tolist() == [0, 1]
    assert beside_another(1)[0].tolist() == [[[0], [0]]]


def test_it_is_impossible_where_no_site_gives_it_a_probability() -> None:
    found = as_model(chain_with_stop, DATA).log_joint(EMPTY)
    assert (found == -torch.inf).tolist() == [True, False, True]


def test_it_is_possible_where_a_site_does() -> None:
    assert as_model(nested_features, DATA).log_joint(EMPTY)[[0, 2]].tolist() == [0.0, 0.0]
    found = as_model(programs.length_first, DATA).log_joint(EMPTY)
    assert found[[0, 2]].tolist() == pytest.approx([-2.0, -2.0])
    # the end symbol comes first with probability 0
    assert (as_model(chain_with_end_symbol, DATA).log_joint(EMPTY) == -torch.inf).tolist() == [True, False, True]


@pytest.mark.parametrize("masked", [True, False])
def test_sites_that_read_the_padding_or_are_masked_give_it_none(masked: bool) -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)), poutine.mask(mask=(lengths > 0) if masked else True):
            pyro.sample("first", dist.Categorical(programs.INITIAL), obs=sequences[:, 0])

    model = VectorizedProgram(program, DATA)
    assert not model.defines_empty
    assert (model.log_joint(EMPTY) == -torch.inf).tolist() == [True, False, True]


def test_a_factor_that_reads_the_padding_gives_it_none() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("first", -sequences[:, 0].double())

    assert (VectorizedProgram(program, DATA).log_joint(EMPTY) == -torch.inf).tolist() == [True, False, True]
