# SPDX-License-Identifier: Apache-2.0
"""The baselines, and the fit of Markov chains, against loops, hand counts and an optimizer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyro_programs
import pytest
import torch
import xarray as xr
from example_models import Unsampled, walk
from scipy.stats import binom

from pyro_ksd import plot_null, plot_views, summary, verdict
from pyro_ksd.checks.baselines import likelihood_ratio_check, mmd_check
from pyro_ksd.checks.baselines.mmd import mmd_squared, pair_matrix
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.null_draws import rademacher
from pyro_ksd.fit_tests.statistics import u_statistic, weighted_u_statistics
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, Kernel, LengthKernel, StartKernel
from pyro_ksd.models import LinearChainMRF, MarkovSequence, constrain
from pyro_ksd.models.fitting.counting import fit_markov, fitted_log_likelihoods
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views

KERNELS: dict[str, Kernel] = {
    "pairs": ContiguousKernel(2),
    "lengths": LengthKernel(),
    "Hamming": HammingKernel(),
    "sum": ContiguousKernel(1, 3) + 0.5 * StartKernel(),
}


def data(num: int = 12, hold: float = 0.0, seed: int = 1) -> Sequences:
    return walk(hold=hold).draw(num, torch.Generator().manual_seed(seed))


def parts(found: xr.DataTree) -> tuple[Any, Any]:
    """Statistics ``[V]`` and null draws ``[B, V]``."""
    return found["ksd"]["statistic"].values, found["ksd_null"]["ksd"].values[0]


# The fit of Markov chains


def test_fit_by_hand() -> None:
    fitted = fit_markov([[0, 0, 1], [0, 1], [0], []], order=1)
    expected = [[1 / 4, 2 / 4, 1 / 4], [0, 0, 1], [3 / 4, 0, 1 / 4]]  # after 0, after 1, at the start; 2 is the stop
    assert fitted.probs.tolist() == [pytest.approx(row) for row in expected]
    assert float(fitted.log_joint(Sequences.of([[]], 2)).exp()) == pytest.approx(1 / 4)


def test_fit_of_order_2_by_hand() -> None:
    probs = fit_markov(["ab", "aab", "aab"], order=2).probs
    a, b, end = 0, 1, 2
    assert probs[end, end].tolist() == [1, 0, 0]
    assert probs[end, a].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert probs[a, a].tolist() == [0, 1, 0]
    assert probs[a, b].tolist() == [0, 0, 1]
    assert probs[b, a].tolist() == pytest.approx([1 / 3] * 3)  # never seen
    assert probs[a, end].tolist() == [0, 0, 0]  # cannot occur


def test_pseudocounts_make_all_but_the_empty_sequence_possible() -> None:
    fitted = fit_markov(Sequences.of([[0, 0, 1], [0]], 3), order=1, pseudocount=0.5)
    expected = [[1.5 / 5, 1.5 / 5, 0.5 / 5, 1.5 / 5], [0.5 / 3, 0.5 / 3, 0.5 / 3, 1.5 / 3], [0.25] * 4]
    expected += [[2.5 / 3.5, 0.5 / 3.5, 0.5 / 3.5, 0.0]]
    assert fitted.probs.tolist() == [pytest.approx(row) for row in expected]
    with_empty = fit_markov([[0], [0], []], order=1, pseudocount=1).probs
    assert with_empty[1].tolist() == pytest.approx([3 / 4, 1 / 4])


@pytest.mark.parametrize("order", [1, 2])
def test_no_chain_makes_the_data_more_probable(order: int) -> None:
    sequences = data(20, hold=0.3)
    fitted = float(fit_markov(sequences, order).log_joint(sequences).sum())
    logits = torch.zeros([6] * (order + 1), dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=150, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = -MarkovSequence(logits.softmax(-1), order=order).log_joint(sequences).sum()
        value.backward()
        return value

    optimizer.step(loss)
    found = -float(loss().detach())
    assert fitted - 0.01 < found <= fitted + 1e-9


def counted_log_likelihood(sequences: Sequences, order: int) -> float:
    """By a dictionary of counts."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for x in sequences.to_lists():
        padded = ["^"] * order + x + ["$"]
        counts.update(tuple(padded[i : i + order + 1]) for i in range(len(x) + 1))
    totals: Counter[tuple[Any, ...]] = Counter()
    for window, count in counts.items():
        totals[window[:-1]] += count
    return sum(count * math.log(count / totals[window[:-1]]) for window, count in counts.items())


