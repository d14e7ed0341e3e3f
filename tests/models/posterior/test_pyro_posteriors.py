# SPDX-License-Identifier: Apache-2.0
"""Posterior draws in all the forms in which Pyro gives them."""

from __future__ import annotations

import re
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from bayesian_chain import bayesian, many
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.optim import Adam
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd.models.posterior.pyro_posteriors import (
    chained_draws,
    divergences,
    in_chains,
    observations,
    pointwise_log_likelihood,
    posterior_draws,
    without_sites,
)

ARGUMENTS = (DATA.tokens, DATA.lengths)
SHAPES = {"initial": torch.Size([3]), "moves": torch.Size([3, 3])}


def test_draws_from_mcmc_in_all_forms() -> None:
    mcmc = MCMC(NUTS(bayesian, jit_compile=False), num_samples=3, warmup_steps=2, disable_progbar=True)
    mcmc.run(*ARGUMENTS)
    from_object = posterior_draws(mcmc, SHAPES)
    from_dict = posterior_draws(mcmc.get_samples(), SHAPES)
    from_chains = posterior_draws(mcmc.get_samples(group_by_chain=True), SHAPES)
    for name in SHAPES:
        assert from_object[name].shape == (1, 3, *SHAPES[name])
        assert torch.equal(from_object[name], from_dict[name])
        assert torch.equal(from_object[name], from_chains[name])


def test_draws_from_a_guide_and_from_predictive() -> None:
    guide = AutoNormal(bayesian)
    guide(*ARGUMENTS)
    state = torch.get_rng_state()
    draws = posterior_draws(guide, SHAPES, *ARGUMENTS, num_draws=7)
    assert torch.equal(torch.get_rng_state(), state)
    assert draws["moves"].shape == (1, 7, 3, 3)
    again = posterior_draws(Predictive(bayesian, guide=guide, num_samples=7), SHAPES, *ARGUMENTS)
    assert again["moves"].shape == (1, 7, 3, 3)
    torch.testing.assert_close(draws["moves"].sum(-1), torch.ones(1, 7, 3, dtype=torch.double))


