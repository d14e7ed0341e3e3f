# SPDX-License-Identifier: Apache-2.0
"""Posterior predictive checks, after inference by NUTS and by SVI."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from pyro import poutine
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.optim import Adam
from pyro_programs import hidden_steps
from torch import Tensor

from pyro_ksd import (
    HiddenMarkovSequence,
    MarkovSequence,
    Sequences,
    extend,
    from_pyro,
    ksd_check,
    summary,
    to_inference_data,
    verdict,
)
from pyro_ksd.common import progress
from pyro_ksd.common.block_runs import draw_blocks
from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests import predictive
from pyro_ksd.fit_tests.predictive import posterior_predictive, predictive_p_value
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.models.wrappers.verified_stand_in import found_by
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import barker
from pyro_ksd.stein.length_views import length_view
from pyro_ksd.stein.views import default_views

SIZE, STATES = 3, 2
STOP = torch.tensor(0.2, dtype=torch.double)
HALF = torch.full((STATES,), 0.5, dtype=torch.double)  # the hidden Markov models make short sequences: they are slow


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def simplex(name: str, *shape: int) -> Tensor:
    law = dist.Dirichlet(torch.ones(*shape, dtype=torch.double)).to_event(len(shape) - 1)
    return pyro.sample(name, law)


def drawn(model: Any, number: int) -> tuple[Tensor, Tensor]:
    x = model.draw(number, seeded(int(torch.randint(2**31, ()))))
    return x.tokens, x.lengths


def first_order(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    """A chain with unknown moves; all steps of all sequences in one site."""
    initial, moves = simplex("initial", SIZE), simplex("moves", SIZE, SIZE)
    if num_sequences is not None:
        return drawn(MarkovSequence.from_transitions(initial, moves, stop=0.2), num_sequences)
    count, width = sequences.shape
    inside = torch.arange(width) < lengths[:, None]
    with pyro.plate("sequences", count, dim=-2):
        pyro.sample("first", dist.Categorical(initial), obs=sequences[:, :1])
        pyro.factor("stops", (lengths - 1).double()[:, None] * np.log(1 - 0.2))
        with pyro.plate("steps", width - 1, dim=-1), poutine.mask(mask=inside[:, 1:]):
            pyro.sample("x", dist.Categorical(moves[sequences[:, :-1]]), obs=sequences[:, 1:])
    return None


def steps(sequences: Tensor, lengths: Tensor, initial: Tensor, moves: Tensor) -> None:
    """The same, step by step, within a plate."""
    for t in range(sequences.shape[1]):
        law = initial if t == 0 else moves[sequences[:, t - 1]]
        with poutine.mask(mask=t < lengths):
            pyro.sample(f"x_{t}", dist.Categorical(law), obs=sequences[:, t])
            pyro.sample(f"stop_{t}", dist.Bernoulli(STOP), obs=(lengths == t + 1).double())


def hidden(x: Any = None, num_sequences: int | None = None) -> Any:
    """A hidden Markov model as one site."""
    start, moves, emissions = simplex("start", STATES), simplex("moves", STATES, STATES), simplex("emit", STATES, SIZE)
    law = HiddenMarkovSequence(start, moves, emissions, HALF)
    if num_sequences is not None:
        found = law.draw(num_sequences, seeded(int(torch.randint(2**31, ()))))
        return found.padded(-1)
    with pyro.plate("sequences", len(x)):
        return pyro.sample("x", law, obs=x)


def hidden_by_steps(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    """The same, written step by step with enumerated states."""
    start, moves, emissions = simplex("start", STATES), simplex("moves", STATES, STATES), simplex("emit", STATES, SIZE)
    if num_sequences is not None:
        return drawn(HiddenMarkovSequence(start, moves, emissions, HALF), num_sequences)
    return hidden_steps(sequences, lengths, start, moves, emissions, HALF[0])


def second_order_data(num: int, stop: float = 0.2) -> Sequences:
    """Each symbol is most often the one after the one before last."""
    probs = torch.full((SIZE + 1,) * 3, 0.05, dtype=torch.double)
    for oldest in range(SIZE + 1):
        probs[oldest, :, (oldest + 1) % SIZE] = 0.8
    probs[..., SIZE] = stop
    probs[SIZE, SIZE, SIZE] = 0.0
    probs[:SIZE, SIZE] = 1.0
    return MarkovSequence(probs / probs.sum(-1, keepdim=True), order=2).draw(num, seeded(3))


def chain_data(num: int) -> Sequences:
    moves = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], dtype=torch.double)
    return MarkovSequence.from_transitions(moves[0], moves, stop=0.2).draw(num, seeded(1))


def hidden_data(num: int) -> Sequences:
    moves = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.double)
    emissions = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.4, 0.5]], dtype=torch.double)
    return HiddenMarkovSequence(moves[0], moves, emissions, HALF).draw(num, seeded(2))


def nuts(program: Any, *arguments: Tensor, draws: int = 120, chains: int = 1) -> MCMC:
    mcmc = MCMC(
        NUTS(program, max_tree_depth=4), num_samples=draws, warmup_steps=40, num_chains=chains, disable_progbar=True
    )
    mcmc.run(*arguments)
    return mcmc


def svi(program: Any, *arguments: Tensor, enumerated: bool = False, steps: int = 200) -> AutoNormal:
    hide = [f"z_{t}" for t in range(100)]
    guide = AutoNormal(poutine.block(program, hide=hide))
    elbo = TraceEnum_ELBO() if enumerated else Trace_ELBO()
    optimizer = SVI(program, guide, Adam({"lr": 0.1}), elbo)
    for _ in range(steps):
        optimizer.step(*arguments)
    return guide


DATA = chain_data(12)
EVEN = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, stop=0.1)
LAW = torch.ones(6, 4, SIZE, dtype=torch.double) + torch.rand(6, 4, SIZE, dtype=torch.double, generator=seeded(9))
VALUES = {
    "initial": LAW[:, 0] / LAW[:, 0].sum(-1, keepdim=True),
    "moves": LAW[:, 1:] / LAW[:, 1:].sum(-1, keepdim=True),
}


def check_of(posterior: Any, **options: Any) -> xr.DataTree:
    return ksd_check(first_order, DATA, posterior=posterior, progress=False, **options)


def test_a_point_is_no_posterior() -> None:
    point = {name: value[:1].expand(4, *value.shape[1:]) for name, value in VALUES.items()}
    with pytest.warns(
        UserWarning, match="posterior: expected draws that differ, found 4 times the same point; pass one point"
    ):
        PosteriorModels(first_order, DATA, point)


def test_realized_and_replicated_statistics_are_those_of_each_draw() -> None:
    check = check_of(VALUES, seed=5)
    posterior = PosteriorModels(first_order, DATA, VALUES)
    [block] = draw_blocks(len(posterior), len(posterior), seeded_generator(5))
    generator = block.generator()
    views = default_views(length=length_view(posterior[0], DATA, zs(locations=1), barker))
    for index, model in enumerate(posterior):
        replicate = model.draw(len(DATA), generator)
        for name, data in (("realized", DATA), ("replicated", replicate)):
            expected = [float(u_statistic(matrix)) for matrix in stein_matrices(model, data, views)]
            np.testing.assert_allclose(check["ksd_ppc"][name][0, index], expected, rtol=1e-10)
    ppc, ksd = check["ksd_ppc"].to_dataset(), check["ksd"].to_dataset()
    xr.testing.assert_allclose(ppc["difference"], ppc["realized"] - ppc["replicated"])
    np.testing.assert_allclose(ksd["statistic"], ppc["realized"].mean(["chain", "draw"]))
    exceed = (ppc["replicated"] >= ppc["realized"]).sum(["chain", "draw"])
    np.testing.assert_allclose(ksd["p_value"], (1 + exceed) / 7)
    np.testing.assert_allclose(ksd["contribution"].sum("sequence"), ksd["statistic"], rtol=1e-10)
    np.testing.assert_allclose(ksd["attribution"].sum(["shown", "position"]), ksd["statistic"], rtol=1e-10)
    assert ksd.attrs["kind"] == ppc.attrs["kind"] == "posterior predictive"
    assert "posterior predictive p-values from 6 draws, not calibrated" in repr(summary(check))


def test_draws_in_any_form_give_the_same_result() -> None:
    chains = {name: value.reshape(2, 3, *value.shape[1:]) for name, value in VALUES.items()}
    container = from_pyro(chains, group_by_chain=True)
    expected = check_of(VALUES)["ksd_ppc"]
    forms = [chains, container, to_inference_data(container), {name: value.numpy() for name, value in VALUES.items()}]
    for form in forms:
        found = check_of(form)["ksd_ppc"]
        for name in ("realized", "replicated"):
            np.testing.assert_array_equal(found[name].values.ravel(), expected[name].values.ravel())
    assert check_of(chains)["ksd_ppc"].sizes == {"chain": 2, "draw": 3, "view": 10}


def test_an_mcmc_object_and_its_draws_give_the_same_result() -> None:
    mcmc = nuts(first_order, DATA.tokens, DATA.lengths, draws=4)
    expected = check_of(mcmc)["ksd_ppc"]
    for form in (mcmc.get_samples(), mcmc.get_samples(group_by_chain=True), from_pyro(mcmc)):
        xr.testing.assert_allclose(check_of(form)["ksd_ppc"].to_dataset(), expected.to_dataset(), rtol=1e-12)


def test_a_guide_and_its_predictive_give_draws() -> None:
    guide = svi(first_order, DATA.tokens, DATA.lengths, steps=3)
    assert check_of(guide, num_bootstrap=5)["ksd_ppc"].sizes["draw"] == 5
    predictive = Predictive(first_order, guide=guide, num_samples=4)
    assert check_of(predictive)["ksd_ppc"].sizes["draw"] == 4


def test_more_draws_than_asked_for_are_thinned_evenly() -> None:
    check = check_of(VALUES, num_bootstrap=3, seed=2)
    chosen = {name: value[[0, 2, 5]] for name, value in VALUES.items()}
    xr.testing.assert_equal(check["ksd_ppc"].to_dataset(), check_of(chosen, seed=2)["ksd_ppc"].to_dataset())


def test_order_and_full_evaluation_agree() -> None:
    def with_stops(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        initial, moves = simplex("initial", SIZE), simplex("moves", SIZE, SIZE)
        if num_sequences is not None:
            return drawn(MarkovSequence.from_transitions(initial, moves, stop=0.2), num_sequences)
        with pyro.plate("sequences", len(lengths)):
            steps(sequences, lengths, initial, moves)
        return None

    full = ksd_check(with_stops, DATA, posterior=VALUES, progress=False)["ksd_ppc"].to_dataset()
    table = ksd_check(with_stops, DATA, posterior=VALUES, order=1, progress=False)["ksd_ppc"].to_dataset()
    # The replicated data of the table are others; test_posterior_models compares their statistics.
    xr.testing.assert_allclose(full["realized"], table["realized"], rtol=1e-9)
    xr.testing.assert_allclose(full, check_of(VALUES)["ksd_ppc"].to_dataset(), rtol=1e-8, atol=1e-10)


def test_tables_that_nobody_asked_for_change_nothing_but_the_time() -> None:
    data = chain_data(40)  # enough edits for tables
    found, expected = (
        ksd_check(first_order, data, posterior=VALUES, order=order, seed=4, progress=False) for order in ("auto", None)
    )
    assert found["ksd"].attrs["verified_order"] == 1
    assert "verified_order" not in expected["ksd"].attrs
    ppc = found["ksd_ppc"].to_dataset()
    xr.testing.assert_allclose(ppc, expected["ksd_ppc"].to_dataset(), rtol=1e-9, atol=1e-12)
    assert ppc["realized"].equals(expected["ksd_ppc"]["realized"])
    assert found["ksd"]["p_value"].equals(expected["ksd"]["p_value"])


@pytest.mark.usefixtures("any_sampler")
def test_a_long_range_term_of_replicated_data_leaves_nothing_of_the_tables(tmp_path: Path) -> None:
    word = torch.tensor([1] * 7)  # neither in the data nor one edit away, but in replicated data

    def with_word(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        initial, moves = simplex("initial", SIZE), simplex("moves", SIZE, SIZE)
        if num_sequences is not None:
            return drawn(MarkovSequence.from_transitions(initial, moves, stop=0.2), num_sequences)
        inside = torch.arange(sequences.shape[1]) < lengths[:, None]
        padded = torch.nn.functional.pad(sequences.masked_fill(~inside, -1), (0, 7), value=-1)
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("word", 2.0 * (padded.unfold(1, 7, 1) == word).all(-1).any(-1).double())
            steps(sequences, lengths, initial, moves)
        return None

    data = chain_data(60)
    near = Sequences.cat([data, zs().edits(data).apply(data)]).padded(-1)
    assert not (near.unfold(1, 7, 1) == word).all(-1).any()
    often = {**VALUES, "moves": VALUES["moves"] * torch.tensor([0.2, 5.0, 0.2])}
    often["moves"] = often["moves"] / often["moves"].sum(-1, keepdim=True)
    options: dict[str, Any] = {"posterior": often, "seed": 4, "progress": False}
    assert PosteriorModels(with_word, data, often, order="auto").verified_form == 1
    expected = ksd_check(with_word, data, order=None, **options)
    for _ in range(2):  # the second time from the checkpoint
        found = ksd_check(with_word, data, checkpoint=tmp_path / "kept", **options)
        assert "verified_order" not in found["ksd"].attrs
        assert found["ksd_ppc"].to_dataset().equals(expected["ksd_ppc"].to_dataset())


def hidden_posterior(num: int) -> dict[str, Tensor]:
    """Draws around one hidden Markov model, with the states in both orders."""
    torch.manual_seed(3)
    start, emit = torch.tensor([0.7, 0.3]).double(), torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).double()
    moves = torch.tensor([[0.8, 0.2], [0.3, 0.7]], dtype=torch.double)
    draws = {
        name: dist.Dirichlet(60 * center).sample((num,))
        for name, center in {"start": start, "moves": moves, "emit": emit}.items()
    }
    half = num // 2
    draws["start"][:half] = draws["start"][:half].flip(1)
    draws["moves"][:half] = draws["moves"][:half].flip(1, 2)
    draws["emit"][:half] = draws["emit"][:half].flip(1)
    return draws


def test_automata_that_nobody_asked_for_change_nothing_but_the_time() -> None:
    data, posterior = hidden_data(50), hidden_posterior(6)
    found, expected = (
        ksd_check(hidden_by_steps, data, posterior=posterior, order=order, seed=4, progress=False)
        for order in ("auto", None)
    )
    assert found["ksd"].attrs["verified_states"] == STATES
    assert not any("verified" in name for name in expected["ksd"].attrs)
    ppc = found["ksd_ppc"].to_dataset()
    xr.testing.assert_allclose(ppc, expected["ksd_ppc"].to_dataset(), rtol=1e-9, atol=1e-8)
    assert not ppc["replicated"].equals(expected["ksd_ppc"]["replicated"])  # automata have had a part in it
    assert ppc["realized"].equals(expected["ksd_ppc"]["realized"])
    assert found["ksd"]["p_value"].equals(expected["ksd"]["p_value"])


@pytest.mark.usefixtures("any_sampler")
def test_a_rare_term_of_replicated_data_leaves_nothing_of_the_automata(tmp_path: Path) -> None:
    word = torch.tensor([0] * 5)  # neither in the data nor one edit away, but in replicated data

    def contains(sequences: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.arange(sequences.shape[1]) < lengths[:, None]
        padded = torch.nn.functional.pad(sequences.masked_fill(~inside, -1), (0, 5), value=-1)
        return (padded.unfold(1, 5, 1) == word).all(-1).any(-1)

    def with_word(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            return hidden_by_steps(num_sequences=num_sequences)
        start, moves, emit = simplex("start", STATES), simplex("moves", STATES, STATES), simplex("emit", STATES, SIZE)
        with pyro.plate("sequences", len(lengths), dim=-1):
            pyro.factor("word", 2.0 * contains(sequences, lengths).double())
            z: Any = None
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    law = dist.Categorical(start if z is None else moves[z])
                    z = pyro.sample(f"z_{t}", law, infer={"enumerate": "parallel"})
                    pyro.sample(f"x_{t}", dist.Categorical(emit[z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(HALF[0]), obs=(lengths == t + 1).double())
        return None

    data = hidden_data(60)
    around = zs().edits(data)
    edited = around.apply(data)
    data = data[around.sum_by_owner(contains(edited.tokens, edited.lengths).double()) == 0]
    posterior = hidden_posterior(8)
    options: dict[str, Any] = {"posterior": posterior, "seed": 4, "progress": False}
    form = PosteriorModels(with_word, data, posterior, order="auto").verified_form
    assert found_by(form) == {"verified_states": STATES}
    expected = ksd_check(with_word, data, order=None, **options)
    for _ in range(2):  # the second time from the checkpoint
        found = ksd_check(with_word, data, checkpoint=tmp_path / "kept", **options)
        assert not any("verified" in name for name in found["ksd"].attrs)
        assert found["ksd_ppc"].to_dataset().equals(expected["ksd_ppc"].to_dataset())


def test_the_bar_moves_within_a_batch_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []

    original = progress.ProgressBar.update

    def update(bar: progress.ProgressBar, count: int = 1) -> None:
        original(bar, count)
        if bar._unit == "draw":
            moved.append(bar.done)

    monkeypatch.setattr(progress.ProgressBar, "update", update)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 40)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.GROUPED_EDITS", 40)
    check_of(many_draws(30), views=["content-1", "start"], order=None)
    reached = moved[: moved.index(30) + 1]
    assert reached == sorted(reached)
    assert max(later - earlier for earlier, later in pairwise([0, *reached])) <= 5  # of 30 in one batch


def test_joins_the_users_container() -> None:
    container = from_pyro(VALUES)
    joined = extend(container, check_of(container))
    assert {"posterior", "ksd", "ksd_ppc", "observed_data"} <= set(joined.children)


def test_log_likelihoods_are_log_probabilities_under_each_draw() -> None:
    def program(x: Any = None, num_sequences: int | None = None) -> Any:
        initial, moves = simplex("initial", SIZE), simplex("moves", SIZE, SIZE)
        with pyro.plate("sequences", num_sequences if x is None else len(x)):
            return pyro.sample("x", MarkovSequence.from_transitions(initial, moves, stop=0.2), obs=x)

    data = chain_data(9)
    draws = many_draws(6)
    found = ksd_check(program, data, posterior=draws, views="content-2", progress=False)
    group = found["log_likelihood"]["token"].sel(chain=0)
    for draw in range(6):
        exact = MarkovSequence.from_transitions(draws["initial"][draw], draws["moves"][draw], stop=0.2)
        np.testing.assert_allclose(group.sel(draw=draw), exact.log_joint(data), rtol=1e-9)
        np.testing.assert_array_equal(found["posterior"]["moves"].sel(chain=0, draw=draw), draws["moves"][draw])
    tabulated = ksd_check(program, data, posterior=draws, views="content-2", order=1, progress=False)
    np.testing.assert_allclose(tabulated["log_likelihood"]["token"], found["log_likelihood"]["token"], rtol=1e-9)
    assert "log_likelihood" not in check_of(many_draws(3)).children  # its stops are a factor


def test_replicated_data_are_those_that_the_statistics_are_of() -> None:
    draws = many_draws(4)
    check = check_of(draws, views="content-2", replicates=True)
    made = check["posterior_predictive"].to_dataset()
    for draw, points in enumerate(zip(*draws.values(), strict=True)):
        values = dict(zip(draws, points, strict=True))
        model = MarkovSequence.from_transitions(values["initial"], values["moves"], stop=0.2)
        replicated = Sequences.of(made["token"].sel(chain=0, draw=draw).values, SIZE, pad=-1)
        [matrix] = stein_matrices(model, replicated, default_views()[1:2])
        expected = float(u_statistic(matrix))
        assert check["ksd_ppc"]["replicated"].values[0, draw, 0] == pytest.approx(expected)
        assert made["length"].sel(chain=0, draw=draw).values.tolist() == replicated.lengths.tolist()


def no_samples(sequences: Tensor, lengths: Tensor) -> None:
    first_order(sequences, lengths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"posterior": {"speed": torch.rand(5)}}, "no global site ['speed'], expected some of ['initial', 'moves']"),
        ({"posterior": {"initial": torch.rand(5, 4)}}, "site 'initial' has draws of shape [5, 4], expected [draws, 3]"),
        ({"posterior": {"initial": VALUES["initial"]}}, "moves"),
        ({"posterior": {}}, "posterior: expected draws of some of the sites ['initial', 'moves'], found none"),
        (
            {"posterior": VALUES, "parameters": {}},
            "posterior: expected it alone, found parameters= beside it; leave out parameters=",
        ),
        (
            {"posterior": VALUES, "bootstrap": "wild"},
            "posterior: expected it alone, found bootstrap= beside it; leave out bootstrap=",
        ),
        ({"posterior": VALUES, "gram": True}, "posterior: expected it alone, found gram= beside it; leave out gram="),
        ({"posterior": VALUES, "model": no_samples}, "found one without the parameter num_sequences; let it draw"),
        ({"posterior": VALUES, "model": EVEN}, "sites to pass the draws to, found MarkovSequence, which has its own"),
    ],
)
def test_refuses(arguments: dict[str, Any], message: str) -> None:
    given = {"model": first_order, "data": DATA} | arguments
    with pytest.raises(ValueError) as error:  # noqa: PT011
        ksd_check(**given, progress=False)
    assert message in str(error.value)


def test_one_sequence_is_too_few_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    models = PosteriorModels(first_order, DATA, VALUES)
    monkeypatch.setattr(predictive, "seeded_generator", None)
    with pytest.raises(ValueError, match=r"^expected at least 2 sequences, found 1; the statistic compares pairs"):
        posterior_predictive(models, DATA[:1], default_views()[:1])


def test_p_value_counts_ties() -> None:
    realized = torch.tensor([[1.0, 0.0], [2.0, 5.0]])
    replicated = torch.tensor([[1.0, 1.0], [1.0, 4.0]])
    torch.testing.assert_close(predictive_p_value(realized, replicated).float(), torch.tensor([2 / 3, 2 / 3]))
    rounded, exact = (torch.tensor([value, 0.7], dtype=torch.double) for value in (0.1 + 0.2, 0.3))
    assert float(rounded[0]) > float(exact[0])
    assert float(predictive_p_value(rounded, exact)) == 1.0
    assert float(predictive_p_value(rounded + 1e-6, exact)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("inference", ["NUTS", "SVI"])
@pytest.mark.parametrize("right", [True, False])
def test_a_chain_after_inference(inference: str, right: bool) -> None:
    data, draws = (chain_data(50), 40) if right else (second_order_data(50), 100)
    arguments = (data.tokens, data.lengths)
    posterior = nuts(first_order, *arguments, draws=draws) if inference == "NUTS" else svi(first_order, *arguments)
    check = ksd_check(first_order, data, posterior=posterior, order=1, num_bootstrap=draws, progress=False)
    p = float(check["ksd"]["p_value_overall"])
    if right:
        assert p > 0.05
    else:
        assert p < 0.01
        assert float(check["ksd"]["p_value"].sel(view="content-3")) < 0.01
        assert "does not fit" in verdict(check)


@pytest.mark.parametrize("inference", [pytest.param("NUTS", marks=pytest.mark.slow), "SVI"])
@pytest.mark.parametrize("right", [True, False])
def test_a_hidden_markov_model_after_inference(inference: str, right: bool) -> None:
    data, draws = (hidden_data(120), 40) if right else (second_order_data(120, stop=0.5), 100)
    program: Any
    posterior: Any
    if inference == "NUTS":
        program, posterior = hidden, nuts(hidden, data.padded(-1), draws=draws)
    else:
        program = hidden_by_steps
        posterior = svi(program, data.tokens, data.lengths, enumerated=True, steps=40)
    # Edits near the end are enough here, and a hidden Markov model is slow to evaluate.
    options: dict[str, Any] = {"views": ["content-2", "content-3"], "neighborhood": zs(locations=3)}
    check = ksd_check(program, data, posterior=posterior, num_bootstrap=draws, progress=False, **options)
    p = float(check["ksd"]["p_value_overall"])
    assert p > 0.05 if right else p < 0.01


def many_draws(count: int) -> dict[str, Tensor]:
    """Draws around the parameters of the data."""
    moves = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], dtype=torch.double)
    noise = 0.5 + torch.rand(count, 4, SIZE, dtype=torch.double, generator=seeded(4))
    weights = moves[[0, 0, 1, 2]] * noise
    weights = weights / weights.sum(-1, keepdim=True)
    return {"initial": weights[:, 0], "moves": weights[:, 1:]}


def test_the_overall_p_value_and_the_places_of_many_draws() -> None:
    check = check_of(many_draws(40), views=["content-1", "content-2", "start"], order=1)
    realized, replicated = (check["ksd_ppc"][name].values[0] for name in ("realized", "replicated"))
    center, spread = replicated.mean(0), replicated.std(0)
    observed, drawn_ones = (realized - center) / spread, (replicated - center) / spread
    overall = (1 + (drawn_ones.max(1) >= observed.max(1)).sum()) / 41
    assert float(check["ksd"]["p_value_overall"]) == pytest.approx(overall, abs=1e-12)
    assert overall != (1 + (drawn_ones.mean(1) >= observed.mean(1)).sum()) / 41
    # Places are means over 25 draws at even distances, not over the first ones.
    chosen = [draw * 39 // 24 for draw in range(25)]
    contribution = check["ksd"]["contribution"].sum("sequence")
    np.testing.assert_allclose(contribution, realized[chosen].mean(0), rtol=1e-10)


def test_blocks_stay_evaluated_in_the_process_that_began_alone() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    posterior = PosteriorModels(first_order, DATA, VALUES)
    with progress.progress_bar(show=False, desc="draws", unit="draw", total=len(posterior)) as bar:
        parts = predictive._Parts(posterior, DATA, default_views()[:1], False, PAIR_BYTES, bar)
        [block] = draw_blocks(len(posterior), len(posterior), seeded_generator(0))
        assert parts.to_localize(block) is not parts.to_localize(block)
        parts.compared(block)
        found = parts.to_localize(block)
        assert found is parts.to_localize(block)
        assert len(found.states) == len(posterior)
        sent = cloudpickle.loads(cloudpickle.dumps(parts))
    assert sent.localized(block) == list(range(len(posterior)))
    sent.compared(block)
    assert sent.to_localize(block) is not sent.to_localize(block)  # a worker has many blocks, one after the other


def test_each_block_of_draws_has_random_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"views": ["content-2", "start"], "order": 1, "seed": 3}
    together = check_of(VALUES, **options)
    monkeypatch.setattr("pyro_ksd.fit_tests.predictive.WEIGHTED_PAIRS", 1)
    apart = check_of(VALUES, **options)
    np.testing.assert_allclose(apart["ksd_ppc"]["realized"], together["ksd_ppc"]["realized"], rtol=1e-10)
    posterior = PosteriorModels(first_order, DATA, VALUES, order=1)
    views = [view for view in default_views() if view.name in options["views"]]
    for index, block in enumerate(draw_blocks(len(posterior), 1, seeded_generator(3))):
        replicate = posterior.of_draws(slice(index, index + 1)).draw_like(DATA, block.generator())
        expected = [float(u_statistic(matrix)) for matrix in stein_matrices(posterior[index], replicate, views)]
        np.testing.assert_allclose(apart["ksd_ppc"]["replicated"][0, index], expected, rtol=1e-9)
    np.testing.assert_allclose(apart["ksd"]["contribution"].sum("sequence"), apart["ksd"]["statistic"], rtol=1e-10)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e6])
def test_the_unit_of_statistics_does_not_matter_to_ties(unit: float) -> None:
    realized = torch.tensor([3.0, 1.0, 2.0, 5.0], dtype=torch.double)
    replicated = torch.tensor([2.0, 1.0 - 1e-12, 4.0, 4.9], dtype=torch.double)
    assert float(predictive_p_value(unit * realized, unit * replicated)) == 3 / 5