@pytest.mark.parametrize("order", [1, 2, 3, 40])
def test_log_likelihoods_of_many_fits_at_once(order: int) -> None:
    sequences = Sequences.of([*data(11).to_lists(), []], 5)
    found = fitted_log_likelihoods(sequences, 4, order)
    assert found.tolist() == pytest.approx([counted_log_likelihood(sequences[i : i + 4], order) for i in (0, 4, 8)])


@pytest.mark.parametrize(("order", "pseudocount"), [(1, 0.0), (2, 0.0), (1, 0.3), (2, 2.0)])
def test_log_likelihoods_are_those_of_the_fitted_chains(order: int, pseudocount: float) -> None:
    sequences = Sequences.of([*data(11).to_lists(), []], 5)
    found = fitted_log_likelihoods(sequences, 4, order, pseudocount)
    sets = [sequences[i : i + 4] for i in (0, 4, 8)]
    expected = [float(fit_markov(x, order, pseudocount=pseudocount).log_joint(x).sum()) for x in sets]
    assert found.tolist() == pytest.approx(expected)


def test_a_fitted_chain_can_be_sampled_and_is_as_long_as_the_data() -> None:
    fitted = fit_markov(data(30), order=2)
    drawn = fitted.draw(2000, torch.Generator().manual_seed(0))
    assert float(drawn.lengths.double().mean()) == pytest.approx(float(data(30).lengths.double().mean()), rel=0.1)
    long = fit_markov(torch.zeros(1, 500, dtype=torch.long), order=1)
    assert long.draw(60, torch.Generator().manual_seed(0)).lengths.max() > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order: expected an integer of at least 1, found 0"),
        ({"order": 1, "pseudocount": -1.0}, "pseudocount: expected a number of at least 0, found -1.0"),
        ({"order": 1, "pseudocount": math.nan}, "pseudocount: expected a number of at least 0, found nan"),
        ({"data": "abc", "order": 1}, "expected several sequences, found the single string 'abc'"),
    ],
)
def test_fit_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_markov(**({"data": data()} | arguments))


# The maximum mean discrepancy


def value(kernel: Kernel, x: Sequence[Any], y: Sequence[Any]) -> float:
    return _value(kernel, tuple(x), tuple(y))


@cache
def _value(kernel: Kernel, x: tuple[int, ...], y: tuple[int, ...]) -> float:
    return float(kernel.gram(Sequences.of([x], 5), Sequences.of([y], 5)))


def looped_mmd(kernel: Kernel, x: Sequences, y: Sequences) -> float:
    xs, ys = x.to_lists(), y.to_lists()
    n, m = len(xs), len(ys)
    among_x = sum(value(kernel, xs[i], xs[j]) for i in range(n) for j in range(n) if i != j)
    among_y = sum(value(kernel, ys[i], ys[j]) for i in range(m) for j in range(m) if i != j)
    across = sum(value(kernel, a, b) for a in xs for b in ys)
    return among_x / (n * (n - 1)) + among_y / (m * (m - 1)) - 2 * across / (n * m)


@pytest.mark.parametrize("name", KERNELS)
def test_mmd_is_that_of_a_double_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.checks.baselines.mmd.PAIR_BYTES", 5000)  # several blocks of a kernel matrix
    x, y = data(8), data(10, hold=0.5, seed=2)
    found = mmd_squared(KERNELS[name], x, y, 2)
    expected = [looped_mmd(KERNELS[name], x[:4], y[:5]), looped_mmd(KERNELS[name], x[4:], y[5:])]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("num_samples", [None, 7])
