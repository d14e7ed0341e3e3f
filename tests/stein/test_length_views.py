# SPDX-License-Identifier: Apache-2.0
"""Views of the length: the features are functions of the length, less their exact means."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from example_models import Unsampled, walk, walks

from pyro_ksd.checks.model_check import ksd_check
from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood, zs
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import IndependentSequence, MarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import barker
from pyro_ksd.stein.length_views import known_length_view, length_view, with_estimated_lengths
from pyro_ksd.stein.operators import LengthOperator, TailBlockOperator
from pyro_ksd.stein.views import View

TAIL = zs(locations=1)
FIVE = LengthDistribution(1, torch.tensor([0.1, 0.4, 0.1, 0.3, 0.1], dtype=torch.double))


def one_length() -> LengthDistribution:
    return LengthDistribution(4, torch.ones(1, dtype=torch.double))


def known(distribution: LengthDistribution, tail: Neighborhood = TAIL) -> View:
    view = known_length_view(distribution, tail, barker)
    assert view is not None
    return view


def stops_by_symbol(low: float, high: float) -> MarkovSequence:
    """A symbol is followed by each of four with the same probability; after two of them, sequences stop more often."""
    even = torch.full((4, 4), 0.25, dtype=torch.double)
    return MarkovSequence.from_transitions(even[0], even, torch.tensor([low, low, high, high], dtype=torch.double))


def test_the_features_have_mean_zero_and_variance_one_under_the_distribution() -> None:
    """Whatever the symbols are: here each length has one sequence, whose symbols the model finds improbable."""
    data = Sequences.of([[0] * int(length) for length in FIVE.lengths], 5)
    [matrix] = stein_matrices(walk(hold=0.01), data, [known(FIVE)])
    assert isinstance(matrix, FeatureMatrix)
    features = matrix.values.to_dense()
    torch.testing.assert_close(FIVE.probability @ features, torch.zeros(5, dtype=torch.double), rtol=0, atol=1e-12)
    variances = FIVE.probability @ features.square()
    torch.testing.assert_close(variances[:4], torch.ones(4, dtype=torch.double), rtol=1e-10, atol=0)


def test_the_first_feature_is_the_rank_of_the_length() -> None:
    """Neyman's first component, with ranks in the middle of each probability; longer sequences have larger ranks."""
    data = Sequences.of([[0] * int(length) for length in FIVE.lengths], 5)
    [matrix] = stein_matrices(walk(hold=0.01), data, [known(FIVE)])
    assert isinstance(matrix, FeatureMatrix)
    rank = FIVE.probability.cumsum(0) - FIVE.probability / 2
    centered = rank - FIVE.probability @ rank
    expected = -centered / (FIVE.probability @ centered.square()).sqrt()
    torch.testing.assert_close(matrix.values.to_dense()[:, 0], expected, rtol=1e-10, atol=1e-12)


def test_known_lengths_need_edits_that_change_all_of_them() -> None:
    assert isinstance(known(FIVE).operator, LengthOperator)
    assert isinstance(known(FIVE, BeforeEnd(TAIL)).operator, LengthOperator)
    may_be_empty = LengthDistribution(0, FIVE.probability)
    assert known_length_view(may_be_empty, BeforeEnd(TAIL), barker) is None
    assert known_length_view(FIVE, zs(locations=1, insertable=[0]), barker) is None
    assert known_length_view(one_length(), TAIL, barker) is None


def test_lengths_with_hardly_any_probability_are_left_out() -> None:
    with_gap = LengthDistribution(0, torch.tensor([1e-12, 0.5, 0.0, 0.5, 1e-15], dtype=torch.double))
    operator = known(with_gap).operator
    assert isinstance(operator, LengthOperator)
    assert operator.distribution.shortest == 1
    torch.testing.assert_close(
        operator.distribution.probability, torch.tensor([0.5, 1e-9, 0.5], dtype=torch.double), rtol=1e-8, atol=0
    )


def test_an_estimate_is_taken_for_exact_beside_draws() -> None:
    data = walks(40)
    estimated = length_view(Unsampled(walk()), data, TAIL, barker, drawn=True)
    assert estimated is not None
    assert isinstance(estimated.operator, TailBlockOperator)
    assert isinstance(estimated.kernel, LengthKernel)
    assert estimated.kernel.distribution is not None
    found = with_estimated_lengths(View("my length", estimated.operator, estimated.kernel, weight=0.5))
    assert (found.name, found.weight) == ("my length", 0.5)
    assert isinstance(found.operator, LengthOperator)
    expected = estimated.kernel.distribution.without_gaps()
    assert found.operator.distribution.probability.equal(expected.probability)
    assert found.operator.balancing is estimated.operator.balancing
    assert found.operator.neighborhood is estimated.operator.neighborhood


