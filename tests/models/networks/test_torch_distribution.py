# SPDX-License-Identifier: Apache-2.0
"""Distributions of torch and Pyro over sequences."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.distributions import TorchDistribution
from pyro_programs import CHAIN, SIZE
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.networks.torch_distribution import TorchDistributionModel

DATA = CHAIN.draw(25, torch.Generator().manual_seed(1))


class Backwards(TorchDistribution):
    """A user's own distribution: the chain, read from the end to the start."""

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012
    support = constraints.independent(constraints.integer_interval(-1, SIZE - 1), 1)

    def __init__(self) -> None:
        super().__init__(torch.Size(), torch.Size([60]), validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        return CHAIN.log_prob(self._turned(value))

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:  # noqa: B008
        return self._turned(CHAIN.sample(sample_shape))

    @staticmethod
    def _turned(value: Tensor) -> Tensor:
        lengths = (value >= 0).sum(-1, keepdim=True)
        index = lengths - 1 - torch.arange(value.shape[-1])
        return value.gather(-1, index.clamp(min=0)).masked_fill(index < 0, -1)


def test_a_distribution_of_the_users_own() -> None:
    turned = Sequences.of([x[::-1] for x in DATA.to_lists()], SIZE)
    check = ksd_check(Backwards(), turned, num_bootstrap=60, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    with pytest.raises(ValueError, match=r"expected one distribution over padded sequences .* found Normal with batch"):
        ksd_check(dist.Normal(torch.zeros(3), 1.0), turned, progress=False)


def test_log_joints_and_ratios_are_those_of_log_prob() -> None:
    model = TorchDistributionModel(Backwards(), SIZE)
    turned = Sequences.of([x[::-1] for x in DATA.to_lists()], SIZE)
    assert model.alphabet_size == SIZE
    torch.testing.assert_close(model.log_joint(turned), CHAIN.log_joint(DATA))
    edits = zs().edits(turned)
    expected = model.log_joint(edits.apply(turned)) - model.log_joint(turned)[edits.owner]
    torch.testing.assert_close(model.log_ratio(turned, edits), expected, rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="the model's 3 symbols, found an alphabet of 4"):
        model.log_joint(Sequences.of([[0]], 4))


class Cautious(Backwards):
    """Makes distributions within, which would check their arguments where the user's session validates."""

    def log_prob(self, value: Tensor) -> Tensor:
        symbols = dist.Poisson(torch.ones(value.shape[-1]).double())
        return symbols.log_prob(value.double()).masked_fill(value < 0, 0.0).sum(-1)

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:  # noqa: B008
        dist.Poisson(-torch.ones(2))
        return super().sample(sample_shape)


def test_distributions_within_are_not_validated() -> None:
    """The values after the end are outside of their support."""
    model = TorchDistributionModel(Cautious(), SIZE)
    with pyro.validation_enabled(True):
        assert model.log_joint(Sequences.of([[0, 1], [2]], SIZE)).tolist() == pytest.approx([-2.0, -1.0 - math.log(2)])
        assert len(model.draw(3, torch.Generator().manual_seed(0))) == 3


def test_draws_are_samples_with_the_random_state_untouched() -> None:
    model = TorchDistributionModel(Backwards(), SIZE)
    assert model.can_draw
    state = torch.get_rng_state()
    one, same, other = (model.draw(30, torch.Generator().manual_seed(seed)).to_lists() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert one == same != other
    drawn = model.draw(30, torch.Generator().manual_seed(1))
    assert drawn.alphabet == SIZE
    assert model.log_joint(drawn).isfinite().all()


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        (dist.Poisson(1.0), r"found Poisson with batch_shape \[\] and event_shape \[\]"),
        (dist.Categorical(torch.ones(4, 3) / 3), r"found Categorical with batch_shape \[4\] and event_shape \[\]"),
        (dist.Normal(torch.zeros(2, 2), 1.0).to_event(2), r"with batch_shape \[\] and event_shape \[2, 2\]"),
    ],
)
def test_only_one_distribution_over_sequences_is_taken(distribution: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TorchDistributionModel(distribution, SIZE)


def test_log_prob_must_give_one_value_for_each_sequence() -> None:
    class Wrong(Backwards):
        def log_prob(self, value: Tensor) -> Tensor:
            return value.double()

    with pytest.raises(
        ValueError, match=r"log_prob: expected \[25\] values for 25 padded sequences \[25, \d+\], found"
    ):
        TorchDistributionModel(Wrong(), SIZE).log_joint(DATA)


START = torch.tensor([0.6, 0.4], dtype=torch.double)
HIDDEN = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.double)
EMISSION = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], dtype=torch.double)


def discrete_hmm(emission: Tensor = EMISSION) -> Any:
    return dist.DiscreteHMM(START.log(), HIDDEN.log(), dist.Categorical(emission))


def log_hmm(x: list[Any]) -> float:
    """Moves before each symbol, also the first, as Pyro's distribution does; the states are summed out."""
    total = 0.0
    for path in product(range(2), repeat=len(x) + 1):
        moves = [float(HIDDEN[a, b]) for a, b in pairwise(path)]
        total += (
            float(START[path[0]])
            * math.prod(moves)
            * math.prod(float(EMISSION[z, a]) for z, a in zip(path[1:], x, strict=True))
        )
    return math.log(total)


def test_a_discrete_hmm_passed_as_it_is() -> None:
    data = Sequences.of([[0, 1, 2, 2], [2], [1, 0], [0, 0, 0, 1, 2], [2, 1]], SIZE)
    model = as_model(discrete_hmm(), data)
    assert model.log_joint(data).tolist() == pytest.approx([log_hmm(x) for x in data.to_lists()], abs=1e-10)
    assert model.log_joint(Sequences.of([[], [1]], SIZE))[0] == -torch.inf
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        check = ksd_check(discrete_hmm(), data, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"


def test_a_discrete_hmm_that_does_not_fit() -> None:
    data = Sequences.of([[0, 1, 2, 2], [2], [1, 0]], SIZE)
    with pytest.raises(ValueError, match="found a distribution of 4 symbols, but the alphabet of the data has 3"):
        as_model(discrete_hmm(torch.ones(2, 4).double() / 4), data)
    with pytest.raises(ValueError, match=r"expected one DiscreteHMM of single symbols.*observation_dist Normal"):
        as_model(dist.DiscreteHMM(START.log(), HIDDEN.log(), dist.Normal(START, 1.0)), data)
    with pytest.raises(ValueError, match=r"found batch_shape \[3\]"):
        as_model(dist.DiscreteHMM(START.log().expand(3, 2), HIDDEN.log(), dist.Categorical(EMISSION)), data)
    steps = HIDDEN.log().expand(4, 2, 2)
    with pytest.raises(ValueError, match=r"the DiscreteHMM fails on sequences of 2 symbols.*of that length"):
        as_model(dist.DiscreteHMM(START.log(), steps, dist.Categorical(EMISSION)), data).log_joint(data)
