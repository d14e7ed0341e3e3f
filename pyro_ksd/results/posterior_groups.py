# SPDX-License-Identifier: Apache-2.0
"""Posterior draws from Pyro, in the layout that ArviZ expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from pyro_ksd.common.option_checks import check_flag, check_mapping, check_number, found
from pyro_ksd.models.posterior.pyro_posteriors import chained_draws, divergences
from pyro_ksd.results.checksums import with_checksums
from pyro_ksd.results.containers import provenance


def from_pyro(
    posterior: Any,
    *arguments: Any,
    num_draws: int = 1000,
    group_by_chain: bool = False,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> xr.DataTree:
    """Posterior draws as a group ``posterior``, with dimensions ``chain``, ``draw`` and those of each site.

    An ``MCMC`` object with a kernel that knows its divergences also gives ``diverging`` in a group ``sample_stats``.
    Add a check with :func:`pyro_ksd.extend`; for ArviZ 0.23, convert with :func:`pyro_ksd.to_inference_data`.

    :param posterior: an ``MCMC`` object after its run, draws by name (from ``MCMC.get_samples()`` or a ``Predictive``),
        a guide, or a ``Predictive``, of which the draws are taken that it predicts from.
    :param arguments: the program's arguments, for a guide to run with.
    :param num_draws: how many draws to take from a guide.
    :param group_by_chain: whether draws given by name come from ``MCMC.get_samples(group_by_chain=True)``.
    :param coords: the labels along a dimension, by its name; ``0, 1, ...`` for dimensions left out.
    :param dims: the dimensions of a site, by its name; ``<name>_dim_0, <name>_dim_1, ...`` for sites left out.
    :raises ValueError: naming the site or the dimension that does not fit.

    >>> import torch
    >>> draws = {"rate": torch.rand(50), "start": torch.rand(50, 2)}
    >>> from_pyro(draws, coords={"letter": ["a", "b"]}, dims={"start": ["letter"]})["posterior"]["start"].dims
    ('chain', 'draw', 'letter')
    """
    check_number("num_draws", num_draws, least=1)
    check_flag("group_by_chain", group_by_chain)
    _check_lists("coords", coords, "the labels along a dimension, by its name")
    _check_lists("dims", dims, "the dimensions of a site, by its name")
    if isinstance(posterior, type | Mapping):
        check_mapping("posterior", posterior, "draws by the names of the sites")
    draws = chained_draws(posterior, *arguments, num_draws=num_draws, group_by_chain=group_by_chain)
    if not draws:
        raise ValueError(f"posterior: expected draws of at least one site, found none in {found(posterior)}")
    groups = {"posterior": _sampled(draws, coords or {}, dims or {})}
    diverging = divergences(posterior)
    if diverging is not None:
        groups["sample_stats"] = _sampled({"diverging": diverging}, {}, {})
    return with_checksums(xr.DataTree.from_dict(groups))


def _check_lists(name: str, lists: Mapping[str, Sequence[Any]] | None, words: str) -> None:
    """Checks an argument of lists by name."""
    if lists is None:
        return
    check_mapping(name, lists, words)
    for key, values in lists.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise ValueError(f"{name}: expected {words}, found {found(values)} for {key!r}; pass a list")


def _sampled(
    draws: Mapping[str, Tensor], coords: Mapping[str, Sequence[Any]], dims: Mapping[str, Sequence[str]]
) -> xr.Dataset:
    unknown = sorted(set(dims) - set(draws))
    if unknown:
        raise ValueError(f"dims: found no site {unknown} in the posterior, expected some of {sorted(draws)}")
    named = {name: ("chain", "draw", *_dims(name, value, dims)) for name, value in draws.items()}
    _check_distinct(named)
    sizes = {dim: size for name, value in draws.items() for dim, size in zip(named[name], value.shape, strict=True)}
    wrong = {dim: len(labels) for dim, labels in coords.items() if sizes.get(dim) != len(labels)}
    if wrong:
        raise ValueError(f"coords: found labels for {wrong}, expected one a place for some of {sizes}")
    variables = {name: (named[name], value.detach().cpu().numpy()) for name, value in draws.items()}
    labels = {dim: list(coords[dim]) if dim in coords else np.arange(size) for dim, size in sizes.items()}
    return xr.Dataset(variables, coords=labels, attrs=provenance() | {"sample_dims": ["chain", "draw"]})


def _check_distinct(named: Mapping[str, Sequence[str]]) -> None:
    """Checks that no site has two dimensions of one name, or another one of the name of its chains or draws."""
    for name, own in named.items():
        if len(set(own)) < len(own):
            raise ValueError(f"dims: expected distinct names for site {name!r}, found {list(own)} with those of draws")


def _dims(name: str, value: Tensor, dims: Mapping[str, Sequence[str]]) -> Sequence[str]:
    own = dims.get(name, [f"{name}_dim_{i}" for i in range(value.ndim - 2)])
    if len(own) != value.ndim - 2:
        raise ValueError(
            f"dims: expected {value.ndim - 2} name(s) for site {name!r} of the shape {list(value.shape[2:])}, found "
            f"{list(own)}"
        )
    return own
