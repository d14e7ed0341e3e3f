# SPDX-License-Identifier: Apache-2.0
"""Models whose parameters were estimated from the same data: the bootstrap that refits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from example_models import Unsampled
from pyro import poutine
from pyro.infer.autoguide import AutoNormal
from scipy.stats import binom
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd import MarkovSequence, Sequences, ksd_check
from pyro_ksd.common.block_runs import draw_blocks
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.null_draws import refitted_bootstrap
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.models import RefitMarkov, RefitSVI, fit_markov
from pyro_ksd.models.fitting.refits import refitted
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.views import default_views

SIZE = 3
MOVES = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.4, 0.4, 0.2]], dtype=torch.double)
CHAIN = MarkovSequence.from_transitions(MOVES[0], MOVES, stop=0.2)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    pyro.clear_param_store()
    yield
    pyro.clear_param_store()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


DATA = CHAIN.draw(40, seeded())


def chain(sequences: Tensor, lengths: Tensor, initial: Tensor, moves: Tensor, stop: Tensor) -> None:
    count, width = sequences.shape
    step = torch.arange(width)
    with pyro.plate("sequences", count, dim=-2):
        pyro.sample("first", dist.Categorical(initial), obs=sequences[:, :1])
        with pyro.plate("steps", width, dim=-1), poutine.mask(mask=step < lengths[:, None]):
            pyro.sample("stops", dist.Bernoulli(stop), obs=(step + 1 == lengths[:, None]).double())
        with pyro.plate("later steps", width - 1, dim=-1), poutine.mask(mask=step[1:] < lengths[:, None]):
            pyro.sample("x", dist.Categorical(moves[sequences[:, :-1]]), obs=sequences[:, 1:])


def by_params(sequences: Tensor, lengths: Tensor) -> None:
    even = torch.full((SIZE, SIZE), 1 / SIZE, dtype=torch.double)
    initial = pyro.param("initial", even[0], constraint=constraints.simplex)
    moves = pyro.param("moves", even, constraint=constraints.simplex)
    stop = pyro.param("stop", torch.tensor(0.5, dtype=torch.double), constraint=constraints.unit_interval)
    chain(sequences, lengths, initial, moves, stop)


def by_priors(sequences: Tensor, lengths: Tensor) -> None:
    flat = dist.Dirichlet(torch.full((SIZE, SIZE), 2.0, dtype=torch.double)).to_event(1)
    initial = pyro.sample("initial", dist.Dirichlet(torch.full((SIZE,), 2.0, dtype=torch.double)))
    stop = pyro.sample("stop", dist.Beta(torch.tensor(2.0, dtype=torch.double), 2.0))
    chain(sequences, lengths, initial, pyro.sample("moves", flat), stop)


def counts(data: Sequences) -> tuple[Tensor, Tensor, float]:
    """How often each symbol starts, each pair of symbols follows each other, and a symbol is the last one."""
    initial, moves = torch.zeros(SIZE, dtype=torch.double), torch.zeros(SIZE, SIZE, dtype=torch.double)
    for x in data.to_lists():
        initial[x[0]] += 1
        for before, after in pairwise(x):
            moves[before, after] += 1
    return initial, moves, len(data) / int(data.lengths.sum())


def test_refitted_draws_are_statistics_of_refitted_models() -> None:
    views = default_views()
    null = refitted_bootstrap(CHAIN, lambda x: fit_markov(x, 1), 6, views, 4, seeded(3))
    for row, block in zip(null.statistic, draw_blocks(4, 1, seeded(3)), strict=True):
        replicate = CHAIN.draw(6, block.generator())
        expected = [u_statistic(m) for m in stein_matrices(fit_markov(replicate, 1), replicate, views)]
        torch.testing.assert_close(row, torch.stack(expected), rtol=1e-10, atol=1e-12)


def test_check_fits_the_model_to_the_data_first() -> None:
    check = ksd_check(CHAIN, DATA, refit=RefitMarkov(), num_bootstrap=20, progress=False)
    plain = ksd_check(fit_markov(DATA, 1), DATA, num_bootstrap=20, progress=False)
    assert check["ksd"]["statistic"].values.tolist() == pytest.approx(plain["ksd"]["statistic"].values.tolist())
    assert check["ksd"].attrs["kind"] == check["ksd_null"].attrs["kind"] == "refit"
    assert float(check["ksd_null"]["ksd"].mean()) < float(plain["ksd_null"]["ksd"].mean())


def test_maximum_likelihood_by_optimization_is_that_by_counting() -> None:
    found = RefitSVI(num_steps=600)(by_params, DATA)
    initial, moves, stop = counts(DATA)
    torch.testing.assert_close(found["initial"], initial / initial.sum(), rtol=0, atol=5e-3)
    torch.testing.assert_close(found["moves"], moves / moves.sum(1, keepdim=True), rtol=0, atol=5e-3)
    assert float(found["stop"]) == pytest.approx(stop, abs=5e-3)


def test_the_median_of_a_guide_is_near_the_posterior_mean() -> None:
    initial, moves, _ = counts(DATA)
    for guide in (RefitSVI(num_steps=300), RefitSVI(AutoNormal, num_steps=400)):
        found = guide(by_priors, DATA)
        assert set(found) == {"initial", "moves", "stop"}
        expected = (moves + 2) / (moves + 2).sum(1, keepdim=True)
        torch.testing.assert_close(found["moves"], expected, rtol=0, atol=0.08)
        torch.testing.assert_close(found["initial"], (initial + 2) / (initial + 2).sum(), rtol=0, atol=0.08)


def test_fits_leave_the_session_alone() -> None:
    kept = torch.ones(2, requires_grad=True)
    pyro.param("mine", kept)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    RefitSVI(num_steps=2)(by_params, DATA)
    assert torch.equal(torch.get_rng_state(), state)
    assert list(pyro.get_param_store().keys()) == ["mine"]
    assert torch.equal(pyro.param("mine"), kept)


def test_programs_are_refitted_by_their_parameters() -> None:
    check = ksd_check(
        by_params, DATA, refit=RefitSVI(num_steps=30), sampler=CHAIN.draw, num_bootstrap=3, progress=False
    )
    assert check["ksd"].attrs["kind"] == "refit"


def network(sequences: Tensor, lengths: Tensor) -> None:
    pyro.module("net", torch.nn.Linear(1, SIZE))
    by_params(sequences, lengths)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RefitMarkov(-1.0), "pseudocount: expected a number of at least 0, found -1"),
        (
            lambda: RefitMarkov()(by_params, DATA),
            "model: expected a MarkovSequence to refit, found the function by_params",
        ),
        (lambda: RefitSVI(num_steps=1)(network, DATA), "of a pyro.module, which training would change in place"),
        (
            lambda: ksd_check(by_params, DATA, refit=RefitSVI(), parameters={}, progress=False),
            "refit: expected no parameters= beside it, which it finds itself; leave them out",
        ),
        (
            lambda: ksd_check(CHAIN, DATA, refit=RefitMarkov(), bootstrap="wild", progress=False),
            "expected 'parametric' with refit=, found 'wild', which draws no data to refit on",
        ),
        (
            lambda: goodness_of_fit(Unsampled(CHAIN), DATA, default_views(), refit=lambda x: CHAIN),
            "for the parametric bootstrap, found Unsampled without one; let the program draw",
        ),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    assert message in str(error.value)


@pytest.mark.slow
def test_level_of_a_fitted_chain() -> None:
    runs, draws, level, size = 400, 99, 0.05, 20
    views = [view for view in default_views() if view.name in ("content-1", "content-2", "content-3")]
    generator = seeded(8)
    rejected = {"refit": 0, "plain": 0}
    for run in range(runs):
        data = CHAIN.draw(size, generator)
        fitted = fit_markov(data, 1)
        for name, refit in (("refit", lambda x: fit_markov(x, 1)), ("plain", None)):
            found = goodness_of_fit(
                fitted, data, views, bootstrap="parametric", refit=refit, num_bootstrap=draws, seed=run
            )
            rejected[name] += found.p_value_overall <= level + 1e-9
    low, high = binom.interval(0.999, runs, level)
    print(f"\nfitted chain, n = {size}: {rejected} of {runs}, band {low:.0f} to {high:.0f}")
    assert low <= rejected["refit"] <= high
    assert rejected["plain"] < low  # conservative


@pytest.mark.slow
def test_level_of_a_chain_fitted_to_other_data() -> None:
    """The error of the fit is a fault that the check sees, unless there were many more data to fit to."""
    runs, draws, level, size = 200, 99, 0.05, 80
    generator = seeded(9)
    rejected = {1: 0, 20: 0}
    for times in rejected:
        for run in range(runs):
            fitted = fit_markov(CHAIN.draw(times * size, generator), 1, pseudocount=0.5)
            data = CHAIN.draw(size, generator)
            found = goodness_of_fit(
                fitted, data, default_views(), bootstrap="parametric", num_bootstrap=draws, seed=run
            )
            rejected[times] += found.p_value_overall <= level + 1e-9
    low, high = binom.interval(0.999, runs, level)
    print(f"\nfitted to 1 and 20 times as many, n = {size}: {rejected} of {runs}, band {low:.0f} to {high:.0f}")
    assert rejected[1] > high
    assert low <= rejected[20] <= high


def test_refit_of_a_chain_keeps_its_order_and_its_pseudocount() -> None:
    second = fit_markov(DATA, 2, pseudocount=1.0)
    found = RefitMarkov(pseudocount=0.5)(second, DATA)
    assert found.order == 2
    assert torch.equal(found.probs, fit_markov(DATA, 2, pseudocount=0.5).probs)


def test_refit_of_a_chain_with_backoff() -> None:
    found = RefitMarkov(backoff=True)(fit_markov(DATA, 2, backoff=True), DATA)
    assert torch.equal(found.probs, fit_markov(DATA, 2, backoff=True).probs)
    assert not torch.equal(found.probs, fit_markov(DATA, 2).probs)


def test_enumerated_states_are_summed_out_while_fitting() -> None:
    def mixture(sequences: Tensor, lengths: Tensor) -> None:
        share = pyro.param("share", torch.tensor(0.5, dtype=torch.double), constraint=constraints.unit_interval)
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", dist.Bernoulli(share), infer={"enumerate": "parallel"}).long()
            tables = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], dtype=torch.double)
            pyro.sample("first", dist.Categorical(tables[z]), obs=sequences[:, 0])

    data = Sequences.of([[0]] * 30 + [[2]] * 10, SIZE)
    found = RefitSVI(num_steps=400)(mixture, data)
    assert set(found) == {"share"}
    assert float(found["share"]) == pytest.approx(5 / 28, abs=1e-3)  # 0.8 - 0.7 share = 0.9 * 30 / 40


def test_a_fit_is_the_same_for_the_same_seed() -> None:
    found = [RefitSVI(AutoNormal, num_steps=5, seed=seed)(by_priors, DATA)["moves"] for seed in (1, 1, 2)]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_a_fit_that_leaves_its_parameters_in_the_store_is_refused() -> None:
    pyro.param("mine", torch.tensor(1.0))

    def refit(model: Any, data: Sequences) -> Any:
        pyro.get_param_store()["stop"] = torch.tensor(0.3)
        return model

    with pytest.raises(ValueError, match=r"refit: expected values of the parameters by name, found a .* \['stop'\]"):
        ksd_check(by_params, DATA, refit=refit, num_bootstrap=2, progress=False)
    assert list(pyro.get_param_store().keys()) == ["mine"]
    assert refitted(lambda: (pyro.get_param_store().clear(), {"stop": 0.3})[1]) == {"stop": 0.3}
    assert list(pyro.get_param_store().keys()) == ["mine"]
    assert refitted(lambda: by_params) is by_params


def test_all_fits_start_from_the_same_random_states() -> None:
    assert refitted(lambda: torch.rand(3).tolist()) == refitted(lambda: torch.rand(3).tolist())


@pytest.mark.parametrize("program", [by_params, by_priors])
def test_a_fit_does_not_begin_with_what_the_user_has_learned(program: Any) -> None:
    refit = RefitSVI(num_steps=2)
    expected = refit(program, DATA)
    stored = torch.tensor([0.9, 0.05, 0.05], dtype=torch.double)
    pyro.param("initial", stored, constraint=constraints.simplex)
    pyro.param("AutoDelta.initial", stored, constraint=constraints.simplex)
    found = refit(program, DATA)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)
    torch.testing.assert_close(pyro.param("initial").detach(), stored)


def test_latents_of_each_sequence_are_refused() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("mood", dist.Normal(0.0, 1.0))
            pyro.factor("length", -lengths)

    with pytest.raises(
        ValueError, match=r"refit: found the latents \['mood'\] of each sequence, which RefitSVI does not"
    ):
        RefitSVI(num_steps=1)(program, DATA)
