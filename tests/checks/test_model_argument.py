# SPDX-License-Identifier: Apache-2.0
"""What a user passes as a model, made ready for data."""

from __future__ import annotations

from typing import Any

import pyro
import pytest
import torch
from torch import Tensor

from pyro_ksd import MarkovSequence, Sequences, fit_markov
from pyro_ksd.checks.model_argument import ModelArgument

DATA = Sequences.of(["ab", "aab", "b", "abab"])
COIN = torch.tensor([0.25, 0.75], dtype=torch.double)


def tilted(sequences: Tensor, lengths: Tensor) -> None:
    """Independent symbols with a weight for the symbol 1, and a geometric length."""
    weight = pyro.param("weight", torch.tensor(0.5, dtype=torch.double))
    inside = torch.arange(sequences.shape[1]) < lengths[:, None]
    with pyro.plate("sequences", len(lengths)):
        pyro.factor("symbols", weight * (inside & (sequences == 1)).sum(1) - 2.0 * lengths)


def test_parameters_reach_the_program() -> None:
    heavier = ModelArgument(tilted, {"weight": torch.tensor(1.5, dtype=torch.double)}).for_data(DATA, ())
    found = heavier.log_joint(DATA) - ModelArgument(tilted).for_data(DATA, ()).log_joint(DATA)
    torch.testing.assert_close(found, torch.tensor([1.0, 1.0, 1.0, 2.0], dtype=torch.double))


def test_end_symbols_are_those_with_the_codes() -> None:
    chain = MarkovSequence.from_transitions(COIN, COIN.expand(2, 2), stop=0.5)
    ended = ModelArgument(chain).for_data(DATA, (1,))
    assert ended.log_joint(Sequences.of(["ab", "abab", "ba"], "ab")).isfinite().tolist() == [True, False, False]


@pytest.mark.parametrize("gives_parameters", [False, True])
def test_a_fit_gives_parameters_or_a_model(gives_parameters: bool) -> None:
    seen = []

    def refit(model: Any, data: Sequences) -> Any:
        seen.append((model, data))
        return {"weight": torch.tensor(1.5, dtype=torch.double)} if gives_parameters else fit_markov(data, order=1)

    argument = ModelArgument(tilted)
    found = argument.fitted_to(refit, DATA, ()).log_joint(DATA)
    stated = argument.__class__(tilted, {"weight": torch.tensor(1.5, dtype=torch.double)})
    expected = (stated if gives_parameters else ModelArgument(fit_markov(DATA, order=1))).for_data(DATA, ())
    torch.testing.assert_close(found, expected.log_joint(DATA), rtol=0, atol=0)
    assert [(model is tilted, data is DATA) for model, data in seen] == [(True, True)]
