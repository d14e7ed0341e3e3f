# SPDX-License-Identifier: Apache-2.0
"""Models from whatever a user passes."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from bayesian_chain import bayesian, chain, point
from pyro_programs import CHAIN, SIZE, chain_as_one_site, chain_in_a_loop, chain_with_stop
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd.models import LoopProgram, SequenceModel, TabulatedModel
from pyro_ksd.models.conversion import as_model, checked_program
from pyro_ksd.models.networks.torch_distribution import TorchDistributionModel
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.wrappers.sampler import SampledModel
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("model", [3, "chain", object()])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(ValueError, match="model: expected a Pyro program, a distribution, or an object with log_joint"):
        as_model(model, DATA)


def test_data_for_a_model_may_be_lists() -> None:
    rows = [[0, 1, 2], [2, 1], [0]]
    own = as_model(chain_with_stop, rows)
    assert own.log_joint(Sequences.of(rows)).equal(
        as_model(chain_with_stop, Sequences.of(rows)).log_joint(Sequences.of(rows))
    )


def test_guide_is_no_point() -> None:
    with pytest.raises(
        ValueError, match="expected values by name, found function; pass a guide or draws as posterior="
    ):
        as_model(chain_with_stop, DATA, parameters=lambda: None)  # type: ignore[arg-type]


def test_parameters_belong_to_programs() -> None:
    with pytest.raises(ValueError, match="parameters: expected a Pyro program to pass them to, found MarkovSequence"):
        as_model(chain(point()), DATA, parameters=point())


def test_what_is_passed_becomes_the_model_that_suits_it() -> None:
    assert isinstance(as_model(chain_with_stop, DATA), VectorizedProgram)
    assert isinstance(as_model(chain_as_one_site, DATA), VectorizedProgram)
    assert isinstance(as_model(chain_in_a_loop, DATA), LoopProgram)
    assert as_model(CHAIN, DATA) is CHAIN
    of_torch = dist.Categorical(torch.ones(SIZE) / SIZE).expand([4]).to_event(1)
    assert isinstance(as_model(of_torch, DATA), TorchDistributionModel)
    for model in (chain_with_stop, chain_as_one_site, chain_in_a_loop, of_torch):
        assert isinstance(as_model(model, DATA), SequenceModel)
        assert as_model(model, DATA).alphabet_size == SIZE


def test_order_and_sampler_are_put_around_the_model() -> None:
    drawn = CHAIN.draw(3, torch.Generator().manual_seed(4))
    model = as_model(chain_in_a_loop, DATA, order=1, sampler=lambda num_sequences, generator: drawn)
    assert isinstance(model, SampledModel)
    assert isinstance(model.model, TabulatedModel)
    assert isinstance(model.model.model, LoopProgram)
    assert model.draw(3) is drawn
    torch.testing.assert_close(model.log_joint(DATA), CHAIN.log_joint(DATA))


def test_parameters_reach_programs_of_both_kinds() -> None:
    def loop() -> None:
        initial = pyro.sample("initial", dist.Dirichlet(torch.ones(SIZE, dtype=torch.double)))
        moves = pyro.sample("moves", dist.Dirichlet(torch.ones(SIZE, SIZE, dtype=torch.double)).to_event(1))
        law, stop, t = initial, False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.2, dtype=torch.double)))
            law, t = moves[x], t + 1

    expected = chain(point()).log_joint(DATA)
    found = as_model(bayesian, DATA, parameters=point()).log_joint(DATA)
    torch.testing.assert_close(found, expected)
    looped = as_model(loop, DATA, parameters=point()).log_joint(DATA)  # with the constant densities of the priors
    torch.testing.assert_close(looped - looped[0], expected - expected[0])


def test_no_parameters_are_fine_for_a_model_that_has_its_own() -> None:
    assert as_model(CHAIN, DATA, parameters={}) is CHAIN


def test_programs_are_validated() -> None:
    def summed(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -lengths.double().sum())

    with pytest.raises(ValueError, match="changes with the other sequences of the batch"):
        as_model(summed, DATA)


def effect(sequences: Tensor, lengths: Tensor) -> None:
    """A random effect on the length, the larger the worse a few points are."""
    size = pyro.sample("size", dist.Exponential(torch.tensor(1.0).double()))
    with pyro.plate("sequences", len(lengths)):
        z = pyro.sample("z", dist.Normal(torch.zeros(len(lengths)).double(), 1.0))
        pyro.factor("score", size * z * lengths - 5.0 * lengths.double())


def test_programs_with_integrated_latents_are_checked_too() -> None:
    small, large = ({"size": torch.tensor(size).double()} for size in (0.01, 3.0))
    marginal = Marginal(num_points=4)
    with pytest.warns(UserWarning, match="the latents 'z' are integrated out with 4 points") as caught:
        model = as_model(effect, DATA, parameters=small, marginal=marginal)
    assert len(caught) == 1
    assert model.ratio_error is not None
    assert 0 < model.ratio_error < 0.5
    with pytest.raises(ValueError, match="marginal: the latents 'z' are integrated out with 4 points"):
        as_model(effect, DATA, parameters=large, marginal=marginal)
    with pytest.raises(ValueError, match="marginal: the latents 'z' are integrated out with 4 points"):
        checked_program(effect, DATA, small, marginal, large)

    def summed(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", dist.Normal(torch.zeros(len(lengths)).double(), 1.0))
            pyro.factor("score", 0.01 * z * lengths - 5.0 * lengths.sum())

    with pytest.raises(ValueError, match="changes with the other sequences of the batch"):
        as_model(summed, DATA, marginal=marginal)


def test_an_object_with_parameters_is_named() -> None:
    class Finished:
        alphabet_size = SIZE
        log_joint = staticmethod(CHAIN.log_joint)
        log_ratio = staticmethod(CHAIN.log_ratio)

    model = as_model(Finished(), DATA)
    for own in (Finished(), model):
        with pytest.raises(
            ValueError, match="parameters: expected a Pyro program to pass them to, found Finished, whi"
        ):
            as_model(own, DATA, parameters=point())


def test_a_loop_has_no_latents_to_integrate_over() -> None:
    with pytest.raises(
        ValueError, match=r"marginal: expected a program model\(sequences, lengths\), found one without"
    ):
        as_model(chain_in_a_loop, DATA, marginal=Marginal())


def test_distributions_and_objects_have_their_own_parameters() -> None:
    of_torch = dist.Categorical(torch.ones(SIZE) / SIZE).expand([4]).to_event(1)
    with pytest.raises(ValueError, match="parameters: expected a Pyro program to pass them to, found Independent, whi"):
        as_model(of_torch, DATA, parameters=point())
    for model in (CHAIN, of_torch):
        with pytest.raises(ValueError, match="marginal: expected a Pyro program with latents to integrate over, found"):
            as_model(model, DATA, marginal=Marginal())


def test_vectorized_programs_are_validated_too() -> None:
    def by_the_longest(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -(lengths + lengths.max()).double())

    with pytest.raises(ValueError, match="changes with the other sequences of the batch"):
        as_model(VectorizedProgram(by_the_longest, DATA), DATA)
