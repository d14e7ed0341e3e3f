# SPDX-License-Identifier: Apache-2.0
"""Posterior draws from Pyro in the layout of ArviZ."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import arviz
import numpy as np
import pytest
import xarray as xr
from synthetic import made_up_check

torch = pytest.importorskip("torch")

import pyro  # noqa: E402
import pyro.distributions as dist  # noqa: E402
from pyro.infer import HMC, MCMC, NUTS, Predictive  # noqa: E402
from pyro.infer.autoguide import AutoDelta, AutoMultivariateNormal, AutoNormal  # noqa: E402
from pyro.infer.mcmc import RandomWalkKernel  # noqa: E402

from pyro_ksd import extend, from_pyro, to_inference_data  # noqa: E402


@pytest.fixture(autouse=True)
def _clear() -> Any:
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()


def model(data: torch.Tensor) -> None:
    scale = pyro.sample("scale", dist.Gamma(2.0, 2.0))
    with pyro.plate("places", 2):
        start = pyro.sample("start", dist.Dirichlet(torch.ones(3)))
    with pyro.plate("data", len(data)):
        pyro.sample("x", dist.Normal(start[0, 0], scale), obs=data)


DATA = torch.tensor([0.1, 0.4, 0.3])


def run(kernel: Any, chains: int = 1, monkeypatch: pytest.MonkeyPatch | None = None) -> MCMC:
    if monkeypatch is not None:  # chains one after the other, whatever the machine
        monkeypatch.setattr("torch.multiprocessing.cpu_count", lambda: 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "num_chains=.+ is more than available_cpu")
        mcmc = MCMC(kernel, num_samples=6, warmup_steps=2, num_chains=chains, disable_progbar=True)
    mcmc.run(DATA)
    return mcmc


def test_chains_of_mcmc_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    mcmc = run(NUTS(model), 3, monkeypatch)
    posterior = from_pyro(mcmc)["posterior"].to_dataset()
    assert dict(posterior.sizes) == {"chain": 3, "draw": 6, "start_dim_0": 2, "start_dim_1": 3}
    assert posterior["start"].dims == ("chain", "draw", "start_dim_0", "start_dim_1")
    for name, value in mcmc.get_samples(group_by_chain=True).items():
        np.testing.assert_array_equal(posterior[name], value)
    assert posterior.attrs["inference_library"] == "pyro"
    assert posterior.attrs["inference_library_version"] == pyro.__version__


def test_divergences_are_marked_in_their_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    mcmc = run(HMC(model, step_size=0.1, num_steps=2), 12, monkeypatch)
    for row, found in enumerate(mcmc._diagnostics):
        found["divergences"] = [row % 6, 5]
    stats = from_pyro(mcmc)["sample_stats"].to_dataset()
    assert stats["diverging"].dims == ("chain", "draw")
    assert stats["diverging"].dtype == bool
    for row in range(12):
        assert np.flatnonzero(stats["diverging"].values[row]).tolist() == sorted({row % 6, 5})


def test_divergences_of_a_real_run() -> None:
    def cliff() -> None:
        pyro.sample("x", dist.Normal(0.0, 1e-3))

    mcmc = MCMC(HMC(cliff, step_size=10.0, num_steps=2, adapt_step_size=False), 5, 0, disable_progbar=True)
    mcmc.run()
    assert from_pyro(mcmc)["sample_stats"]["diverging"].values.all()


def test_a_kernel_without_divergences_has_no_sample_stats() -> None:
    assert list(from_pyro(run(RandomWalkKernel(model))).children) == ["posterior"]


def test_mcmc_before_its_run() -> None:
    with pytest.raises(ValueError, match=r"expected an MCMC object after its run, found no draws; call mcmc.run"):
        from_pyro(MCMC(NUTS(model), num_samples=2))


def test_draws_by_name() -> None:
    draws = {"rate": torch.rand(4, requires_grad=True), "start": torch.rand(4, 3)}
    posterior = from_pyro(draws)["posterior"].to_dataset()
    assert dict(posterior.sizes) == {"chain": 1, "draw": 4, "start_dim_0": 3}
    np.testing.assert_array_equal(posterior["start"][0], draws["start"])
    arrays = {name: value.detach().numpy() for name, value in draws.items()}
    xr.testing.assert_equal(from_pyro(arrays)["posterior"].to_dataset(), posterior)


def test_draws_by_name_grouped_by_chain() -> None:
    draws = {"rate": torch.rand(2, 4), "start": torch.rand(2, 4, 3)}
    posterior = from_pyro(draws, group_by_chain=True)["posterior"].to_dataset()
    assert dict(posterior.sizes) == {"chain": 2, "draw": 4, "start_dim_0": 3}
    np.testing.assert_array_equal(posterior["start"], draws["start"])


@pytest.mark.parametrize("kind", [AutoNormal, AutoMultivariateNormal, AutoDelta])
def test_guides(kind: Any) -> None:
    guide = kind(model)
    guide(DATA)
    state = torch.get_rng_state()
    tree = from_pyro(guide, DATA, num_draws=50)
    assert torch.equal(torch.get_rng_state(), state)
    posterior = tree["posterior"].to_dataset()
    assert list(tree.children) == ["posterior"]
    assert set(posterior.data_vars) == {"scale", "start"}  # no auxiliary sites
    assert posterior["scale"].shape == (1, 50)
    assert posterior["start"].shape == (1, 50, 2, 3)
    np.testing.assert_allclose(posterior["start"].sum("start_dim_1"), 1, rtol=1e-5)
    median = float(guide.median(DATA)["scale"])
    assert float(posterior["scale"].median()) == pytest.approx(median, rel=0.1)


def test_predictive_gives_the_draws_that_it_predicts_from() -> None:
    guide = AutoNormal(model)
    guide(DATA)
    of_guide = from_pyro(Predictive(model, guide=guide, num_samples=7), DATA)["posterior"]
    assert set(of_guide.data_vars) == {"scale", "start"}
    assert of_guide["start"].shape == (1, 7, 2, 3)
    draws = {"scale": torch.rand(4), "start": torch.rand(4, 2, 3)}
    of_draws = from_pyro(Predictive(model, draws), DATA)["posterior"]
    np.testing.assert_array_equal(of_draws["start"][0], draws["start"])


def test_names_and_labels_of_dimensions() -> None:
    draws = {"moves": torch.rand(4, 2, 3), "start": torch.rand(4, 2)}
    dims = {"moves": ["place", "letter"], "start": ["place"]}
    posterior = from_pyro(draws, dims=dims, coords={"letter": list("abc")})["posterior"].to_dataset()
    assert posterior["moves"].dims == ("chain", "draw", "place", "letter")
    assert posterior["letter"].values.tolist() == ["a", "b", "c"]
    assert posterior["place"].values.tolist() == [0, 1]
    np.testing.assert_array_equal(posterior["moves"].sel(letter="c")[0], draws["moves"][..., 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"dims": {"speed": ["a"]}},
            "dims: found no site ['speed'] in the posterior, expected some of ['rate', 'start']",
        ),
        (
            {"dims": {"start": ["a", "b"]}},
            "dims: expected 1 name(s) for site 'start' of the shape [3], found ['a', 'b']",
        ),
        (
            {"dims": {"start": ["a"]}, "coords": {"a": [1, 2]}},
            "coords: found labels for {'a': 2}, expected one a place",
        ),
        ({"coords": {"b": [1, 2, 3]}}, "coords: found labels for {'b': 3}, expected one a place for some of {'chain'"),
        (
            {"group_by_chain": True},
            "expected the same number of chains and draws for all sites, found {'rate': [4], 'st",
        ),
    ],
)
def test_what_does_not_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        from_pyro({"rate": torch.rand(4), "start": torch.rand(4, 3)}, **arguments)


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        (
            {"a": torch.rand(4), "b": torch.rand(5)},
            "number of chains and draws for all sites, found {'a': [1, 4], 'b': [1",
        ),
        ({"a": torch.tensor(1.0)}, "the same number of chains and draws for all sites, found {'a': [1]}"),
        ({}, "posterior: expected draws of at least one site, found none in {}"),
        (3, "posterior: expected draws by name, an MCMC object, a Predictive or a guide, found 3"),
    ],
)
def test_what_is_no_posterior(posterior: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        from_pyro(posterior)


def test_posterior_and_check_in_one_file_that_arviz_reads(tmp_path: Path) -> None:
    tree = extend(from_pyro(run(NUTS(model)), dims={"start": ["place", "letter"]}), made_up_check())
    tree.to_netcdf(tmp_path / "all.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "all.nc", engine="h5netcdf") as again:
        xr.testing.assert_identical(again.load(), tree)
        table = arviz.summary(to_inference_data(again), kind="stats")
    assert table.index.tolist()[:2] == ["scale", "start[0, 0]"]
    assert float(table["mean"].iloc[0]) == pytest.approx(float(tree["posterior"]["scale"].mean()), abs=0.06)


def test_a_whole_inference_as_arviz_had_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mcmc = run(NUTS(model), 2, monkeypatch)
    drawn = {"x": torch.arange(36.0).view(12, 3)}
    prior = {"scale": torch.ones(7), "start": torch.ones(7, 2, 3), "x": torch.ones(7, 3)}
    found = from_pyro(
        mcmc,
        posterior_predictive=drawn,
        prior=prior,
        log_likelihood=True,
        constant_data={"age": np.array([30, 40, 50])},
        dims={"x": ["person"], "age": ["person"]},
        coords={"person": ["a", "b", "c"]},
    )
    sampled = {"posterior", "sample_stats", "posterior_predictive", "log_likelihood", "prior", "prior_predictive"}
    assert set(found.children) == sampled | {"observed_data", "constant_data"}
    assert found["posterior_predictive"]["x"].sel(chain=1, draw=2, person="b") == 25.0
    assert found["prior"].sizes == {"chain": 1, "draw": 7, "start_dim_0": 2, "start_dim_1": 3}
    assert list(found["prior_predictive"].data_vars) == ["x"]
    np.testing.assert_array_equal(found["observed_data"]["x"], DATA)
    assert found["constant_data"]["age"].sel(person="c") == 50
    posterior = found["posterior"].to_dataset()
    for chain in range(2):
        for draw in range(6):
            point = posterior.sel(chain=chain, draw=draw)
            law = dist.Normal(float(point["start"][0, 0]), float(point["scale"]))
            np.testing.assert_allclose(found["log_likelihood"]["x"].sel(chain=chain, draw=draw), law.log_prob(DATA))


def test_masked_values_and_factors_have_no_log_likelihood() -> None:
    def masked(data: torch.Tensor) -> None:
        scale = pyro.sample("scale", dist.Gamma(2.0, 2.0))
        with pyro.plate("data", len(data)), pyro.poutine.mask(mask=data > 0.2):
            pyro.sample("x", dist.Normal(0.0, scale), obs=data)
        pyro.factor("cost", -scale)
        pyro.deterministic("twice", 2 * scale)

    found = from_pyro(run(NUTS(masked)), log_likelihood=True)
    assert list(found["log_likelihood"].data_vars) == list(found["observed_data"].data_vars) == ["x"]
    assert (found["log_likelihood"]["x"].isel(x_dim_0=0) == 0).all()
    assert (found["log_likelihood"]["x"].isel(x_dim_0=1) != 0).all()


def test_predictive_draws_alone_and_of_another_number() -> None:
    alone = from_pyro(posterior_predictive={"x": torch.ones(5, 3)})
    assert alone["posterior_predictive"].sizes == {"chain": 1, "draw": 5, "x_dim_0": 3}
    with pytest.raises(ValueError, match=r"posterior_predictive: expected 6 draws of 'x', as many as .*\[5, 3\]"):
        from_pyro(run(NUTS(model)), posterior_predictive={"x": torch.ones(5, 3)})
    with pytest.raises(ValueError, match="expected an inference, prior= or posterior_predictive=, found none of them"):
        from_pyro()


def test_latents_that_no_draw_has_and_sources_without_a_model() -> None:
    def mixture(data: torch.Tensor) -> None:
        scale = pyro.sample("scale", dist.Gamma(2.0, 2.0))
        with pyro.plate("data", len(data)):
            kind = pyro.sample("kind", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})
            pyro.sample("x", dist.Normal(kind, scale), obs=data)

    with pytest.raises(ValueError, match="found none of 'kind', which the inference sums out"):
        from_pyro(run(NUTS(mixture, max_plate_nesting=1)), log_likelihood=True)
    with pytest.raises(ValueError, match="log_likelihood: expected an MCMC object, which knows its model and data"):
        from_pyro({"scale": torch.ones(4)}, log_likelihood=True)
    with pytest.raises(ValueError, match="constant_data: expected arrays of numbers by name"):
        from_pyro({"scale": torch.ones(4)}, constant_data={"name": ["a"]})
