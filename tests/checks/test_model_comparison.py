# SPDX-License-Identifier: Apache-2.0
"""The relative test, and the call that compares models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
import xarray as xr
from example_models import Unsampled, walk
from pyro import poutine
from scipy.stats import binom
from synthetic_comparison import made_up_comparison
from torch import Tensor

from pyro_ksd import LinearChainMRF, MarkovSequence, Sequences, View, ksd_check
from pyro_ksd.checks.model_comparison import ksd_compare
from pyro_ksd.fit_tests.relative import RelativeFit, RowSums, jackknife_error, leave_one_out, relative_fit
from pyro_ksd.kernels import HammingKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SteinMatrix
from pyro_ksd.models import SequenceModel
from pyro_ksd.results.comparison_table import compare_table
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import default_views

LEVEL = 0.05
VIEWS = ["content-1", "content-2", "content-3", "start", "length"]
DATA = walk(hold=0.3).draw(40, torch.Generator().manual_seed(0))
WALKS = {f"hold {hold}": walk(hold=hold) for hold in (0.0, 0.3, 0.6)}


def draws(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def compare(models: Any, data: Any, **arguments: Any) -> xr.Dataset:
    return ksd_compare(models, data, progress=False, **arguments)["ksd_compare"].to_dataset()


# The jackknife, against statistics computed again without each sequence


def grams(models: int = 3, views: int = 2, size: int = 7) -> Tensor:
    """``[K, V, n, n]``, positive semi-definite and of different scales."""
    psi = draws(0, models, views, size, 3) + 0.5
    return psi @ psi.mT * torch.tensor([1.0, 50.0]).double()[:, None, None]


def sums(matrices: Tensor) -> list[RowSums]:
    return [RowSums.of([GramMatrix(matrix) for matrix in own]) for own in matrices]


def scales(matrices: Tensor) -> list[float]:
    return [sum(float(own[view].diagonal().mean()) for own in matrices) / len(matrices) for view in range(2)]


def with_overall(matrices: Tensor, whole: Tensor) -> list[list[float]]:
    """The U-statistics of each model, and their sum on common scales in the unit of the whole data, by plain loops."""
    n = matrices.shape[-1]
    first, second = scales(matrices)
    unit = math.sqrt(first * second) / math.sqrt(math.prod(scales(whole)))
    rows = []
    for own in matrices.tolist():
        u = [sum(h[i][j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1)) for h in own]
        rows.append([*u, unit * (u[0] / first + u[1] / second)])
    return rows


def jackknife(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt((len(values) - 1) / len(values) * sum((value - mean) ** 2 for value in values))


def test_errors_are_those_of_leaving_out_one_sequence_after_the_other() -> None:
    matrices = grams()
    found = relative_fit(sums(matrices))
    assert found.statistic.tolist() == [pytest.approx(row, rel=1e-12) for row in with_overall(matrices, matrices)]
    rest = [[j for j in range(7) if j != i] for i in range(7)]
    left_out = [with_overall(matrices[..., kept, :][..., kept], matrices) for kept in rest]
    for view in range(3):
        for p in range(3):
            own = jackknife([values[p][view] for values in left_out])
            assert float(found.standard_error[p, view]) == pytest.approx(own, rel=1e-10)
            for q in range(3):
                error = jackknife([values[p][view] - values[q][view] for values in left_out])
                assert float(found.difference_error[p, q, view]) == pytest.approx(error, rel=1e-10)
                expected = float(found.statistic[p, view] - found.statistic[q, view])
                assert float(found.difference[p, q, view]) == pytest.approx(expected)
                assert float(found.z[p, q, view]) == pytest.approx(expected / error if p != q else 0)
                p_value = math.erfc(abs(expected / error) / 2**0.5) if p != q else 1
                assert float(found.p_value[p, q, view]) == pytest.approx(p_value)


def test_the_jackknife_variance_has_a_closed_form() -> None:
    others = RowSums.of([GramMatrix(matrix) for matrix in grams()[0]]).others
    closed = 4 / (7 * 6 * 5**2) * (others - others.mean(-1, keepdim=True)).square().sum(-1)
    torch.testing.assert_close(jackknife_error(leave_one_out(others)) ** 2, closed, rtol=1e-12, atol=0)


def test_sums_are_those_of_any_form_of_the_matrix() -> None:
    psi = draws(1, 9, 4)
    forms: list[SteinMatrix] = [FeatureMatrix(psi), GramMatrix(psi @ psi.T)]
    found = RowSums.of(forms)
    torch.testing.assert_close(found.others[0], found.others[1])
    torch.testing.assert_close(found.diagonal[0], found.diagonal[1])


def test_one_model_against_another_is_the_other_way_round() -> None:
    found = relative_fit(sums(grams()))
    for values in (found.difference, found.z):
        assert torch.equal(values, -values.transpose(0, 1))
        assert values.abs().sum() > 0
    for values in (found.difference_error, found.p_value):
        assert torch.equal(values, values.transpose(0, 1))
    turned = relative_fit(sums(grams())[::-1])
    torch.testing.assert_close(turned.z.flip(0, 1), found.z)
    assert torch.equal(turned.rank.flip(0), found.rank)


def test_ranks_count_the_better_models() -> None:
    found = relative_fit(sums(grams()))
    for view in range(3):
        statistics = found.statistic[:, view].tolist()
        assert found.rank[:, view].tolist() == [1 + sorted(statistics).index(value) for value in statistics]


def test_a_model_and_its_copy_cannot_be_told_apart() -> None:
    matrices = grams(2)
    matrices[1] = matrices[0]
    found = relative_fit(sums(matrices))
    assert found.z.abs().max() == 0
    assert found.p_value.min() == 1
    assert found.rank.tolist() == [[1, 1, 1]] * 2


@pytest.mark.parametrize(("noise", "same"), [(1e-7, True), (1e-3, False)])
def test_rounding_is_no_difference(noise: float, same: bool) -> None:
    psi = draws(2, 50, 4) + 0.5
    other = psi * (1 + noise * draws(3, 50, 4))
    found = relative_fit([RowSums.of([FeatureMatrix(psi)]), RowSums.of([FeatureMatrix(other)])])
    assert bool((found.z == 0).all()) == same


def test_data_without_spread_say_nothing() -> None:
    matrices = torch.stack([torch.full((1, 8, 8), value, dtype=torch.double) for value in (1.0, 3.0)])
    found = relative_fit(sums(matrices))
    assert found.difference[1, 0].tolist() == pytest.approx([2.0, 1.0])
    assert found.p_value.min() == 1


def test_a_view_that_sees_nothing_does_not_change_all_together() -> None:
    matrices = grams()
    matrices[:, 1] = 0
    found = relative_fit(sums(matrices))
    assert found.z[..., 1].abs().max() == 0
    torch.testing.assert_close(found.z[..., 2], found.z[..., 0])  # and one view alone is all views
    nothing = relative_fit(sums(0 * matrices))
    assert nothing.statistic.abs().max() == nothing.z.abs().max() == 0


def test_one_sequence_may_be_all_that_a_view_sees() -> None:
    matrices = grams()
    matrices[:, 1] = 0
    matrices[:, 1, 3, 3] = 5.0
    found = relative_fit(sums(matrices))
    assert bool(found.z.isfinite().all())
    assert found.z[..., 1].abs().max() == 0


def test_no_view_dominates_because_of_its_units() -> None:
    matrices = grams()
    found = relative_fit(sums(matrices))
    matrices[:, 1] *= 1e6
    again = relative_fit(sums(matrices))
    torch.testing.assert_close(again.statistic[:, 2], found.statistic[:, 2])
    torch.testing.assert_close(again.z, found.z)


def test_too_few_sequences_and_overflow() -> None:
    with pytest.raises(ValueError, match="expected at least 3 sequences, found 2; the error of a difference"):
        relative_fit(sums(grams(size=2)))
    with pytest.raises(ValueError, match=r"the statistic overflows.*use a bounded balancing function"):
        relative_fit(sums(grams() * 1e308))


# The level


def in_runs(models: Sequence[SequenceModel], data: Sequences, size: int) -> list[RelativeFit]:
    """Comparisons on consecutive parts of the data; Stein features are computed once, for all of them."""
    matrices = [stein_matrices(model, data, default_views()) for model in models]
    found = []
    for begin in range(0, len(data), size):
        rows = [[one.rows(begin, begin + size) for one in own if isinstance(one, FeatureMatrix)] for own in matrices]
        found.append(relative_fit([RowSums.of(own) for own in rows]))
    return found


def mirrored(lean: float) -> tuple[MarkovSequence, MarkovSequence]:
    """Two chains that become each other if the symbols 0 and 1 change names; without ``lean`` they are the same."""
    start = torch.tensor([1 / 3 + lean / 2, 1 / 3 - lean / 2, 1 / 3], dtype=torch.double)
    moves = torch.tensor([[0.2 + lean, 0.5 - lean, 0.3], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4]], dtype=torch.double)
    turned = [1, 0, 2]
    return tuple(  # type: ignore[return-value]
        MarkovSequence.from_transitions(start[order], moves[order][:, order], stop=0.2) for order in ([0, 1, 2], turned)
    )


def of_both(models: Sequence[MarkovSequence], num: int, seed: int) -> Sequences:
    """Each sequence from one of the models, at random: by symmetry, both are equally wrong."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [model.draw(num, generator).to_lists() for model in models]
    coins = torch.randint(2, (num,), generator=generator).tolist()
    return Sequences.of([drawn[coin][row] for row, coin in enumerate(coins)], 3)