@pytest.mark.parametrize(
    "view",
    [
        known(FIVE),
        View("length", TailBlockOperator(), LengthKernel()),
        View("length", TailBlockOperator(), LengthKernel(distribution=one_length())),
        View("length", TailBlockOperator(neighborhood=zs(1, insertable=[0])), LengthKernel(distribution=FIVE)),
    ],
    ids=["known", "squared length", "one length", "edits of one symbol"],
)
def test_other_views_stay_the_same(view: View) -> None:
    assert with_estimated_lengths(view) is view


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
@pytest.mark.parametrize("stops", [(0.01, 0.39), (0.2, 0.2)])
def test_wrong_lengths_are_seen_whatever_the_stops_depend_on(stops: tuple[float, float], bootstrap: str) -> None:
    """Data of 3 to 7 symbols with the right mean; where stops depend on symbols, edits of the last one hide it."""
    generator = torch.Generator().manual_seed(0)
    lengths = 3 + torch.randint(5, (60,), generator=generator)
    data = Sequences.of([torch.randint(4, (int(length),), generator=generator).tolist() for length in lengths], 4)
    options = {"views": "length", "num_bootstrap": 199, "bootstrap": bootstrap, "progress": False}
    check = ksd_check(stops_by_symbol(*stops), data, **options)  # type: ignore[arg-type]
    assert float(check["ksd"]["p_value_overall"]) <= 0.01


def test_a_refitted_model_is_compared_with_its_own_lengths() -> None:
    model: SequenceModel = walk()
    distribution = model.length_distribution()
    assert distribution is not None
    view = known(distribution)
    longer = MarkovSequence.from_transitions(
        torch.full((5,), 0.2, dtype=torch.double), torch.full((5, 5), 0.2, dtype=torch.double), 0.05
    )
    other = view.under(longer).operator
    assert isinstance(other, LengthOperator)
    assert other.distribution.mean == pytest.approx(20.0, abs=1e-5)  # lengths below 1e-9 are left out
    assert view.under(Unsampled(longer)) is view
    assert view.under(walk()) is not view


def test_the_sequences_of_a_length_share_its_rates() -> None:
    """A birth-death process with the exact distribution: its flow up is its flow down, by all sequences together."""
    space = [list(x) for length in FIVE.lengths.tolist() for x in product(range(2), repeat=length)]
    data = Sequences.of(space, 2)
    operator = known(FIVE).operator
    edits = operator.neighborhood.edits(data)
    ratio = torch.randn(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    weights = operator.weights(data, edits, ratio)
    p = FIVE.probability[data.lengths - 1] * 0.5 ** data.lengths.double()
    old = data.lengths[edits.owner]
    flow = torch.zeros(7, 7, dtype=torch.double)
    flow.index_put_((old, edits.new_lengths(data.lengths)), weights * p[edits.owner], accumulate=True)
    torch.testing.assert_close(flow.triu(1), flow.tril(-1).T, rtol=1e-12, atol=1e-15)
    assert (flow.diagonal(1)[1:5] > 0.01).all()
    assert float(flow.sum() - flow.diagonal(1).sum() - flow.diagonal(-1).sum()) == 0.0


def symbols_with(lengths: torch.Tensor) -> IndependentSequence:
    return IndependentSequence(torch.tensor([0.3, 0.7], dtype=torch.double), lengths)


def test_ratios_tell_the_lengths() -> None:
    model = symbols_with(torch.tensor([0.0, 0.0, 0.4, 0.3, 0.2, 0.1], dtype=torch.double))
    view = length_view(model, Sequences.of([[0] * length for length in (2, 3, 4, 5)] * 10, 2), TAIL, barker)
    assert view is not None
    assert view.name == "length"
    assert isinstance(view.operator, TailBlockOperator)
    assert isinstance(view.kernel, LengthKernel)
    assert view.kernel.distribution is not None
    assert view.kernel.distribution.shortest == 2
    assert view.kernel.distribution.probability.tolist() == pytest.approx([0.4, 0.3, 0.2, 0.1])


def test_draws_have_hardly_any_lengths_beyond_theirs() -> None:
    """The last ratio goes on, for at most three in as many sequences as were drawn; walks find all lengths."""
    geometric = torch.tensor([0.0, *(0.8**k for k in range(60))], dtype=torch.double)
    model = symbols_with(geometric / geometric.sum())
    few = Sequences.of([[0] * length for length in (1, 2, 3, 4)] * 25, 2)
    means = []
    for options in ({"drawn": True}, {}):
        view = length_view(model, few, TAIL, barker, **options)
        assert view is not None
        assert isinstance(view.kernel, LengthKernel)
        assert view.kernel.distribution is not None
        means.append(view.kernel.distribution.mean)
    assert means[0] < 3 < 4 < means[1]


def test_no_view_of_a_fixed_length() -> None:
    fixed = symbols_with(torch.tensor([0.0, 0.0, 1.0], dtype=torch.double))
    assert length_view(fixed, Sequences.of([[0, 1]] * 5, 2), TAIL, barker) is None


def test_two_known_lengths_are_enough() -> None:
    assert known_length_view(LengthDistribution(3, torch.full((2,), 0.5, dtype=torch.double)), TAIL, barker) is not None
