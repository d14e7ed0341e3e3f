# SPDX-License-Identifier: Apache-2.0
"""Models conditioned on a set of permitted sequences, against enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from example_models import Unsampled, bounded_chain, random_entries, small_mrf, walk
from scipy.stats import chisquare
from torch import Tensor

from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.kernels import ContiguousKernel, LengthKernel, StartKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import LinearChainMRF, SequenceDistribution, SequenceModel
from pyro_ksd.models.wrappers.constrained import ConstrainedModel, constrain
from pyro_ksd.models.wrappers.sampler import with_sampler
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, default_views

SIZE, LONGEST = 3, 4


MODELS: dict[str, SequenceDistribution] = {
    "MRF": small_mrf(SIZE, LONGEST),
    "MRF with a ban": LinearChainMRF(random_entries(SIZE, SIZE).fill_diagonal_(-torch.inf), max_length=LONGEST),
    "chain": bounded_chain(),
}


def ends_with_2(x: Sequences) -> Tensor:
    last = torch.arange(x.width) == x.lengths[:, None] - 1
    return (last & (x.tokens == 2)).any(1)


def at_most_2_long(x: Sequences) -> Tensor:
    return x.lengths <= 2


def starts_and_ends_alike(x: Sequences) -> Tensor:
    return torch.tensor([not row or row[0] == row[-1] for row in x.to_lists()])


SETS = {
    "ends with 2": (ends_with_2, lambda x: x[-1:] == (2,)),
    "length": (at_most_2_long, lambda x: len(x) <= 2),
    "alike": (starts_and_ends_alike, lambda x: x[:1] == x[-1:]),
}

LISTS = [x for length in range(LONGEST + 1) for x in product(range(SIZE), repeat=length)]
SPACE = Sequences.of(LISTS, SIZE)


def truth(model: SequenceDistribution, permitted: Any) -> Tensor:
    """The conditional probabilities of all sequences, ``[N]``."""
    p = torch.tensor([permitted(x) for x in LISTS]) * model.log_joint(SPACE).exp()
    return p / p.sum()


@pytest.mark.parametrize("chosen", SETS)
@pytest.mark.parametrize("name", MODELS)
def test_probabilities_and_ratios_against_enumeration(name: str, chosen: str) -> None:
    predicate, permitted = SETS[chosen]
    model, p = constrain(MODELS[name], predicate), truth(MODELS[name], permitted)
    assert 0 < int((p > 0).sum()) < int((MODELS[name].log_joint(SPACE) > -torch.inf).sum())
    torch.testing.assert_close(model.log_joint(SPACE).softmax(0), p, rtol=1e-13, atol=0)

    data = SPACE[p > 0]
    edits = zs().edits(data)
    index = {x: row for row, x in enumerate(LISTS)}
    rows = [index.get(tuple(y), -1) for y in edits.apply(data).to_lists()]  # type: ignore[arg-type]
    after = torch.cat([p, torch.zeros(1)])[rows]  # sequences beyond the space are impossible
    expected = after.log() - p[p > 0].log()[edits.owner]
    found = model.log_ratio(data, edits)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert (found == -torch.inf).any()
    assert found.isfinite().any()


def test_chunks_of_edits_do_not_change_the_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ConstrainedModel(MODELS["MRF"], ends_with_2)
    data = SPACE[ends_with_2(SPACE)]
    edits = zs().edits(data)
    whole = model.log_ratio(data, edits)
    monkeypatch.setattr("pyro_ksd.models.wrappers.constrained.EDITED_SEQUENCES", 7)
    assert torch.equal(model.log_ratio(data, edits), whole)


def test_no_edit_at_all() -> None:
    model = ConstrainedModel(MODELS["MRF"], at_most_2_long)
    data = Sequences.of([[], []], SIZE)
    assert model.log_ratio(data, Substitutions().edits(data)).shape == (0,)


def test_the_model_is_not_asked_outside_the_set() -> None:
    class Short(Unsampled):
        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            assert edits.new_lengths(sequences.lengths).max() <= 2
            return super().log_ratio(sequences, edits)

    data = Sequences.of([[0, 2], [1]], SIZE)
    found = constrain(Short(MODELS["MRF"]), at_most_2_long).log_ratio(data, zs().edits(data))
    assert (found == -torch.inf).equal(zs().edits(data).new_lengths(data.lengths) > 2)


@pytest.mark.parametrize(
    "operator",
    [ZanellaOperator(), ZanellaOperator(zs(2), "mpf"), TailBlockOperator()],
    ids=["zs", "zs, 2 locations, mpf", "tail block"],
)
@pytest.mark.parametrize("chosen", SETS)
@pytest.mark.parametrize("name", MODELS)
def test_stein_identity(name: str, chosen: str, operator: Any) -> None:
    predicate, permitted = SETS[chosen]
    p = truth(MODELS[name], permitted)
    data, p = SPACE[p > 0], p[p > 0]
    views = [View(str(k), operator, k) for k in (ContiguousKernel(1, 3), StartKernel(), LengthKernel())]
    found = stein_matrices(constrain(MODELS[name], predicate), data, views)
    assert largest_mean(found, p) < 1e-12
    assert largest_mean(stein_matrices(MODELS[name], data, views), p) > 1e-3  # the model as it was is another one


def largest_mean(matrices: list[Any], p: Tensor) -> float:
    assert all(isinstance(matrix, FeatureMatrix) for matrix in matrices)
    return max(value for matrix in matrices for value in matrix.weighted_sum(p[None])[0].abs().tolist())


@pytest.mark.parametrize("chosen", SETS)
@pytest.mark.parametrize("name", MODELS)
def test_rejection_draws_from_the_conditional_law(name: str, chosen: str) -> None:
    predicate, permitted = SETS[chosen]
    model, p = constrain(MODELS[name], predicate), truth(MODELS[name], permitted)
    assert model.can_draw
    drawn = model.draw(5_000, torch.Generator().manual_seed(5))
    assert len(drawn) == 5_000
    index = {x: row for row, x in enumerate(LISTS)}
    rows = torch.tensor([index[tuple(x)] for x in drawn.to_lists()])  # type: ignore[index]
    counts = rows.bincount(minlength=len(LISTS))
    assert counts[p == 0].sum() == 0
    assert chisquare(counts[p > 0], 5_000 * p[p > 0]).pvalue > 1e-3


def test_seeds() -> None:
    model = constrain(MODELS["MRF"], ends_with_2)
    assert model.can_draw
    state = torch.get_rng_state()
    one, two, other = (model.draw(50, torch.Generator().manual_seed(seed)).to_lists() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert one == two != other
    with torch.random.fork_rng():  # without a generator the global stream counts, as for the distributions
        torch.manual_seed(0)
        first, second = model.draw(50).to_lists(), model.draw(50).to_lists()
        torch.manual_seed(0)
        assert first == model.draw(50).to_lists() != second


def test_sampleable_exactly_if_the_model_is() -> None:
    assert constrain(MODELS["MRF"], ends_with_2).can_draw
    unsampled = constrain(Unsampled(MODELS["MRF"]), ends_with_2)
    assert isinstance(unsampled, SequenceModel)
    assert not unsampled.can_draw
    assert with_sampler(unsampled, MODELS["MRF"].draw).can_draw
    assert constrain(constrain(MODELS["MRF"], ends_with_2), at_most_2_long).can_draw
    assert unsampled.alphabet_size == SIZE


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_goodness_of_fit(bootstrap: Any) -> None:
    """The conditioning is what makes the model fit: without it, the data lack short sequences."""

    def at_least_4_long(x: Sequences) -> Tensor:
        return x.lengths >= 4

    model, other = constrain(walk(), at_least_4_long), constrain(walk(hold=0.6), at_least_4_long)
    assert model.can_draw
    assert other.can_draw

    def p_value(tested: SequenceModel, truth: SequenceModel) -> float:
        data = truth.draw(40, torch.Generator().manual_seed(3))
        found = goodness_of_fit(tested, data, default_views(), bootstrap=bootstrap, num_bootstrap=199)
        assert found.kind == bootstrap
        return found.p_value_overall

    assert p_value(model, model) > 0.05
    assert p_value(model, other) <= 0.03
    assert p_value(walk(), model) <= 0.03


def test_data_outside_the_set_are_named() -> None:
    data = Sequences.of([[0, 2], [2, 0], [2]], SIZE)
    views = [View("", ZanellaOperator(), ContiguousKernel(1))]
    with pytest.raises(ValueError, match=r"probability zero to 1 of 3 sequences: sequence 1, \[2, 0\]\. It"):
        goodness_of_fit(constrain(MODELS["MRF"], ends_with_2), data, views)


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (lambda x: x.lengths, r"torch.int64 \[2\]"),
        (lambda x: x.tokens == 0, r"torch.bool \[2, 2\]"),
        (lambda x: (x.tokens == 0).any(), r"torch.bool \[\]"),
        (lambda x: [True] * len(x), "list"),
    ],
)
def test_a_bad_predicate(predicate: Any, found: str) -> None:
    model, data = constrain(MODELS["MRF"], predicate), Sequences.of([[0, 1], [2]], SIZE)
    with pytest.raises(ValueError, match=rf"predicate: expected a boolean tensor \[2\], .* found {found}; compare"):
        model.log_joint(data)
    with pytest.raises(ValueError, match="predicate: expected a boolean tensor"):
        model.log_ratio(data, zs().edits(data))


def test_draws_are_those_of_the_model_within_that_lie_in_the_set() -> None:
    class Cycle(Unsampled):
        """Draws the whole space again and again."""

        def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
            return SPACE[torch.arange(num_sequences) % len(SPACE)]

    model = constrain(Cycle(MODELS["MRF"]), ends_with_2)
    assert model.can_draw
    inside = [list(x) for x in LISTS if x[-1:] == (2,)]
    assert model.draw(len(inside)).to_lists() == inside
    without = constrain(Unsampled(MODELS["MRF"]), ends_with_2)
    with pytest.raises(ValueError, match="expected a model that can be sampled, found Unsampled"):
        without.draw(3)
    with pytest.raises(ValueError, match="num_sequences: expected an integer of at least 1, found 0"):
        model.draw(0)


def test_check_of_data_outside_the_set() -> None:
    model = constrain(MODELS["MRF"], ends_with_2)
    model.check_data(Sequences.of([[0, 2], [2]], SIZE))
    data = Sequences.of([[2, 0], [0, 2], [], [1], [0, 0]], SIZE)
    message = r"found 4 of 5 sequences outside: sequence 0, \[2, 0\]; sequence 2, \[\]; sequence 3, \[1\]; ...; leave"
    with pytest.raises(ValueError, match=message):
        model.check_data(data)
    assert model.contains(data).tolist() == [False, True, False, False, False]


def test_draws_for_covariates_are_inside_and_have_them() -> None:
    covariates = Covariates.of({"dose": torch.arange(20.0)}, 20)
    model = constrain(bounded_chain(), ends_with_2, max_proposals=5_000)
    found = model.draw_given(covariates, torch.Generator().manual_seed(0))
    assert ends_with_2(found).all()
    assert found.covariates is not None
    assert found.covariates.values["dose"].tolist() == list(range(20))  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="covariates: expected those of sequences"):
        model.draw_given(torch.arange(4))  # type: ignore[arg-type]
    never = constrain(bounded_chain(), lambda x: x.lengths < 0, max_proposals=300)
    with pytest.raises(ValueError, match=r"found none for 20 of them in 3\d\d proposals of the model; raise"):
        never.draw_given(covariates)


def test_one_proposal_may_be_all_that_is_permitted() -> None:
    assert len(constrain(bounded_chain(), lambda x: x.lengths >= 0, max_proposals=1).draw(1)) == 1
    with pytest.raises(ValueError, match="max_proposals: expected an integer of at least 1, found 0"):
        constrain(bounded_chain(), at_most_2_long, max_proposals=0)


def test_a_wrong_generator_is_refused() -> None:
    with pytest.raises(ValueError, match="generator: expected"):
        constrain(walk(), at_most_2_long).draw(3, 5)  # type: ignore[arg-type]