def rejections(found: list[RelativeFit]) -> list[int]:
    return (torch.stack([one.p_value[0, 1] for one in found]) <= LEVEL).sum(0).tolist()


def test_level_where_two_models_are_equally_wrong() -> None:
    runs, size = 200, 40
    models = mirrored(0.18)
    counts = rejections(in_runs(models, of_both(models, runs * size, 0), size))
    low, high = binom.interval(0.999, runs, LEVEL)
    assert all(count <= high for count in counts)
    assert counts[-1] >= low
    assert counts[4] == 0  # both say the same of lengths


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 30, 100])
@pytest.mark.parametrize("lean", [0.03, 0.18])
def test_level_in_1000_runs(size: int, lean: float) -> None:
    runs = 1000
    models = mirrored(lean)
    found = in_runs(models, of_both(models, runs * size, size), size)
    counts, (low, high) = rejections(found), binom.interval(0.999, runs, LEVEL)
    print(f"\nlean {lean}, n = {size}: {dict(zip([*VIEWS, 'overall'], counts, strict=True))}, {low:.0f} to {high:.0f}")
    assert all(count <= high for count in counts)
    assert counts[-1] >= low


def test_where_all_models_are_right_the_test_is_conservative() -> None:
    # Independent features with mean 0: both statistics are degenerate.
    runs, size = 1000, 30
    psi = draws(4, runs, 2, size, 3)
    found = [relative_fit([RowSums.of([FeatureMatrix(features)]) for features in run]) for run in psi]
    assert rejections(found)[0] <= binom.ppf(0.001, runs, LEVEL)
    difference = torch.stack([one.difference[0, 1, 0] for one in found])
    error = torch.stack([one.difference_error[0, 1, 0] for one in found])
    assert float(error.square().mean() / difference.var()) == pytest.approx(2 * 29 / 28, rel=0.15)


