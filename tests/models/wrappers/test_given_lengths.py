# SPDX-License-Identifier: Apache-2.0
"""Models of the symbols given the length: sequences without symbols are certain."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import CHAIN, INITIAL, MOVES, SIZE
from torch import Tensor

from pyro_ksd import ksd_check, ksd_compare
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.sequences.container import Sequences

DATA = Sequences.of([[0, 1, 1], [], [2], [1, 0], [], [2, 2, 0]], SIZE)


def given_lengths(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])


def test_the_empty_sequence_is_certain() -> None:
    found = GivenLengths(CHAIN).log_joint(DATA)
    expected = CHAIN.log_joint(DATA).masked_fill(DATA.lengths == 0, 0.0)
    torch.testing.assert_close(found, expected)
    assert GivenLengths(CHAIN).log_joint(Sequences.of([[], []], SIZE)).tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_empty_sequences_of_the_data_are_no_fault_of_such_a_model() -> None:
    """They have no symbols to check, and no edits, so that the statistic counts pairs with them as zero."""
    with pytest.warns(UserWarning, match="gives no probability to lengths"):
        found = ksd_check(given_lengths, DATA, num_bootstrap=5, progress=False)
    with pytest.warns(UserWarning, match="gives no probability to lengths"):
        some = ksd_check(given_lengths, DATA[DATA.lengths > 0], num_bootstrap=5, progress=False)
    ratio = (4 * 3) / (6 * 5)
    assert found["ksd"]["statistic"].values == pytest.approx(ratio * some["ksd"]["statistic"].values)


def test_comparisons() -> None:
    with pytest.warns(UserWarning, match="gives no probability to lengths"):
        found = ksd_compare({"a": given_lengths, "b": given_lengths}, DATA, progress=False)
    assert "ksd_compare_impossible" not in found.children
    assert found["ksd_compare"].attrs["num_sequences"] == 6
