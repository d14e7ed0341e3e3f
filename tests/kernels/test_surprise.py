# SPDX-License-Identifier: Apache-2.0
"""The model's own log-probability as a test function, against plain loops."""

from __future__ import annotations

import math

import oracle
import pytest
import torch
from example_models import bounded_chain, walk, walks

from pyro_ksd.edits.neighborhoods import Neighborhood, Substitutions, zs
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.surprise import SurpriseKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import tempered
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted_edits


def plain_psi(model: MarkovSequence, x: oracle.Codes, size: int, *, indel: bool, g: oracle.LogProb) -> float:
    """Σ_y w(x, y) (log p(y) - log p(x)) over the possible neighbors."""
    around = sorted(oracle.neighbors(x, size, indel=indel))
    here, *there = model.log_joint(Sequences.of([x, *around], size)).tolist()
    return math.fsum(g(own - here) * (own - here) for own in there if own > -math.inf)


def tempered_barker(log_ratio: float) -> float:
    return oracle.barker(log_ratio) / math.cosh(log_ratio / 2)


@pytest.mark.parametrize(("around", "indel"), [(zs(), True), (Substitutions(), False)])
@pytest.mark.parametrize("name", ["barker", "tempered"])
def test_against_plain_loops(name: str, around: Neighborhood, indel: bool) -> None:
    balancing, g = ("barker", oracle.barker) if name == "barker" else (tempered(torch.sigmoid), tempered_barker)
    for model, data in ((walk(hold=0.3), walks(6)), (bounded_chain(), Sequences.of([[0, 1], [2], [1, 1, 0]], 3))):
        view = View("surprise", ZanellaOperator(around, balancing), SurpriseKernel())  # type: ignore[arg-type]
        [matrix] = stein_matrices(model, data, [view])
        assert isinstance(matrix, FeatureMatrix)
        size = data.alphabet_size
        expected = [plain_psi(model, tuple(x), size, indel=indel, g=g) for x in data.to_lists()]
        assert matrix.values[:, 0].tolist() == pytest.approx(expected, rel=1e-10)
        assert all(value != 0 for value in expected)


def test_impossible_edits_add_nothing() -> None:
    data = Sequences.of([[0, 1], [2]], 3)
    found = weighted_edits(bounded_chain(), ZanellaOperator(), data)
    assert found.log_ratio is not None
    impossible = found.log_ratio == -torch.inf
    assert impossible.any()
    assert not found.weights[impossible].any()
    changes = SurpriseKernel().few_changes(found)
    assert changes.shape == (len(found.edits), 1)
    assert not changes[impossible].any()
    assert changes[~impossible, 0].equal(found.log_ratio[~impossible])
    [matrix] = SurpriseKernel().stein_features_each(found)
    assert matrix.values.isfinite().all()


def test_several_models_have_their_own_log_probabilities() -> None:
    models, data = [walk(), walk(hold=0.4), walk(hold=0.8)], walks(5)
    operator = ZanellaOperator()
    together = SurpriseKernel().stein_features_each(weighted_edits(ModelList(models), operator, data))
    assert len(together) == 3
    for model, matrix in zip(models, together, strict=True):
        [alone] = SurpriseKernel().stein_features_each(weighted_edits(model, operator, data))
        torch.testing.assert_close(matrix.values, alone.values, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(together[0].values, together[1].values)


def test_steps_along_the_witness() -> None:
    data = walks(5)
    found = weighted_edits(walk(), ZanellaOperator(), data)
    [matrix] = SurpriseKernel().stein_features_each(found)
    steps = SurpriseKernel().steps_along(found, Witness.of(matrix, 0, len(data)))
    psi = matrix.values[:, 0]
    assert found.log_ratio is not None
    expected = (found.log_ratio.masked_fill(found.log_ratio == -torch.inf, 0.0)) * (psi.sum() - psi)[found.edits.owner]
    torch.testing.assert_close(steps, expected, rtol=1e-12, atol=1e-12)
    products = SurpriseKernel().edit_products(found, matrix)
    torch.testing.assert_close((found.weights * products).sum(), matrix.others().sum())


def test_a_positive_mean_says_that_the_model_makes_more_probable_sequences() -> None:
    model = walk(hold=0.05)
    operator = ZanellaOperator(balancing="barker")
    for hold, sign in ((0.6, 1), (0.0, -1)):
        data = walk(hold=hold).draw(60, torch.Generator().manual_seed(0))
        [matrix] = stein_matrices(model, data, [View("surprise", operator, SurpriseKernel())])
        assert isinstance(matrix, FeatureMatrix)
        assert float(matrix.values.mean()) * sign > 0


def test_log_ratios_are_needed() -> None:
    data = walks(3)
    edits = zs().edits(data)
    weights = torch.ones(len(edits), dtype=torch.double)
    kernel = SurpriseKernel()
    message = "chunk: expected edits with log-ratios, found weights only; use weighted_edits"
    with pytest.raises(ValueError, match=message):
        kernel.stein(data, edits, weights)
    with pytest.raises(ValueError, match=message):
        kernel.few_changes(WeightedEdits(0, data, edits, weights))
    with pytest.raises(
        ValueError, match="the surprise kernel needs the log-probabilities of a model: use it in a View"
    ):
        kernel.gram(data, data)


def test_words() -> None:
    kernel = SurpriseKernel()
    assert (kernel.feature_kind, kernel.feature_label(0, 3)) == ("surprise", "log-probability")
    assert kernel.meaning == "the probability of the sequences"
    assert kernel.has_features


def test_edits_that_are_hardly_possible_count() -> None:
    rare = math.exp(-40)
    probs = torch.tensor([1 - rare, rare], dtype=torch.double)
    model = MarkovSequence.from_transitions(probs, probs.expand(2, 2), stop=0.5)
    view = View("surprise", ZanellaOperator(Substitutions(), "mpf"), SurpriseKernel())
    [matrix] = stein_matrices(model, Sequences.of([[0], [0, 0]], 2), [view])
    assert isinstance(matrix, FeatureMatrix)
    assert matrix.values[:, 0].tolist() == pytest.approx([-40 * math.exp(-20), -80 * math.exp(-20)], rel=1e-9)