def test_level_where_each_model_is_right_in_the_others_view() -> None:
    # Sequences of very different weight: the scales of the views, which must outweigh each other, are uncertain.
    runs, size = 600, 60
    found = []
    for run in range(runs):
        weight = draws(run, 2, 2, size, 1).square()
        psi = weight * (draws(runs + run, 2, 2, size, 3) + 2 * torch.eye(2).double()[:, :, None, None])
        psi[:, 1] *= 50
        found.append(relative_fit([RowSums.of([FeatureMatrix(features) for features in own]) for own in psi]))
    low, high = binom.interval(0.999, runs, LEVEL)
    first, second, overall = rejections(found)
    assert min(first, second) > 0.9 * runs
    assert low <= overall <= high


def test_any_of_several_equal_models_is_called_worse_no_more_often_than_the_level() -> None:
    runs, size, models = 600, 40, 5
    psi = draws(5, runs, models, size, 1) + 1
    pairs = models * (models - 1) / 2
    smallest = [
        pairs * float(relative_fit([RowSums.of([FeatureMatrix(features)]) for features in run]).p_value[..., 1].min())
        for run in psi
    ]
    alarms = sum(p <= LEVEL for p in smallest)
    assert binom.ppf(0.001, runs, LEVEL / 4) <= alarms <= binom.ppf(0.999, runs, LEVEL)


# Models that differ


def second_order() -> MarkovSequence:
    """A chain on two symbols that likes to say what it said before the last symbol."""
    probs = torch.zeros(3, 3, 3, dtype=torch.double)
    probs[:, :, 2] = 0.1
    probs[..., :2] = 0.45
    for before in range(2):
        probs[before, :2, before], probs[before, :2, 1 - before] = 0.75, 0.15
    probs[2, 2] = torch.tensor([0.5, 0.5, 0.0])
    return MarkovSequence(probs, order=2)