def test_mmd_check_with_the_parametric_bootstrap(num_samples: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.checks.baselines.sampling.REPLICATES", 4)
    model, x, n, m = walk(), data(5, hold=0.5), 5, num_samples or 5
    check = mmd_check(model, x, kernels=KERNELS, num_samples=num_samples, num_bootstrap=6, seed=3, progress=False)
    generator = seeded_generator(3)
    sample, expected = model.draw(m, generator), []
    for together in (4, 2):
        xs, ys = model.draw(together * n, generator), model.draw(together * m, generator)
        sets = [(xs[i * n : (i + 1) * n], ys[i * m : (i + 1) * m]) for i in range(together)]
        expected += [[float(mmd_squared(kernel, *pair)) for kernel in KERNELS.values()] for pair in sets]
    statistic, null = parts(check)
    observed = [float(mmd_squared(kernel, x, sample)) for kernel in KERNELS.values()]
    np.testing.assert_allclose(statistic, observed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(null, expected, rtol=1e-9, atol=1e-12)
    p_values = (1 + (null >= statistic).sum(0)) / 7
    np.testing.assert_allclose(check["ksd"]["p_value"], p_values)
    assert {
        "test": "mmd",
        "kind": "parametric",
        "num_samples": m,
        "seed": 3,
        "level": 0.05,
        "num_bootstrap": 6,
    }.items() <= (check["ksd"].attrs.items())


def looped_pairs(kernel: Kernel, x: Sequences, y: Sequences, signs: Sequence[float]) -> float:
    pairs = list(zip(x.to_lists(), y.to_lists(), signs, strict=True))
    total = 0.0
    for i, (a, b, sign) in enumerate(pairs):
        for j, (c, d, other) in enumerate(pairs):
            h = value(kernel, a, c) + value(kernel, b, d) - value(kernel, a, d) - value(kernel, b, c)
            total += sign * other * h * (i != j)
    return total / (len(pairs) * (len(pairs) - 1))


def test_mmd_check_with_the_wild_bootstrap() -> None:
    model, x = walk(), data(4, hold=0.5)
    check = mmd_check(model, x, kernels=KERNELS, bootstrap="wild", num_bootstrap=6, seed=3, progress=False)
    generator = seeded_generator(3)
    sample, signs = model.draw(4, generator), rademacher(6, 4, generator).tolist()
    statistic, null = parts(check)
    observed = [looped_pairs(kernel, x, sample, [1.0] * 4) for kernel in KERNELS.values()]
    expected = [[looped_pairs(kernel, x, sample, row) for kernel in KERNELS.values()] for row in signs]
    np.testing.assert_allclose(statistic, observed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(null, expected, rtol=1e-9, atol=1e-12)
    assert check["ksd"].attrs["kind"] == "wild"


@pytest.mark.parametrize("name", KERNELS)
def test_signs_exchange_data_and_sample_so_that_the_level_is_exact(name: str) -> None:
    x, y = data(4), data(4, seed=2)
    signs = torch.tensor(list(product([1.0, -1.0], repeat=4)), dtype=torch.double)
    by_signs = weighted_u_statistics(pair_matrix(KERNELS[name], x, y), signs)
    both, row = Sequences.cat([x, y]), torch.arange(4)
    firsts = [torch.where(sign > 0, row, row + 4) for sign in signs]
    exchanged = [u_statistic(pair_matrix(KERNELS[name], both[f], both[(f + 4) % 8])) for f in firsts]
    torch.testing.assert_close(by_signs, torch.stack(exchanged), rtol=1e-9, atol=1e-12)


def test_wild_draws_in_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def draws() -> Any:
        return parts(mmd_check(walk(), data(), bootstrap="wild", num_bootstrap=50, progress=False))[1]

    whole = draws()
    monkeypatch.setattr("pyro_ksd.checks.baselines.mmd.ENTRIES", 12 * 7)
    np.testing.assert_allclose(draws(), whole, rtol=1e-12, atol=1e-12)


def test_auto_is_wild_for_many_sequences_with_as_many_samples() -> None:
    def kind(num: int, **more: Any) -> str:
        return str(mmd_check(walk(), data(num), num_bootstrap=2, progress=False, **more)["ksd"].attrs["kind"])

    assert kind(99) == "parametric"
    assert kind(100) == kind(100, num_samples=100) == "wild"
    assert kind(100, num_samples=50) == kind(100, bootstrap="parametric") == "parametric"


def test_data_with_names_and_impossible_data_can_be_compared() -> None:
    never_b = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
    check = mmd_check(never_b, ["ab", "b", "ba", "bb"] * 3, num_bootstrap=99, progress=False)
    assert float(check["ksd"]["p_value_overall"]) <= 0.05
    assert check["observed_data"]["token"].attrs["alphabet"] == '["a", "b"]'


def test_data_of_the_same_seed_are_not_the_sample_of_the_model() -> None:
    x = walk().draw(10, torch.Generator().manual_seed(0))
    check = mmd_check(walk(), x, bootstrap="wild", num_bootstrap=2, seed=0, progress=False)
    assert (check["ksd"]["statistic"] != 0).any()


# The likelihood ratio


def test_likelihood_ratio_by_hand() -> None:
    coin = torch.tensor([0.5, 0.5], dtype=torch.double)
    model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.25)
    check = likelihood_ratio_check(model, ["aab", "ab"], num_bootstrap=5, progress=False)
    fitted = math.log(1 / 3) + 2 * math.log(2 / 3)
    own = 5 * math.log(0.5) + 3 * math.log(0.75) + 2 * math.log(0.25)
    assert float(check["ksd"]["statistic"][0]) == pytest.approx(2 * (fitted - own))
    assert check["ksd"]["view"].values.tolist() == ["order-1"]


@pytest.mark.parametrize(("order", "pseudocount"), [(1, 0.0), (2, 0.5)])
def test_null_draws_are_fitted_anew(order: int, pseudocount: float) -> None:
    model, x = walk(), data(5, hold=0.5)
    check = likelihood_ratio_check(
        model, x, alternative=order, pseudocount=pseudocount, num_bootstrap=3, seed=3, progress=False
    )

    def ratio(sequences: Sequences) -> float:
        fitted = fit_markov(sequences, order, pseudocount=pseudocount)
        return 2 * float((fitted.log_joint(sequences) - model.log_joint(sequences)).sum())

    drawn = model.draw(15, seeded_generator(3))
    statistic, null = parts(check)
    assert statistic.tolist() == pytest.approx([ratio(x)])
    assert null[:, 0].tolist() == pytest.approx([ratio(drawn[i : i + 5]) for i in (0, 5, 10)])
    assert check["ksd"].attrs["test"] == "likelihood ratio"
    assert check["ksd"].attrs["pseudocount"] == pseudocount


def test_likelihood_ratio_against_the_truth_is_a_difference_of_log_probabilities() -> None:
    model, truth, x = walk(), walk(hold=0.5), data(10, hold=0.5)
    check = likelihood_ratio_check(model, x, alternative=truth, num_bootstrap=99, seed=3, progress=False)
    padded, drawn = x.padded(-1), model.draw(64 * 10, seeded_generator(3)).padded(-1)
    statistic, null = parts(check)
    assert statistic.tolist() == pytest.approx([2 * float((truth.log_prob(padded) - model.log_prob(padded)).sum())])
    expected = 2 * (truth.log_prob(drawn) - model.log_prob(drawn)).view(64, 10).sum(1)
    np.testing.assert_allclose(null[:64, 0], expected, rtol=1e-9)
    assert float(check["ksd"]["p_value_overall"]) == 0.01


def test_null_draws_that_the_alternative_cannot_have_made_stand_below_the_others() -> None:
    coin = torch.tensor([0.5, 0.5])
    model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.5)
    only_a = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
    check = likelihood_ratio_check(
        model, Sequences.of(["a", "aa"], "ab"), alternative=only_a, num_bootstrap=200, progress=False
    )
    [statistic], null = parts(check)
    assert np.isfinite(null).all()
    possible = null >= null.min() + 0.5
    assert 0 < possible.sum() < 100
    assert (null[~possible] == null.min()).all()
    assert float(check["ksd"]["p_value_overall"]) == pytest.approx((1 + (null >= statistic - 1e-9).sum()) / 201)
    assert float(check["ksd"]["p_value_overall"]) < 0.3


class Shifted(Unsampled):
    """A model whose normalizer is not known."""

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return super().log_joint(sequences) + 7

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return walk().draw(num_sequences, generator)


@pytest.mark.parametrize("alternative", [1, walk(hold=0.1)])
def test_a_missing_constant_does_not_change_the_p_value(alternative: Any) -> None:
    x = data(10, hold=0.1)
    known = likelihood_ratio_check(walk(), x, alternative=alternative, num_bootstrap=60, progress=False)
    unknown = likelihood_ratio_check(Shifted(walk()), x, alternative=alternative, num_bootstrap=60, progress=False)
    assert float(known["ksd"]["p_value_overall"]) == float(unknown["ksd"]["p_value_overall"])
    np.testing.assert_allclose(parts(unknown)[0], parts(known)[0] - 2 * 10 * 7)


def test_empty_sequences_are_fitted_as_well() -> None:
    length = torch.tensor([0.0, 0.0, 0.0])
    model = LinearChainMRF(torch.zeros(2, 2), length=length)
    x = Sequences.of([[], [], [0], [1, 1]], 2)
    check = likelihood_ratio_check(model, x, num_bootstrap=5, progress=False)
    own = 2 * math.log(1 / 7) + 2 * math.log(1 / 7)  # two empty ones, 0, 11 of seven equally probable sequences
    fitted = 2 * math.log(1 / 2) + 2 * math.log(1 / 4) + 2 * math.log(1 / 2)
    assert float(check["ksd"]["statistic"][0]) == pytest.approx(2 * (fitted - own))


# Both


THREE_SYMBOLS = Sequences.of([[0, 1, 2], [2, 1], [0], [1, 1]], 3)
CHECKS = [mmd_check, likelihood_ratio_check]


@pytest.mark.parametrize("check", CHECKS)
def test_result_can_be_read_and_drawn_as_that_of_the_stein_check(check: Any) -> None:
    found = check(walk(), data(20, hold=0.6), num_bootstrap=60, progress=False)
    assert set(found.children) == {"ksd", "ksd_null", "observed_data"}
    assert verdict(found).startswith("the model does not fit (p = 0.0")
    assert "p-values from 60 draws of the parametric bootstrap" in repr(summary(found))
    assert len(plot_null(found)) == found["ksd"].sizes["view"]
    assert len(plot_views(found).get_yticklabels()) == found["ksd"].sizes["view"] + 1


def test_default_kernels_are_those_of_the_default_views() -> None:
    found = mmd_check(walk(), data(), num_bootstrap=2, progress=False)
    assert found["ksd"]["view"].values.tolist() == [view.name for view in default_views()]
    assert found["ksd"]["meaning"].values.tolist() == [view.kernel.meaning for view in default_views()]


@pytest.mark.parametrize("more", [{}, {"bootstrap": "wild"}])
def test_mmd_finds_a_wrong_model_and_keeps_a_right_one(more: dict[str, Any]) -> None:
    def p_value(hold: float) -> float:
        x = random_walk(hold=hold).draw(30, torch.Generator().manual_seed(5))
        return float(mmd_check(random_walk(), x, num_bootstrap=199, progress=False, **more)["ksd"]["p_value_overall"])

    assert p_value(0.5) <= 0.02
    assert p_value(0.0) > 0.05


@pytest.mark.parametrize("alternative", [1, 2, random_walk(hold=0.2)])
def test_likelihood_ratio_finds_a_wrong_model_and_keeps_a_right_one(alternative: Any) -> None:
    def p_value(hold: float) -> float:
        x = random_walk(hold=hold).draw(30, torch.Generator().manual_seed(5))
        check = likelihood_ratio_check(random_walk(), x, alternative=alternative, num_bootstrap=199, progress=False)
        return float(check["ksd"]["p_value_overall"])

    assert p_value(0.2) == 1 / 200
    assert p_value(0.0) > 0.05


@pytest.mark.parametrize("check", CHECKS)
def test_seeds_give_the_same_result(check: Any) -> None:
    def null(seed: int) -> Any:
        return parts(check(walk(), data(), num_bootstrap=10, seed=seed, progress=False))[1]

    state = torch.get_rng_state()
    first = null(3)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(null(3), first)
    assert not np.allclose(null(4), first)


@pytest.mark.parametrize("check", CHECKS)
def test_programs_samplers_and_constraints(check: Any) -> None:
    options = {"num_bootstrap": 5, "progress": False}
    program = check(pyro_programs.chain_with_stop, THREE_SYMBOLS, **options)
    assert parts(program)[1].shape[0] == 5
    by_sampler = check(Unsampled(walk()), data(), sampler=walk().draw, **options)
    np.testing.assert_array_equal(parts(by_sampler)[1], parts(check(walk(), data(), **options))[1])
    long = constrain(walk(), lambda s: s.lengths >= 2)
    with pytest.raises(ValueError, match="expected data inside the set of the constrained model"):
        check(long, Sequences.of([[0, 1], [0]], 5), **options)


def test_integers_are_codes_of_the_models_symbols() -> None:
    assert mmd_check(walk(), [[0, 1], [1, 2]], num_bootstrap=1, progress=False)["observed_data"].sizes["sequence"] == 2


def test_progress_can_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("parametric", "wild"):
        mmd_check(walk(), data(), num_bootstrap=2, bootstrap=kind)  # type: ignore[arg-type]
        assert f"{kind} bootstrap: 100%" in capsys.readouterr().err
    likelihood_ratio_check(walk(), data(), num_bootstrap=2)
    assert "parametric bootstrap: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "level: expected a number between 0 and 1, such as 0.05, found 1.0"),
        ({"num_bootstrap": 0}, "num_bootstrap: expected an integer of at least 1, found 0"),
        ({"data": data(1)}, "expected at least 2 sequences, found 1"),
        ({"data": Sequences.of(["ab", "b"])}, "expected sequences over the model's 5 symbols, found an alphabet of 2"),
        (
            {"model": Unsampled(walk())},
            "model: expected one that can be sampled, found Unsampled, which cannot; pass sampler=, a function of",
        ),
        ({"model": pyro_programs.hmm, "data": THREE_SYMBOLS}, "or give a program the argument num_sequences"),
    ],
)
def test_both_refuse(check: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(**({"model": walk(), "data": data(), "progress": False} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernels": {}}, "kernels: expected at least one kernel by its name, found none"),
        ({"num_samples": 1}, "num_samples: expected an integer of at least 2, found 1"),
        ({"bootstrap": "tame"}, "bootstrap: expected 'auto', 'parametric' or 'wild', found 'tame'"),
        (
            {"bootstrap": "wild", "num_samples": 20},
            r"num_samples: expected as many samples as data \(12\) for the wild bootstrap, .* found 20; leave",
        ),
    ],
)
def test_mmd_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mmd_check(walk(), data(), progress=False, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alternative": 0}, "alternative: expected an integer of at least 1, found 0"),
        ({"alternative": "best"}, "model: expected a Pyro program, a distribution, .* found str"),
        ({"pseudocount": -0.5}, "pseudocount: expected a number of at least 0, found -0.5"),
        ({"alternative": walk(), "pseudocount": 1}, "pseudocount: expected 0 for an alternative that is not fitted"),
        (
            {"data": Sequences.of([[0, 1], [], [2]], 5)},
            r"the model gives probability zero to 1 of 3 sequences: sequence 1, \[\]. It cannot have made them: widen",
        ),
        (
            {"alternative": constrain(walk(), lambda x: x.lengths > 2), "data": Sequences.of([[0, 1], [0, 1, 2]], 5)},
            r"alternative: the model gives probability zero to 1 of 2 sequences: sequence 0, \[0, 1\]. .* give one",
        ),
        (
            {"sampler": lambda number, generator: Sequences.of([[]] * number, 5)},
            "expected sequences drawn from the model to be possible under it, .* does the sampler draw from the model",
        ),
    ],
)
def test_likelihood_ratio_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        likelihood_ratio_check(**({"model": walk(), "data": data(), "progress": False} | arguments))


