# SPDX-License-Identifier: Apache-2.0
"""Long sequences in single precision: the package sums in double, and warns where the user's own sum does not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from torch import Tensor

from pyro_ksd.edits import zs
from pyro_ksd.models import LoopProgram, SequenceModel, as_model
from pyro_ksd.models.impossible_sequences import checked_log_joint, find_impossible
from pyro_ksd.models.rounding import rounding_of_ratios, warn_of_rounding
from pyro_ksd.sequences.container import Sequences

LENGTH = 5000
PROBS = torch.tensor([0.1, 0.2, 0.3, 0.4])
DATA = Sequences.of(torch.randint(4, (2, LENGTH), generator=torch.Generator().manual_seed(0)), alphabet=4)
EDITS = zs(locations=15).edits(DATA).select(torch.arange(0, 160, 4))
STOP = 2.0**-12


def steps_in_a_plate(dtype: torch.dtype) -> Callable[..., None]:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        t = torch.arange(sequences.shape[1])[:, None]
        steps = pyro.plate("steps", sequences.shape[1], dim=-2)
        with pyro.plate("sequences", len(lengths)), steps, poutine.mask(mask=t < lengths):
            pyro.sample("x", dist.Categorical(PROBS.to(dtype)), obs=sequences.T)
            pyro.sample("stop", dist.Bernoulli(torch.tensor(STOP, dtype=dtype)), obs=(t + 1 == lengths).to(dtype))

    return program


def steps_in_an_event(dtype: torch.dtype) -> Callable[..., None]:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        inside = torch.arange(sequences.shape[1]) < lengths[:, None]
        with pyro.plate("sequences", len(lengths)):
            symbols = dist.Categorical(PROBS.to(dtype).expand(*sequences.shape, 4)).mask(inside).to_event(1)
            pyro.sample("x", symbols, obs=sequences)
            pyro.sample("length", dist.Geometric(torch.tensor(STOP, dtype=dtype)), obs=lengths.to(dtype))

    return program


def sum_in_a_factor(dtype: torch.dtype) -> Callable[..., None]:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        inside = torch.arange(sequences.shape[1]) < lengths[:, None]
        with pyro.plate("sequences", len(lengths)):
            terms = PROBS.to(dtype).log()[sequences] * inside
            pyro.factor("score", terms.sum(1) - STOP * lengths.to(dtype))

    return program


class Padded(torch.distributions.Distribution):
    arg_constraints = {}  # noqa: RUF012

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__(event_shape=torch.Size([LENGTH]), validate_args=False)
        self.dtype = dtype

    def log_prob(self, value: Tensor) -> Tensor:
        terms: Tensor = PROBS.to(self.dtype).log()[value.clamp(min=0)] * (value >= 0)
        return terms.sum(-1)


def both(make: Callable[[torch.dtype], Any]) -> tuple[SequenceModel, SequenceModel]:
    return as_model(make(torch.float), DATA), as_model(make(torch.double), DATA)


@pytest.mark.parametrize("make", [steps_in_a_plate, steps_in_an_event])
def test_sums_over_steps_are_as_good_as_single_terms(make: Callable[[torch.dtype], Any]) -> None:
    single, double = both(make)
    torch.testing.assert_close(
        single.log_ratio(DATA, EDITS), double.log_ratio(DATA, EDITS), rtol=0, atol=1e-6
    )  # 1e-3 where the sum was in single precision
    torch.testing.assert_close(single.log_joint(DATA), double.log_joint(DATA), rtol=5e-8, atol=0)


def test_sums_of_the_user_are_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"^site 'score' gives log-prob.* in single precision .* by 0\.0018, "):
        single = as_model(sum_in_a_factor(torch.float), DATA)
    double = as_model(sum_in_a_factor(torch.double), DATA)
    error = (single.log_ratio(DATA, EDITS) - double.log_ratio(DATA, EDITS)).abs().max()
    assert 1e-4 < error < 2e-3  # what the warning says is no exaggeration


def test_distributions_are_warned_of_once() -> None:
    single, double = both(Padded)
    double.log_joint(DATA)
    with pytest.warns(UserWarning, match="^log_prob of Padded gives log-probabilities in single precision"):
        single.log_joint(DATA)
    single.log_joint(DATA)


def test_loops_are_warned_of_by_the_name_of_the_site() -> None:
    def program(large: Tensor) -> Callable[[], None]:
        def run() -> None:
            pyro.factor("constant", large)
            pyro.sample("x_0", dist.Bernoulli(0.5))

        return run

    data = Sequences.of([[0], [1]], alphabet=2)
    with pytest.warns(UserWarning, match=r"^site 'constant' gives log-probabilities in single precision") as found:
        LoopProgram(program(torch.tensor(-9000.0)), 2).log_joint(data)
    assert len(found) == 1
    LoopProgram(program(torch.tensor(-4000.0)), 2).log_joint(data)
    LoopProgram(program(torch.tensor(-9000.0).double()), 2).log_joint(data)


class Linear(SequenceModel):
    alphabet_size = 4

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def log_joint(self, sequences: Sequences) -> Tensor:
        return -1.5 * sequences.lengths.to(self.dtype)


def test_models_of_the_user_are_warned_of_where_the_data_are_scored() -> None:
    with pytest.warns(UserWarning, match="^log_joint of Linear gives log-probabilities in single precision"):
        checked_log_joint(Linear(torch.float), DATA)
    checked_log_joint(Linear(torch.double), DATA)
    checked_log_joint(Linear(torch.float), Sequences.of([[0] * 2000], alphabet=4))
    find_impossible(Linear(torch.float), DATA)  # null draws are not warned of, one by one


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (torch.tensor([-8192.0, 5.0]), 2 * 2.0**-23 * 8192),
        (torch.tensor([8192.0, -torch.inf, torch.nan]), 2 * 2.0**-23 * 8192),
        (torch.tensor([-8192.0]).double(), 0.0),
        (torch.tensor([-8192]), 0.0),
        (torch.tensor([]), 0.0),
    ],
)
def test_the_error_of_ratios(values: Tensor, error: float) -> None:
    assert rounding_of_ratios(values) == error


def test_small_errors_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_of_rounding(1e-3, "site 'x'")
    with pytest.warns(UserWarning, match=r"^site 'x' .* wrong by 0\.0011, by .*set_default_dtype\(torch\.double\).*"):
        assert warn_of_rounding(1.1e-3, "site 'x'")