def test_singleton_dimensions_of_predictive_go() -> None:
    values = {"initial": torch.rand(5, 1, 3), "moves": torch.rand(5, 1, 3, 3)}
    assert posterior_draws(values, SHAPES)["initial"].shape == (1, 5, 3)
    chains = {name: value.expand(2, *value.shape).squeeze(2) for name, value in values.items()}
    assert posterior_draws(chains, SHAPES)["initial"].shape == (2, 5, 3)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"initial": torch.rand(5, 4)}, "site 'initial' has draws of shape [5, 4], expected [draws, 3] or [chains, dr"),
        (
            {"speed": torch.rand(5)},
            "posterior: the program has no global site ['speed'], expected some of ['i",
        ),
        (many(2) | {"initial": torch.rand(3, 3)}, "chains and draws for all sites, found {'initial': [1, 3], 'mov"),
        (3, "posterior: expected draws by name, an MCMC object, a Predictive or a guide, found 3"),
        (
            {"initial": torch.rand(0, 3)},
            "posterior: expected at least one draw of each site, found none of ['in",
        ),
        ({"initial": "high"}, "posterior: site 'initial': expected real numbers, found 'high'"),
        (MCMC, "posterior: expected draws by name, an MCMC object, a Predictive or a guide, found the class MCMC"),
    ],
)
def test_wrong_draws(source: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        posterior_draws(source, SHAPES)


def test_sites_of_single_sequences_are_refused_in_draws_and_left_out_of_those_of_a_guide() -> None:
    local = {"mood": "it stands inside the plate 'sequences': leave it out"}
    message = (
        "posterior: site 'mood' belongs to each sequence, expected values of global sites alone, ['initial', 'moves']; "
        "it stands inside the plate 'sequences': leave it out"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        posterior_draws(many(2) | {"mood": torch.rand(2, 5)}, SHAPES, local=local)

    def guide(sequences: Tensor, lengths: Tensor) -> None:
        pyro.sample("initial", dist.Dirichlet(torch.ones(3)))
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("mood", dist.Normal(0.0, 1.0))

    assert set(posterior_draws(guide, SHAPES, *ARGUMENTS, local=local)) == {"initial"}


def test_a_guide_that_fails_is_named() -> None:
    message = "posterior: expected a guide that runs with the arguments of the program, found the function len, which f"
    for call in (lambda: posterior_draws(len, SHAPES, *ARGUMENTS), lambda: chained_draws(len)):
        with pytest.raises(ValueError, match=message):
            call()


def run_mcmc(num_chains: int = 1) -> MCMC:
    kernel = NUTS(bayesian, jit_compile=False)
    mcmc = MCMC(kernel, num_samples=3, warmup_steps=2, num_chains=num_chains, disable_progbar=True)
    mcmc.run(*ARGUMENTS)
    return mcmc


def test_mcmc_before_its_run_is_refused() -> None:
    mcmc = MCMC(NUTS(bayesian), num_samples=3, disable_progbar=True)
    for call in (lambda: posterior_draws(mcmc, SHAPES), lambda: chained_draws(mcmc)):
        with pytest.raises(
            ValueError, match=r"an MCMC object after its run, found no draws; call mcmc.run\(...\) first"
        ):
            call()


def test_chained_draws_of_mcmc_and_of_what_predicts_from_it() -> None:
    mcmc = run_mcmc()
    expected = mcmc.get_samples(group_by_chain=True)
    for source, options in (
        (mcmc, {}),
        (mcmc.get_samples(), {}),
        (Predictive(bayesian, posterior_samples=mcmc.get_samples()), {}),
        (expected, {"group_by_chain": True}),
    ):
        found = chained_draws(source, **options)
        assert found["moves"].shape == (1, 3, 3, 3)
        assert found["moves"].equal(expected["moves"])


def test_chained_draws_of_a_guide_have_its_latent_sites_alone() -> None:
    guide = AutoNormal(bayesian)
    guide(*ARGUMENTS)
    state = torch.get_rng_state()
    found = chained_draws(guide, *ARGUMENTS, num_draws=6)
    assert torch.equal(torch.get_rng_state(), state)
    assert {name: value.shape for name, value in found.items()} == {"initial": (1, 6, 3), "moves": (1, 6, 3, 3)}
    again = chained_draws(Predictive(bayesian, guide=guide, num_samples=4), *ARGUMENTS)
    assert again["initial"].shape == (1, 4, 3)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({"a": torch.rand(4), "b": torch.rand(5)}, {}),
        ({"a": torch.rand(2, 4), "b": torch.rand(2, 5)}, {"group_by_chain": True}),
        ({"a": torch.rand(4)}, {"group_by_chain": True}),
    ],
)
def test_chained_draws_that_differ_in_number_are_refused(values: dict[str, Tensor], options: dict[str, bool]) -> None:
    with pytest.raises(ValueError, match="expected the same number of chains and draws for all sites, found"):
        chained_draws(values, **options)


def test_draws_without_some_sites() -> None:
    mcmc = run_mcmc()
    drawn = mcmc.get_samples(group_by_chain=True)
    for source in (mcmc, drawn):
        found = without_sites(source, {"moves", "other"})
        assert list(found) == ["initial"]
        assert found["initial"].equal(drawn["initial"])
    assert without_sites(len, {"moves"}) is len  # a guide says when it runs


def test_divergences() -> None:
    mcmc = run_mcmc()
    mcmc._diagnostics[0]["divergences"] = [0, 2]
    found = divergences(mcmc)
    assert found is not None
    assert found.tolist() == [[True, False, True]]
    mcmc._diagnostics.append({"divergences": [1]})
    both = divergences(mcmc)
    assert both is not None
    assert both.tolist() == [[True, False, True], [False, True, False]]
    for silent in ({}, None):
        mcmc._diagnostics[1] = silent  # one chain does not say
        assert divergences(mcmc) is None
    del mcmc._diagnostics[1]
    del mcmc._diagnostics[0]["divergences"]
    assert divergences(mcmc) is None
    assert divergences(many()) is None
    assert divergences(AutoNormal(bayesian)) is None


