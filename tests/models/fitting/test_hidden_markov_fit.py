# SPDX-License-Identifier: Apache-2.0
"""The fit of hidden Markov models: against counting, against the truth, and in the bootstrap."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from scipy.stats import binom

from pyro_ksd import fit_markov, ksd_check
from pyro_ksd.fit_tests import goodness_of_fit
from pyro_ksd.models import HiddenMarkovSequence, RefitHiddenMarkov, fit_hidden_markov
from pyro_ksd.models.fitting import hidden_markov_fit
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein import default_views

TRUTH = HiddenMarkovSequence([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], stop=0.1)
DATA = TRUTH.draw(400, torch.Generator().manual_seed(0))


def total(model: HiddenMarkovSequence, data: Sequences = DATA) -> float:
    return float(model.log_joint(data).sum())


def test_one_state_is_counting() -> None:
    words = Sequences.of(["aab", "b", "abca"])
    model = fit_hidden_markov(words, 1)
    assert model.emission.tolist() == [pytest.approx([4 / 8, 3 / 8, 1 / 8])]
    assert model.stop.tolist() == pytest.approx([3 / 8])
    assert model.emission.dtype == torch.double
    smoothed = fit_hidden_markov(words, 1, pseudocount=0.5)
    assert smoothed.emission.tolist() == [pytest.approx([4.5 / 9.5, 3.5 / 9.5, 1.5 / 9.5])]
    assert smoothed.stop.tolist() == pytest.approx([3.5 / 9])


def test_the_fit_is_better_than_the_truth_and_near_it() -> None:
    model = fit_hidden_markov(DATA, 2)
    assert total(model) > total(TRUTH)
    assert total(model) < total(TRUTH) + 15  # half a chi-square with 7 degrees of freedom
    stay = model.transition.diagonal()
    assert stay.tolist() == pytest.approx([0.9, 0.9], abs=0.05)
    assert sorted(model.emission[:, 0].tolist()) == pytest.approx([0.2, 0.8], abs=0.05)
    fresh = TRUTH.draw(2000, torch.Generator().manual_seed(1))
    assert total(model, fresh) == pytest.approx(total(TRUTH, fresh), abs=20)


def test_no_gradient_is_left_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_markov_fit, "_LEAST_GAIN", 1e-13)
    fitted = fit_hidden_markov(DATA[:60], 2, num_steps=20_000)
    logits = [part.log().requires_grad_() for part in (fitted.initial, fitted.transition, fitted.emission)]
    stop = fitted.stop.logit().requires_grad_()
    model = HiddenMarkovSequence(*(part.softmax(-1) for part in logits), stop.sigmoid())
    model.log_prob(DATA[:60].padded(-1)).mean().backward()
    for part in (*logits, stop):
        assert part.grad is not None
        assert float(part.grad.abs().max()) < 1e-5


def test_restarts_are_for_the_better_and_the_seed_decides() -> None:
    single = [total(fit_hidden_markov(DATA, 3, num_restarts=1, seed=seed)) for seed in range(3)]
    several = fit_hidden_markov(DATA, 3, num_restarts=3, seed=0)
    assert total(several) >= min(single)
    assert len({round(value, 3) for value in single}) > 1
    again = fit_hidden_markov(DATA, 3, num_restarts=3, seed=0)
    assert torch.equal(several.transition, again.transition)


def test_a_pseudocount_makes_everything_possible() -> None:
    data = Sequences.of(["aab", "ab"], "abc")
    fresh = Sequences.of(["c", "ba" * 20], "abc")
    assert not fit_hidden_markov(data, 2).log_joint(fresh).isfinite().any()
    assert fit_hidden_markov(data, 2, pseudocount=0.1).log_joint(fresh).isfinite().all()


def test_samples_have_room() -> None:
    fitted = fit_hidden_markov(DATA, 2)
    assert fitted.max_length == fit_markov(DATA, 1).max_length
    assert fitted.draw(50, torch.Generator().manual_seed(0)).alphabet_size == 2


def test_a_fit_that_did_not_converge_says_so() -> None:
    with pytest.warns(
        UserWarning, match="^the fit of 3 hidden states had not converged after 2 steps; raise num_steps="
    ) as warned:
        fit_hidden_markov(DATA, 3, num_steps=2)
    assert warned[0].filename == __file__


def test_wrong_data() -> None:
    with pytest.raises(
        ValueError, match=r"^data: .* found the empty sequence 1, which a hidden Markov model cannot emit"
    ):
        fit_hidden_markov(["ab", ""], 2)
    with pytest.raises(ValueError, match=r"^model: expected one HiddenMarkovSequence to refit, found MarkovSequence"):
        RefitHiddenMarkov()(fit_markov(["ab"], 1), Sequences.of(["ab"]))  # type: ignore[arg-type]


def test_a_refit_climbs_from_the_model() -> None:
    sample = DATA[:100]
    found = RefitHiddenMarkov()(TRUTH, sample)
    assert total(found, sample) > total(TRUTH, sample)
    assert found.emission[:, 0].tolist() == pytest.approx([0.8, 0.2], abs=0.15)  # states keep their places
    fixed = RefitHiddenMarkov()(found, sample)
    assert total(fixed, sample) - total(found, sample) < 1e-3


def test_a_check_with_refits() -> None:
    fitted = fit_hidden_markov(DATA[:60], 2)
    check = ksd_check(
        fitted, DATA[:60], refit=RefitHiddenMarkov(), views=["content-2"], num_bootstrap=20, progress=False
    )
    assert check["ksd"].attrs["kind"] == "refit"


@pytest.mark.slow
def test_the_level_with_refits() -> None:
    """Fitted to the very data that are checked: the refits keep the level."""
    runs, draws, level = 100, 19, 0.1
    generator = torch.Generator().manual_seed(5)
    pairs = [view for view in default_views() if view.name == "content-2"]
    rejected = 0
    for run in range(runs):
        data = TRUTH.draw(40, generator)
        fitted = fit_hidden_markov(data, 2, pseudocount=0.1, num_restarts=4, seed=run)
        found = goodness_of_fit(
            fitted,
            data,
            pairs,
            bootstrap="parametric",
            refit=partial(RefitHiddenMarkov(pseudocount=0.1), fitted),
            num_bootstrap=draws,
            seed=run,
        )
        rejected += found.p_value_overall <= level + 1e-9
    low, high = binom.interval(0.999, runs, level)
    print(f"\n{rejected} of {runs} rejected, band {low:.0f} to {high:.0f}")
    assert low <= rejected <= high
