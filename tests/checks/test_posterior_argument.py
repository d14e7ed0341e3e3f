# SPDX-License-Identifier: Apache-2.0
"""Posterior draws from containers, and as a group of a check."""

from __future__ import annotations

from typing import Any

import arviz as az
import numpy as np
import pyro
import pytest
import torch
import xarray as xr

from pyro_ksd import MarkovSequence, Sequences
from pyro_ksd.checks.posterior_argument import draws_of, posterior_group
from pyro_ksd.models.posterior.posterior_models import PosteriorModels

DATA = Sequences.of(["ab", "b", "aba", "aa"])


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    initial = pyro.sample("initial", pyro.distributions.Dirichlet(torch.ones(2)))
    chain = MarkovSequence.from_transitions(initial, torch.ones(2, 2) / 2, stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def container() -> xr.DataTree:
    """Two chains of ten draws; the dimensions of ``initial`` stand in another order than Pyro's."""
    random = np.random.default_rng(0)
    initial = random.dirichlet([1, 1], size=(2, 10))
    group = xr.Dataset(
        {
            "stop": (("draw", "chain"), random.uniform(0.2, 0.8, (10, 2))),
            "initial": (("letter", "chain", "draw"), np.moveaxis(initial, -1, 0)),
        },
        coords={"chain": [3, 4], "draw": np.arange(100, 110), "letter": ["a", "b"]},
    )
    return xr.DataTree.from_dict({"posterior": group})


@pytest.mark.parametrize("kind", [lambda tree: tree, az.from_datatree], ids=["DataTree", "InferenceData"])
def test_draws_of_a_container(kind: Any) -> None:
    draws = draws_of(kind(container()))
    assert {name: list(value.shape) for name, value in draws.items()} == {"stop": [2, 10], "initial": [2, 10, 2]}
    given = {"stop": torch.rand(3)}
    assert draws_of(given) is given


def test_the_group_has_the_draws_that_were_taken_and_the_names_of_the_container() -> None:
    models = PosteriorModels(program, DATA, draws_of(container()), num_draws=8)
    group = posterior_group(container(), models)
    assert dict(group.sizes) == {"chain": 2, "draw": 4, "letter": 2}
    for name, values in models.values.items():
        np.testing.assert_array_equal(group[name].values.reshape(8, *values.shape[1:]), values)
    assert group["letter"].values.tolist() == ["a", "b"]
    assert group["draw"].values.tolist() == [0, 1, 2, 3]


def test_draws_by_name_get_names_for_their_dimensions() -> None:
    draws = {"stop": torch.rand(6), "initial": torch.tensor([[0.5, 0.5]]).expand(6, 2)}
    group = posterior_group(draws, PosteriorModels(program, DATA, draws))
    assert group["initial"].dims == ("chain", "draw", "initial_dim_0")
    np.testing.assert_array_equal(group["stop"].values, draws["stop"][None])