TESTS = [
    pytest.param(mmd_check, {"bootstrap": "parametric", "num_samples": 12}, id="mmd-parametric"),
    pytest.param(mmd_check, {"bootstrap": "wild"}, id="mmd-wild"),
    pytest.param(likelihood_ratio_check, {"alternative": 1}, id="likelihood-ratio-order-1"),
    pytest.param(likelihood_ratio_check, {"alternative": 2, "pseudocount": 0.5}, id="likelihood-ratio-order-2"),
    pytest.param(likelihood_ratio_check, {"alternative": walk(hold=0.2)}, id="likelihood-ratio-given"),
]


def rejections(
    check: Any, more: dict[str, Any], *, size: int, runs: int, draws: int, hold: float = 0.0, level: float = 0.05
) -> dict[str, int]:
    """How often each view, and all together, reject a walk that never holds."""
    count: Counter[str] = Counter()
    for run in range(runs):
        x = data(size, hold, seed=run)
        ksd = check(walk(), x, num_bootstrap=draws, seed=run, progress=False, **more)["ksd"]
        p_values = dict(zip(ksd["view"].values, ksd["p_value"].values, strict=True))
        p_values["overall"] = float(ksd["p_value_overall"])
        count.update({name: int(p <= level + 1e-9) for name, p in p_values.items()})
    return count