def learned(*arguments: Any) -> None:
    """A guide whose parameters are in the parameter store."""
    loc = pyro.param("loc", torch.zeros(3).double())
    pyro.sample("initial", dist.Dirichlet(1 + loc.exp()))
    with pyro.plate("rows", 3):
        pyro.sample("moves", dist.Dirichlet(torch.ones(3, 3).double()))


@pytest.mark.parametrize("wrap", [lambda guide: guide, lambda guide: Predictive(bayesian, guide=guide, num_samples=4)])
@pytest.mark.parametrize("kind", ["automatic", "function"])
def test_a_guide_that_was_never_trained_is_refused(kind: str, wrap: Any) -> None:
    pyro.clear_param_store()
    guide: Any = AutoNormal(bayesian) if kind == "automatic" else learned
    with pytest.raises(ValueError, match="posterior: expected a guide after its training, found that its parameters"):
        posterior_draws(wrap(guide), SHAPES, *ARGUMENTS, num_draws=4)
    svi = SVI(bayesian, guide, Adam({"lr": 0.01}), Trace_ELBO())
    svi.step(*ARGUMENTS)
    assert posterior_draws(wrap(guide), SHAPES, *ARGUMENTS, num_draws=4)["initial"].shape == (1, 4, 3)


@pytest.mark.parametrize(
    ("shape", "site", "expected"),
    [
        ([5], [], [1, 5]),
        ([5], [1], [1, 5, 1]),
        ([5, 1], [1], [1, 5, 1]),
        ([2, 5], [], [2, 5]),
        ([2, 5, 1], [1], [2, 5, 1]),
        ([5, 3], [3], [1, 5, 3]),
        ([5, 1, 3], [3], [1, 5, 3]),
        ([2, 5, 3], [3], [2, 5, 3]),
        ([2, 5], [1], None),  # it has one number fewer than draws of two chains
        ([5, 3], [2], None),
    ],
)
def test_every_shape_of_draws(shape: list[int], site: list[int], expected: list[int] | None) -> None:
    values = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    if expected is None:
        with pytest.raises(ValueError, match=re.escape(f"posterior: site 'w' has draws of shape {shape}")):
            posterior_draws({"w": values}, {"w": torch.Size(site)})
    else:
        found = posterior_draws({"w": values}, {"w": torch.Size(site)})["w"]
        assert list(found.shape) == expected
        assert found.flatten().tolist() == values.flatten().tolist()


def test_a_guide_is_drawn_from_a_hundred_times_with_the_seed_0() -> None:
    guide = AutoNormal(bayesian)
    guide(*ARGUMENTS)
    drawn = posterior_draws(guide, SHAPES, *ARGUMENTS)["initial"]
    assert drawn.shape == (1, 100, 3)
    assert drawn.equal(posterior_draws(guide, SHAPES, *ARGUMENTS, seed=0)["initial"])
    assert not drawn.equal(posterior_draws(guide, SHAPES, *ARGUMENTS, seed=1)["initial"])
    assert chained_draws(guide, *ARGUMENTS)["initial"].shape == (1, 1000, 3)


def test_an_error_names_the_shapes_of_a_site_that_is_a_number() -> None:
    message = "expected [draws, nothing more] or [chains, draws, nothing more]"
    with pytest.raises(ValueError, match=re.escape(message)):
        posterior_draws({"w": torch.rand(2, 3, 4)}, {"w": torch.Size([])})


# --------------------------------------------------------------------------------------- data and their likelihood

X, Y = torch.tensor([1.0, 2.0, -1.0, 0.5]), torch.tensor([0.9, 2.5, -0.5, 3.0])
KNOWN = torch.tensor([True, True, False, True])


