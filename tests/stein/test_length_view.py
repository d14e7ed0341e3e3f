# SPDX-License-Identifier: Apache-2.0
"""Which view of the length suits a model: with estimated lengths, with known ones, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import IndependentSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import barker, metropolis
from pyro_ksd.stein.length_features import smooth_features
from pyro_ksd.stein.length_view import known_length_view, length_view, with_estimated_lengths
from pyro_ksd.stein.operators import LengthOperator, TailBlockOperator
from pyro_ksd.stein.views import View

TAIL = zs(locations=1)
LENGTHS = torch.tensor([0.0, 0.0, 0.4, 0.3, 0.2, 0.1], dtype=torch.double)
MODEL = IndependentSequence(torch.tensor([0.3, 0.7], dtype=torch.double), LENGTHS)
DATA = Sequences.of([[0] * length for length in (2, 3, 4, 5)] * 10, 2)


def own_distribution() -> LengthDistribution:
    return LengthDistribution(2, LENGTHS[2:])


def mean_psi(view: View) -> list[float]:
    """The Stein features of one sequence of each length, weighted by the probabilities of the lengths."""
    [matrix] = stein_matrices(MODEL, DATA[:4], [view])
    assert isinstance(matrix, FeatureMatrix)
    return torch.mv(matrix.values.t(), LENGTHS[2:]).tolist()


def test_ratios_tell_the_lengths() -> None:
    view = length_view(MODEL, DATA, TAIL, metropolis)
    assert view is not None
    assert view.name == "length"
    assert isinstance(view.operator, TailBlockOperator)
    assert isinstance(view.kernel, LengthKernel)
    assert view.kernel.distribution is not None
    assert view.kernel.distribution.shortest == 2
    assert view.kernel.distribution.probability.tolist() == pytest.approx(LENGTHS[2:].tolist())
    assert mean_psi(view) == pytest.approx([0.0] * 5, abs=1e-9)


def test_draws_have_hardly_any_lengths_beyond_theirs() -> None:
    """The last ratio goes on, for at most three in as many sequences as were drawn; walks find all lengths."""
    geometric = torch.tensor([0.0, *(0.8**k for k in range(60))], dtype=torch.double)
    model = IndependentSequence(torch.tensor([0.3, 0.7], dtype=torch.double), geometric / geometric.sum())
    few = Sequences.of([[0] * length for length in (1, 2, 3, 4)] * 25, 2)
    as_draws = length_view(model, few, TAIL, barker, drawn=True)
    as_data = length_view(model, few, TAIL, barker)
    assert as_draws is not None
    assert as_data is not None
    assert as_draws.kernel.distribution.mean < 3 < 4 < as_data.kernel.distribution.mean  # type: ignore[attr-defined]


def test_no_view_of_a_fixed_length() -> None:
    fixed = IndependentSequence(torch.tensor([0.3, 0.7], dtype=torch.double), torch.tensor([0.0, 0.0, 1.0]).double())
    assert length_view(fixed, Sequences.of([[0, 1]] * 5, 2), TAIL, barker) is None


def test_known_lengths() -> None:
    view = known_length_view(own_distribution(), TAIL, metropolis)
    assert view is not None
    assert view.name == "length"
    assert isinstance(view.operator, LengthOperator)
    assert mean_psi(view) == pytest.approx([0.0] * 5, abs=1e-9)
    wrong = known_length_view(LengthDistribution(2, LENGTHS[2:].flip(0)), TAIL, metropolis)
    assert wrong is not None
    assert abs(mean_psi(wrong)[0]) > 0.5


@pytest.mark.parametrize("num_lengths", [1, 2])
def test_one_known_length_gives_no_view_and_two_give_one(num_lengths: int) -> None:
    even = torch.full((num_lengths,), 1 / num_lengths, dtype=torch.double)
    assert (known_length_view(LengthDistribution(3, even), TAIL, barker) is None) == (num_lengths == 1)


def test_edits_that_keep_the_length_give_no_view_of_known_lengths() -> None:
    assert known_length_view(own_distribution(), Substitutions(), barker) is None


def test_estimated_lengths_as_if_they_were_exact() -> None:
    view = length_view(MODEL, DATA, TAIL, metropolis)
    assert view is not None
    known = with_estimated_lengths(replace(view, name="tail", weight=0.25))
    assert (known.name, known.weight) == ("tail", 0.25)
    assert isinstance(known.operator, LengthOperator)
    assert known.operator.distribution.probability.allclose(LENGTHS[2:])
    places = torch.arange(2, 7)
    expected = smooth_features(own_distribution(), metropolis)
    assert known.kernel.feature(places).allclose(expected)  # type: ignore[attr-defined]


def test_other_views_stay_as_they_are() -> None:
    unknown = View("length", TailBlockOperator(barker, TAIL), LengthKernel())
    exact = known_length_view(own_distribution(), TAIL, barker)
    assert exact is not None
    for view in (unknown, exact):
        assert with_estimated_lengths(view) is view
