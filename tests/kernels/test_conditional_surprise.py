# SPDX-License-Identifier: Apache-2.0
"""The probability of each symbol given the others as a test function, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from example_models import bounded_chain, walk, walks

from pyro_ksd.edits.neighborhoods import Substitutions
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels import ConditionalSurpriseKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import HeatBathOperator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted_edits

OPERATOR = HeatBathOperator(Substitutions())


def plain_psi(model: MarkovSequence, x: list[int], size: int, least: float) -> float:
    total = 0.0
    for i in range(len(x)):
        variants = [[*x[:i], s, *x[i + 1 :]] for s in range(size)]
        q = model.log_joint(Sequences.of(variants, size)).softmax(0).tolist()
        h = [math.log(max(probability, least)) for probability in q]
        total += math.fsum(a * b for a, b in zip(q, h, strict=True)) - h[x[i]]
    return total / len(x)


@pytest.mark.parametrize("least", [1e-3, 0.2])
def test_against_plain_loops(least: float) -> None:
    for model, data in ((walk(hold=0.3), walks(6)), (bounded_chain(), Sequences.of([[0, 1], [2], [1, 1, 0]], 3))):
        [matrix] = stein_matrices(model, data, [View("surprise", OPERATOR, ConditionalSurpriseKernel(least))])
        assert isinstance(matrix, FeatureMatrix)
        expected = [plain_psi(model, x, data.alphabet_size, least) for x in data.to_lists()]  # type: ignore[arg-type]
        assert matrix.values[:, 0].tolist() == pytest.approx(expected, rel=1e-10, abs=1e-13)
        assert any(abs(value) > 0.01 for value in expected)


def test_steps_add_up_to_the_feature() -> None:
    kernel = ConditionalSurpriseKernel()
    data = walks(5)
    edits = weighted_edits(walk(hold=0.3), OPERATOR, data)
    [features] = kernel.stein_features_each(edits)
    witness = Witness(torch.ones(1, dtype=torch.double), FeatureMatrix(torch.zeros_like(features.values)))
    steps = kernel.steps_along(edits, witness)
    assert edits.edits.sum_by_owner(steps * edits.weights).allclose(features.values[:, 0])
    assert kernel.few_changes(edits)[:, 0].equal(steps)


def test_impossible_edits_and_certain_symbols_count_nothing() -> None:
    always_a = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
    data = Sequences.of(["aaa"], "ab")
    edits = weighted_edits(always_a, OPERATOR, data)
    assert not edits.weights.any()
    assert ConditionalSurpriseKernel().stein_features_each(edits)[0].values.tolist() == [[0.0]]


def test_the_bound_is_reached_by_no_symbol() -> None:
    kernel = ConditionalSurpriseKernel(1e-2)
    nearly = torch.tensor([[1 - 1e-9, 1e-9], [1 - 1e-9, 1e-9]], dtype=torch.double)
    model = MarkovSequence.from_transitions(nearly[0], nearly, stop=0.5)
    [matrix] = stein_matrices(model, Sequences.of(["bbbb"], "ab"), [View("surprise", OPERATOR, kernel)])
    value = matrix.features.values.item()  # type: ignore[union-attr]
    assert 0.99 * kernel.bound < value <= kernel.bound


def test_refuses_what_it_cannot_use() -> None:
    with pytest.raises(ValueError, match="needs the log-probabilities of a model"):
        ConditionalSurpriseKernel().features(walks(2))
    with pytest.raises(ValueError, match="least: expected"):
        ConditionalSurpriseKernel(0.0)
    edits = weighted_edits(walk(), OPERATOR, walks(2))
    bare = WeightedEdits(0, edits.sequences, edits.edits, edits.weights)
    with pytest.raises(ValueError, match="log-ratios"):
        ConditionalSurpriseKernel().stein_features_each(bare)


def test_the_bound_is_a_thousandth_unless_stated_and_a_probability() -> None:
    assert ConditionalSurpriseKernel().bound == pytest.approx(math.log(1000))
    assert ConditionalSurpriseKernel(0.5).bound == pytest.approx(math.log(2))
    for wrong in (1.5, 0.0, -0.1):
        with pytest.raises(ValueError, match="least: expected"):
            ConditionalSurpriseKernel(wrong)