def first_order(data: Sequences) -> MarkovSequence:
    """The chain of order 1 that is fitted to the data."""
    counts = torch.zeros(3, 3, dtype=torch.double)
    for x in data.to_lists():
        for before, here in zip([2, *x], [*x, 2], strict=True):
            counts[before, here] += 1
    return MarkovSequence(counts / counts.sum(-1, keepdim=True))


def test_the_right_order_is_found() -> None:
    right = second_order()
    data = right.draw(200, torch.Generator().manual_seed(3))
    comparison = ksd_compare({"order 1": first_order(data), "order 2": right}, data, progress=False)
    found = comparison["ksd_compare"].to_dataset().sel(model="order 1", model_bis="order 2")
    assert float(found["p_value"].sel(view="overall")) < 0.001
    assert float(found["z"].sel(view="content-3")) > 5  # pairs are fitted, only triples can tell
    table = compare_table(comparison)
    assert table.index.tolist() == ["order 2", "order 1"]
    assert table.loc["order 1", "finding"].startswith("worse (p = ")


def test_statistics_are_those_of_a_check_of_each_model() -> None:
    found = compare(WALKS, DATA)
    assert found["view"].values.tolist() == [*VIEWS, "overall"]
    for name, model in WALKS.items():
        check = ksd_check(model, DATA, num_bootstrap=2, progress=False)["ksd"]
        np.testing.assert_allclose(found["statistic"].sel(model=name, view=VIEWS), check["statistic"], rtol=1e-9)
    assert found["rank"].sel(view="overall").values.tolist() == [3, 1, 2]


def test_layout_is_that_of_the_made_up_comparisons() -> None:
    whole = Sequences.of([[], *DATA.to_lists()], 5)
    with pytest.warns(UserWarning, match="'hold 0.0' gives probability zero to 1 of 41"):
        comparison = ksd_compare(WALKS, whole, progress=False)
    made_up = made_up_comparison(dict.fromkeys(WALKS, 0.0), impossible=1)
    assert set(comparison.children) == set(made_up.children)
    for name, group in made_up.children.items():
        found, expected = comparison[name].to_dataset(), group.to_dataset()
        assert {key: (v.dims, v.dtype) for key, v in found.variables.items()} == {
            key: (v.dims, v.dtype) for key, v in expected.variables.items()
        }
        assert set(expected.attrs) <= set(found.attrs)
        assert found.attrs["creation_library"] == "pyro_ksd"
    attributes = {"kind": "relative", "level": 0.05, "num_sequences": 40}
    assert attributes.items() <= comparison["ksd_compare"].attrs.items()


def test_unnormalized_models() -> None:
    likes_pairs = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.double)
    right, wrong = (LinearChainMRF(factor * likes_pairs, max_length=12) for factor in (1.0, 0.3))
    data = right.draw(150, torch.Generator().manual_seed(0))

    def as_program(factor: float) -> Any:
        def energy(sequences: Tensor, lengths: Tensor) -> None:
            inside = torch.arange(1, sequences.shape[1]) < lengths[:, None]
            pairs = factor * likes_pairs[sequences[:, :-1], sequences[:, 1:]].masked_fill(~inside, 0).sum(-1)
            with pyro.plate("sequences", len(lengths)):
                pyro.factor("energy", pairs.masked_fill((lengths < 1) | (lengths > 12), -torch.inf))

        return energy

    models = {"right": right, "wrong": wrong, "program": as_program(1.0), "wrong program": as_program(0.3)}
    comparison = ksd_compare(models, data, progress=False)
    table = compare_table(comparison)
    assert table["rank"].to_dict() == {"right": 1, "program": 1, "wrong": 3, "wrong program": 3}
    worse = table["finding"].str.startswith("worse")
    assert worse.to_dict() == {"right": False, "program": False, "wrong": True, "wrong program": True}
    assert sum(table["finding"].str.startswith("cannot be told apart from the best")) == 1


def bernoulli_steps(sequences: Tensor, lengths: Tensor) -> None:
    """Symbols and stops with the probabilities ``one`` and ``stop``."""
    one = pyro.sample("one", dist.Beta(1.0, 1.0))
    stop = pyro.param("stop", torch.tensor(0.5))
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Bernoulli(one), obs=sequences[:, t].float())
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=(lengths == t + 1).float())