@pytest.mark.parametrize(("check", "more"), TESTS[:3])
def test_level_in_few_runs(check: Any, more: dict[str, Any]) -> None:
    if check is mmd_check:
        more = more | {"kernels": {"pairs": ContiguousKernel(2)}}
    low, high = binom.interval(0.9999, 40, 0.25)
    assert low <= rejections(check, more, size=6, runs=40, draws=19, level=0.25)["overall"] <= high


@pytest.mark.slow
@pytest.mark.parametrize(("check", "more"), TESTS)
def test_level(check: Any, more: dict[str, Any]) -> None:
    low, high = binom.interval(0.999, 1000, 0.05)
    counts = rejections(check, more, size=8, runs=1000, draws=199)
    print(f"\n{check.__name__} {more}: {dict(counts)} of 1000, band {low:.0f} to {high:.0f}")
    assert all(count <= high for count in counts.values())
    if more.get("bootstrap") != "wild":  # among the signs of few pairs some change nothing, and such ties count
        assert all(low <= count for count in counts.values())


@pytest.mark.slow
@pytest.mark.parametrize(("check", "more"), TESTS)
def test_power(check: Any, more: dict[str, Any]) -> None:
    # The maximum mean discrepancy needs a fault as large as this: it knows the model by a few sequences only.
    counts = rejections(check, more, size=20, runs=200, draws=199, hold=0.6)
    print(f"\n{check.__name__} {more}: {dict(counts)} of 200")
    assert counts["overall"] >= 150