def regression(x: Tensor, y: Tensor | None = None) -> None:
    slope = pyro.sample("slope", dist.Normal(0.0, 1.0))
    pyro.deterministic("twice", 2 * slope)
    pyro.factor("penalty", -(slope**2))
    with pyro.plate("rows", len(x)), pyro.poutine.mask(mask=KNOWN):
        pyro.sample("y", dist.Normal(slope * x, 1.0), obs=y)
    pyro.sample("level", dist.Normal(slope, 2.0), obs=torch.tensor(0.3))


def run_regression(model: Any = regression) -> MCMC:
    """Its draws are those of two chains of three."""
    mcmc = MCMC(NUTS(model, jit_compile=False), num_samples=3, warmup_steps=2, disable_progbar=True)
    mcmc.run(X, y=Y)
    mcmc._samples = {"slope": torch.tensor([[0.5, 1.0, -2.0], [0.0, 3.0, 1.5]])}
    return mcmc


def test_observations_are_data_but_neither_factors_nor_deterministic_sites() -> None:
    for found in (observations(run_regression()), observations(Predictive(regression, num_samples=2), X, Y)):
        assert list(found) == ["y", "level"]
        assert found["y"].equal(Y)
        assert found["level"].item() == pytest.approx(0.3)
    assert observations({"slope": torch.zeros(3)}) == {}


def test_log_likelihoods_are_those_of_each_draw_and_value() -> None:
    mcmc = run_regression()
    found = pointwise_log_likelihood(mcmc)
    assert list(found) == ["y", "level"]
    assert found["y"].shape == (2, 3, 4)
    for chain, row in enumerate(mcmc._samples["slope"]):
        for draw, slope in enumerate(row):
            expected = dist.Normal(slope * X, 1.0).log_prob(Y) * KNOWN
            torch.testing.assert_close(found["y"][chain, draw], expected)
            level = dist.Normal(slope, 2.0).log_prob(torch.tensor(0.3))
            torch.testing.assert_close(found["level"][chain, draw], level)


def test_no_log_likelihoods_of_draws_alone_and_of_latents_that_were_summed_out() -> None:
    for source in (many(2), Predictive(regression, num_samples=2)):
        with pytest.raises(ValueError, match="log_likelihood: expected an MCMC object, which knows its model and data"):
            pointwise_log_likelihood(source)

    def mixture(x: Tensor, y: Tensor) -> None:
        slope = pyro.sample("slope", dist.Normal(0.0, 1.0))
        with pyro.plate("rows", len(x)):
            kind = pyro.sample("kind", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})
            pyro.sample("y", dist.Normal(slope * x * kind, 1.0), obs=y)

    mcmc = run_regression(mixture)
    with pytest.raises(ValueError, match="expected draws of all latent sites, found none of 'kind', which the infer"):
        pointwise_log_likelihood(mcmc)


@pytest.mark.parametrize(
    ("shape", "chains", "expected"),
    [
        ([5, 2], None, [1, 5, 2]),
        ([5], None, [1, 5]),
        ([1, 5], None, [1, 1, 5]),
        ([6, 4], (2, 3), [2, 3, 4]),
        ([6], (2, 3), [2, 3]),
        ([2, 3], (2, 3), [2, 3]),
        ([2, 3, 4], (2, 3), [2, 3, 4]),
    ],
)
def test_predictive_draws_are_those_of_one_chain_after_the_other(
    shape: list[int], chains: tuple[int, int] | None, expected: list[int]
) -> None:
    values = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    found = in_chains("prior", {"x": values}, chains)["x"]
    assert list(found.shape) == expected
    assert found.flatten().equal(values.flatten())


@pytest.mark.parametrize(
    ("shape", "chains", "number"),
    [([5], (2, 3), 6), ([2, 2], (2, 3), 6), ([3, 2], (2, 3), 6), ([], (1, 1), 1), ([], None, 0)],
)
def test_predictive_draws_of_another_number_are_refused(
    shape: list[int], chains: tuple[int, int] | None, number: int
) -> None:
    message = f"prior: expected {number} draws of 'x', as many as of the posterior, found the shape {shape}; draw"
    with pytest.raises(ValueError, match=re.escape(message)):
        in_chains("prior", {"x": torch.zeros(shape)}, chains)