def test_one_program_with_several_parameters() -> None:
    fair = torch.tensor([0.5, 0.5], dtype=torch.double)
    right = MarkovSequence.from_transitions(fair, fair.expand(2, 2), stop=0.25)
    data = right.draw(200, torch.Generator().manual_seed(0))
    parameters = {
        "fair": {"one": torch.tensor(0.5), "stop": torch.tensor(0.25)},
        "lopsided": {"one": torch.tensor(0.8), "stop": torch.tensor(0.25)},
        "short": {"one": torch.tensor(0.5), "stop": torch.tensor(0.6)},
    }
    comparison = ksd_compare(dict.fromkeys(parameters, bernoulli_steps), data, parameters=parameters, progress=False)
    p_value = comparison["ksd_compare"]["p_value"].sel(model_bis="fair")
    assert float(p_value.sel(model="lopsided", view="content-1")) < 0.001
    assert float(p_value.sel(model="short", view="length")) < 0.001
    # In single precision, and yet no difference where there is none.
    assert float(p_value.sel(model="lopsided", view="length")) == 1
    assert compare_table(comparison).index[0] == "fair"
    exact = compare({"program": bernoulli_steps, "chain": right}, data, parameters={"program": parameters["fair"]})
    assert exact["z"].values.tolist() == np.zeros((2, 2, 6)).tolist()


def test_the_order_of_all_models_or_of_some() -> None:
    data = programs.CHAIN.draw(15, torch.Generator().manual_seed(1))
    models = {"first": programs.chain_with_stop, "second": programs.second_order}
    expected = compare(models, data)
    for order in (2, {"first": 1}, {"first": 1, "second": 2}):  # both are of order 2
        found = compare(models, data, order=order)
        np.testing.assert_allclose(found["statistic"], expected["statistic"], atol=1e-9)
    for order in (1, {"second": 1}):
        with pytest.warns(UserWarning, match="the model is not of order 1"):
            compare(models, data, order=order)


def test_views_may_be_chosen() -> None:
    assert compare(WALKS, DATA, views=["length"])["view"].values.tolist() == ["length", "overall"]
    own = [View("Hamming", ZanellaOperator(), HammingKernel()), "content-2"]
    found = compare(WALKS, DATA, views=own, balancing="mpf")
    assert found["view"].values.tolist() == ["Hamming", "content-2", "overall"]
    assert found["meaning"].values.tolist()[1:] == ["pairs of neighbors", "all of the above together"]


def test_lists_of_codes_have_the_alphabet_of_the_models() -> None:
    lists = [[0, 1, 2], [1, 0], [2, 1, 2, 1]]
    xr.testing.assert_equal(compare(WALKS, lists), compare(WALKS, Sequences.of(lists, 5)))


# What some models cannot do


def test_models_are_compared_on_what_all_of_them_can_make() -> None:
    never = walk().probs.clone()
    never[:, 4] = 0  # not the symbol 4
    restricted = MarkovSequence(never / never.sum(-1, keepdim=True).clamp(min=1e-300))
    data = Sequences.of([[0, 1, 0], [3, 4], [2, 3], [], [1, 2, 1], [4, 0, 1], [0, 1]], 5)
    message = (
        r"the model 'all' gives probability zero to 1 of 7 sequences: sequence 3, \[\]. It cannot have made them; "
        r"the model 'never 4' gives probability zero to 3 of 7 sequences: sequence 1, \[3, 4\]; .*"
        "the models are compared on the 4 sequences that all of them can make"
    )
    with pytest.warns(UserWarning, match=message) as warned:
        comparison = ksd_compare({"all": walk(), "never 4": restricted}, data, progress=False)
    assert [warning.filename for warning in warned] == [__file__]
    expected = compare({"all": walk(), "never 4": restricted}, data[torch.tensor([0, 2, 4, 6])])
    np.testing.assert_allclose(comparison["ksd_compare"]["statistic"], expected["statistic"])
    cannot = comparison["ksd_compare_impossible"]["impossible"]
    assert cannot["sequence"].values.tolist() == [1, 3, 5]
    assert cannot.sel(model="all").values.tolist() == [False, True, False]
    assert cannot.sel(model="never 4").values.tolist() == [True, True, True]
    assert comparison["observed_data"].sizes["sequence"] == 7
    assert "'never 4' gives probability zero to 3 of the 7" in compare_table(comparison).attrs["verdict"]
    with pytest.raises(ValueError, match=r"'never 4' gives probability zero to 2 of 4 .*too few others are left"):
        ksd_compare({"all": walk(), "never 4": restricted}, data[1:5], progress=False)


