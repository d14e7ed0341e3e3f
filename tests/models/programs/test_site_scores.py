# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of the sites of a program."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import chain_steps
from torch import Tensor

from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.call_conventions import Rows
from pyro_ksd.models.programs.site_scores import masked_log_prob, nan_error, score_sites, summed_over_sites
from pyro_ksd.models.programs.vectorized import VectorizedProgram


def nan_at_a_site(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)
        pyro.factor("root", (lengths - 3.0).sqrt())


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (nan_at_a_site, "site 'root': found NaN in the log-probability of the sequence [0, 0]; fix"),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=[program.__name__ for program, _ in MISTAKES])
def test_mistake_is_named(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(program, DATA)


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_categorical_sites_score_as_the_distribution_does(kind: str) -> None:
    """Looked up before or after the logarithm, to the last bit."""
    table = programs.MOVES

    def program(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("x", dist.Categorical(**{kind: table[sequences[:, 0]]}), obs=sequences[:, -1])

    tokens, lengths = torch.tensor([[0, 1], [1, 0], [1, 1], [2, 2], [1, 2]]), torch.full((5,), 2)
    found = VectorizedProgram(program, DATA).run(Rows(tokens, lengths))
    expected = dist.Categorical(**{kind: table[tokens[:, 0]]}).log_prob(tokens[:, 1])
    assert torch.equal(found, expected)


def scored(**site: Any) -> dict[str, Any]:
    return {"mask": None, **site}


def test_masks_of_all_forms() -> None:
    values = torch.tensor([1.0, torch.nan, -torch.inf])
    for mask in (None, True):
        assert masked_log_prob(scored(unscaled_log_prob=values, mask=mask)) is values
    assert masked_log_prob(scored(unscaled_log_prob=values, mask=False)).tolist() == [0.0, 0.0, 0.0]
    some = torch.tensor([True, False, False])
    assert masked_log_prob(scored(unscaled_log_prob=values, mask=some)).tolist() == [1.0, 0.0, 0.0]


def test_sites_are_summed_over_all_but_the_dimension_of_the_sequences() -> None:
    alone, nested = torch.tensor([1.0, 2.0]), torch.tensor([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    sites = [("a", scored(unscaled_log_prob=alone)), ("b", scored(unscaled_log_prob=nested))]
    found = summed_over_sites(sites, -1, 2)
    assert found.dtype == torch.double
    assert found.tolist() == [91.0, 122.0]
    across = [("b", scored(unscaled_log_prob=nested.T)), ("c", scored(unscaled_log_prob=alone[:, None]))]
    assert summed_over_sites(across, -2, 2).tolist() == [91.0, 122.0]


def test_values_in_single_precision_are_summed_in_double_precision() -> None:
    values = torch.rand(10_007, 2, generator=torch.Generator().manual_seed(0))
    expected = [math.fsum(column) for column in values.T.tolist()]
    found = summed_over_sites([("a", scored(unscaled_log_prob=values))], -1, 2)
    assert found.tolist() == pytest.approx(expected, rel=1e-12)
    found = summed_over_sites([(str(row), scored(unscaled_log_prob=own)) for row, own in enumerate(values)], -1, 2)
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


def test_an_error_of_a_site_has_its_name() -> None:
    site = {"fn": dist.Categorical(torch.ones(2) / 2, validate_args=True), "value": torch.tensor([5])}
    with pytest.raises(ValueError, match="site 'x_7': "):
        score_sites([("x_7", {**site, "is_observed": True, "args": (), "kwargs": {}})])


def test_nan_is_blamed_on_its_sites_and_not_on_masked_ones() -> None:
    bad = torch.tensor([0.0, torch.nan])
    sites = [
        ("good", scored(unscaled_log_prob=torch.zeros(2))),
        ("bad", scored(unscaled_log_prob=bad)),
        ("masked", scored(unscaled_log_prob=bad, mask=torch.tensor([True, False]))),
    ]
    assert str(nan_error(sites, "ab")).startswith(
        "site 'bad': found NaN in the log-probability of the sequence ['a', 'b']; fix the parameters"
    )
    assert str(nan_error(sites[:1], "ab")).startswith("site unknown: found NaN")


def test_of_many_sites_with_nan_the_first_is_named() -> None:
    sites = [(f"x_{t}", scored(unscaled_log_prob=torch.tensor([torch.nan]))) for t in range(71)]
    assert str(nan_error(sites, "a")).startswith("site 'x_0' and 70 others: found NaN")
    assert str(nan_error(sites[:2], "a")).startswith("site 'x_0', 'x_1': found NaN")
