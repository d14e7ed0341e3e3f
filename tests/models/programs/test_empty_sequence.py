# SPDX-License-Identifier: Apache-2.0
"""What programs say of the empty sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro import poutine
from pyro_programs import CHAIN, SIZE, chain_with_end_symbol, chain_with_stop, nested_features
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.call_conventions import Rows
from pyro_ksd.models.programs.empty_sequence import beside_another
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_no_sequences_and_empty_sequences() -> None:
    model = as_model(programs.length_first, DATA)
    assert model.log_joint(DATA[:0]).shape == (0,)
    empty = Sequences.of([[], [], []], SIZE)
    assert model.log_joint(empty).tolist() == pytest.approx([-2.0] * 3)  # Poisson(2) at 0
    check = ksd_check(programs.length_first, Sequences.of([[], [0], [1, 1]], SIZE), num_bootstrap=5, progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1


EMPTY = Sequences.of([[], [0], []], SIZE)


def test_the_empty_sequence_stands_beside_a_symbol_with_different_paddings() -> None:
    empty = Rows(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, dtype=torch.long), torch.tensor([7, 8]))
    first, second = beside_another(empty, 3)
    assert (first.tokens.tolist(), second.tokens.tolist()) == ([[0], [0], [0]], [[1], [1], [1]])
    assert first.lengths.tolist() == second.lengths.tolist() == [0, 0, 1]
    assert first.covariates.tolist() == [7, 8, 8]  # type: ignore[union-attr]
    assert len(beside_another(empty, 1)) == 1


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


@pytest.mark.parametrize(
    "extra",
    [
        lambda sequences, lengths: pyro.deterministic("number", lengths.double(), event_dim=0),
        lambda sequences, lengths: pyro.deterministic("first", sequences[:, 0]),
        lambda sequences, lengths: pyro.sample("copy", dist.Delta(lengths.double()), obs=lengths.double()),
        lambda sequences, lengths: pyro.sample("off", dist.Normal(0.0, 1.0).mask(False), obs=torch.zeros(len(lengths))),
        lambda sequences, lengths: pyro.sample(
            "own mask", dist.Normal(0.0, 1.0).expand([len(lengths)]).mask(lengths > 0), obs=torch.zeros(len(lengths))
        ),
    ],
)
def test_sites_that_say_nothing_give_it_none(extra: Callable[[Tensor, Tensor], Any]) -> None:
    """``pyro.deterministic`` is a site without a mask, and with the log-probability 0."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            extra(sequences, lengths)
            programs.chain_steps(sequences, lengths)

    model = as_model(program, DATA)
    assert (model.log_joint(EMPTY) == -torch.inf).tolist() == [True, False, True]
    data = CHAIN.draw(200, torch.Generator().manual_seed(0))
    check, plain = (
        ksd_check(p, data, order=1, num_bootstrap=20, progress=False) for p in (program, programs.chain_with_stop)
    )
    assert check["ksd"]["statistic"].values == pytest.approx(plain["ksd"]["statistic"].values)


def test_a_site_that_says_something_counts_beside_them() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.deterministic("number", lengths.double(), event_dim=0)
            pyro.sample("length", dist.Poisson(torch.tensor(2.0).double()), obs=lengths.double())
            for t in range(sequences.shape[1]):
                fn = dist.Categorical(programs.INITIAL).expand([len(lengths)])
                pyro.sample(f"x_{t}", fn.mask(t < lengths), obs=sequences[:, t])

    found = as_model(program, DATA).log_joint(EMPTY)
    assert found[[0, 2]].tolist() == pytest.approx([-2.0, -2.0])


def test_operations_that_refuse_sequences_without_symbols() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            sequences[..., None], lengths, batch_first=True, enforce_sorted=False
        )
        codes, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=sequences.shape[1])
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", -codes.sum((1, 2)).double() - 2 * lengths)

    data = Sequences.of([[], [0, 1], [2], []], SIZE)
    assert as_model(program, data).log_joint(data).tolist() == [-torch.inf, -5.0, -4.0, -torch.inf]


@pytest.mark.parametrize("first", [True, False])
def test_one_site_that_reads_the_padding_is_enough_to_give_it_none(first: bool) -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            if first:
                pyro.sample("x", dist.Categorical(programs.INITIAL), obs=sequences[:, 0])
            pyro.sample("length", dist.Poisson(torch.tensor(2.0).double()), obs=lengths.double())
            if not first:
                pyro.sample("x", dist.Categorical(programs.INITIAL), obs=sequences[:, 0])

    model = VectorizedProgram(program, DATA)
    assert not model.defines_empty
    assert (model.log_joint(EMPTY) == -torch.inf).tolist() == [True, False, True]


def test_lengths_may_be_looked_up_in_a_table() -> None:
    rates = torch.tensor([0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).double()

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Poisson(rates[lengths]), obs=lengths.double())

    model = as_model(program, DATA)
    assert model.log_joint(Sequences.of([[]], SIZE)).tolist() == pytest.approx([-0.5])