def test_the_site_of_an_impossible_sequence_is_named() -> None:
    logits = torch.tensor([0.0, 0.0, -torch.inf])

    def never_two(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=logits), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(3.0), obs=lengths.float())

    data = Sequences.of([[0, 1], [1, 2, 0], [1], [0, 0, 1]], 3)
    with pytest.warns(UserWarning, match="at site x_1. It cannot have made them"):
        comparison = ksd_compare({"a": programs.CHAIN, "b": never_two}, data, progress=False)
    assert comparison["ksd_compare_impossible"]["site"].values.tolist() == [[""], ["x_1"]]


def test_models_without_a_law_of_the_length_are_compared_given_the_lengths() -> None:
    def symbols_only(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3) / 3), obs=sequences[:, t])

    data = programs.CHAIN.draw(20, torch.Generator().manual_seed(1))
    models = {"chain": programs.CHAIN, "symbols": symbols_only}
    with pytest.warns(UserWarning, match="^model 'symbols': the model gives no probability to lengths") as warned:
        comparison = ksd_compare(models, data, progress=False)
    assert [warning.filename for warning in warned] == [__file__]
    assert comparison["ksd_compare"]["view"].values.tolist() == [*VIEWS[:-1], "overall"]
    assert comparison["ksd_compare"].attrs["edits"] == "substitution"
    with pytest.raises(ValueError, match="model 'symbols': view 'content-1': found edits that change the length"):
        ksd_compare(models, data, views=default_views(), progress=False)


def test_a_model_that_knows_the_data_by_heart_is_named() -> None:
    known = {tuple(x) for x in DATA.to_lists()}

    class ByHeart:
        alphabet_size = 5

        def log_joint(self, sequences: Sequences) -> Tensor:
            return torch.tensor([0.0 if tuple(x) in known else -30.0 for x in sequences.to_lists()]).double()

        def log_ratio(self, sequences: Sequences, edits: Any) -> Tensor:
            return self.log_joint(edits.apply(sequences)) - self.log_joint(sequences)[edits.owner]

    data = Sequences.of([x for x in DATA.to_lists() if len(x) > 6], 5)  # short ones are edits of each other
    with pytest.warns(UserWarning, match="model 'by heart' hardly ever allows the edits of the view.s. content-1, con"):
        ksd_compare({"by heart": ByHeart(), "walk": Unsampled(walk(hold=0.3))}, data, progress=False)


def test_progress_is_shown_unless_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    ksd_compare(WALKS, DATA)
    assert capsys.readouterr().err.count("Stein features: 100%") >= 3
    compare(WALKS, DATA)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("models", "arguments", "message"),
    [
        (
            [walk(), walk()],
            {},
            "models: expected them by name, such as {'order 1': first, 'order 2': s",
        ),
        (walk(), {}, "found MarkovSequence"),
        ({"one": walk()}, {}, "models: expected at least 2 models with words for names, found ['one']"),
        ({"one": walk(), 2: walk()}, {}, "models: expected at least 2 models with words for names, found ['one', 2]"),
        (WALKS, {"parameters": {"hold": {}}}, "parameters: expected names of models, out of ['hold 0.0', "),
        (
            WALKS,
            {"order": {"other": 1}},
            "order: expected names of models, out of ['hold 0.0', 'hold 0.3', ",
        ),
        (WALKS, {"level": 0.0}, "level: expected a number between 0 and 1, such as 0.05, found 0.0"),
        (WALKS, {"views": ["content"]}, "views: expected names out of ['content-1',"),
        (WALKS, {"views": []}, "views: expected at least one view and distinct names other than 'overall', found []"),
        (WALKS, {"views": [View("overall", ZanellaOperator(), HammingKernel())]}, "found ['overall']"),
        (
            WALKS,
            {"parameters": {"hold 0.3": {"stop": torch.tensor(0.5)}}},
            "model 'hold 0.3': parameters: expected a Pyro program to give them to, found MarkovSequence",
        ),
        ({**WALKS, "other": programs.CHAIN}, {}, "model 'other': expected sequences over the model's 3 symbols"),
        ({**WALKS, "other": 3}, {}, "model 'other': model: expected a Pyro program, a distribution, or an object"),
    ],
)
def test_refuses(models: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        compare(models, DATA, **arguments)
    assert message in str(error.value)


def test_refuses_too_few_sequences() -> None:
    with pytest.raises(ValueError, match="expected at least 3 sequences, found 2; the error of a difference"):
        compare(WALKS, DATA[:2])
