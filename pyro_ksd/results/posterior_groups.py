# SPDX-License-Identifier: Apache-2.0
"""Posterior draws from Pyro, in the layout that ArviZ expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from pyro_ksd.common.option_checks import check_flag, check_mapping, check_number, found
from pyro_ksd.models.posterior.pyro_posteriors import (
    chained_draws,
    divergences,
    in_chains,
    observations,
    pointwise_log_likelihood,
)
from pyro_ksd.results.checksums import with_checksums
from pyro_ksd.results.containers import provenance


def from_pyro(
    posterior: Any = None,
    *arguments: Any,
    prior: Mapping[str, Any] | None = None,
    posterior_predictive: Mapping[str, Any] | None = None,
    log_likelihood: bool = False,
    constant_data: Mapping[str, Any] | None = None,
    num_draws: int = 1000,
    group_by_chain: bool = False,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> xr.DataTree:
    """An inference as groups in the layout of ArviZ, as ``arviz.from_pyro`` made them up to ArviZ 0.23.

    The group ``posterior`` has the dimensions ``chain``, ``draw`` and those of each site. An ``MCMC`` object with a
    kernel that knows its divergences also gives ``diverging`` in a group ``sample_stats``; together with
    ``posterior_predictive`` or ``log_likelihood``, it also gives ``observed_data``. Add a check with
    :func:`pyro_ksd.extend`; for ArviZ 0.23, convert with :func:`pyro_ksd.to_inference_data`.

    :param posterior: an ``MCMC`` object after its run, draws by name (from ``MCMC.get_samples()`` or a ``Predictive``),
        a guide, or a ``Predictive``, of which the draws are taken that it predicts from.
    :param arguments: the program's arguments, for a guide to run with.
    :param prior: draws by name from ``Predictive(model, num_samples=...)``: the sites of the posterior become the group
        ``prior``, the others ``prior_predictive``.
    :param posterior_predictive: draws by name from ``Predictive(model, mcmc.get_samples())``.
    :param log_likelihood: whether to compute the log-probability of each observed value under each draw, for an
        ``MCMC`` object; the model runs once for each draw. Values that are masked have 0.
    :param constant_data: arrays by name, such as covariates.
    :param num_draws: how many draws to take from a guide.
    :param group_by_chain: whether draws given by name come from ``MCMC.get_samples(group_by_chain=True)``.
    :param coords: the labels along a dimension, by its name; ``0, 1, ...`` for dimensions left out.
    :param dims: the dimensions of a site, by its name; ``<name>_dim_0, <name>_dim_1, ...`` for sites left out.
    :raises ValueError: naming the site or the dimension that does not fit.

    >>> import torch
    >>> draws = {"rate": torch.rand(50), "start": torch.rand(50, 2)}
    >>> from_pyro(draws, coords={"letter": ["a", "b"]}, dims={"start": ["letter"]})["posterior"]["start"].dims
    ('chain', 'draw', 'letter')
    >>> sorted(from_pyro(draws, posterior_predictive={"count": torch.ones(50, 7)}).children)
    ['posterior', 'posterior_predictive']
    """
    check_number("num_draws", num_draws, least=1)
    check_flag("group_by_chain", group_by_chain)
    check_flag("log_likelihood", log_likelihood)
    _check_lists("coords", coords, "the labels along a dimension, by its name")
    _check_lists("dims", dims, "the dimensions of a site, by its name")
    given = {"prior": prior, "posterior_predictive": posterior_predictive, "constant_data": constant_data}
    for name, values in given.items():
        if values is not None:
            check_mapping(name, values, "values by name")
    if isinstance(posterior, type | Mapping):
        check_mapping("posterior", posterior, "draws by the names of the sites")
    if posterior is None and prior is None and posterior_predictive is None:
        raise ValueError("posterior: expected an inference, prior= or posterior_predictive=, found none of them")
    groups: dict[str, dict[str, Tensor]] = {}
    shape = None
    if posterior is not None:
        groups["posterior"] = chained_draws(posterior, *arguments, num_draws=num_draws, group_by_chain=group_by_chain)
        if not groups["posterior"]:
            raise ValueError(f"posterior: expected draws of at least one site, found none in {found(posterior)}")
        chains, length = next(iter(groups["posterior"].values())).shape[:2]
        shape = chains, length
        diverging = divergences(posterior)
        if diverging is not None:
            groups["sample_stats"] = {"diverging": diverging}
    if posterior_predictive is not None:
        groups["posterior_predictive"] = in_chains("posterior_predictive", posterior_predictive, shape)
    if log_likelihood:
        groups["log_likelihood"] = pointwise_log_likelihood(posterior)
    if prior is not None:
        drawn = in_chains("prior", prior, None)
        latent = groups.get("posterior", {})
        groups["prior"] = {name: value for name, value in drawn.items() if name in latent or not latent}
        groups["prior_predictive"] = {name: value for name, value in drawn.items() if name not in groups["prior"]}
    data = {} if constant_data is None else {"constant_data": _as_tensors(constant_data)}
    if posterior_predictive is not None or log_likelihood:
        data["observed_data"] = observations(posterior, *arguments)
    named = _named(groups, data, coords or {}, dims or {})
    return with_checksums(xr.DataTree.from_dict(named))


def _check_lists(name: str, lists: Mapping[str, Sequence[Any]] | None, words: str) -> None:
    """Checks an argument of lists by name."""
    if lists is None:
        return
    check_mapping(name, lists, words)
    for key, values in lists.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise ValueError(f"{name}: expected {words}, found {found(values)} for {key!r}; pass a list")


def sampled_group(draws: Mapping[str, Tensor]) -> xr.Dataset:
    """Draws by name as a group, with names for their dimensions.

    :param draws: ``[chains, draws, ...]`` by name.

    >>> import torch
    >>> sampled_group({"start": torch.rand(1, 50, 2)})["start"].dims
    ('chain', 'draw', 'start_dim_0')
    """
    return _named({"posterior": draws}, {}, {}, {})["posterior"]


def _named(
    sampled: Mapping[str, Mapping[str, Tensor]],
    data: Mapping[str, Mapping[str, Tensor]],
    coords: Mapping[str, Sequence[Any]],
    dims: Mapping[str, Sequence[str]],
) -> dict[str, xr.Dataset]:
    """Groups whose dimensions have names and labels.

    :param sampled: ``[chains, draws, ...]`` by group and name.
    :param data: tensors by group and name.
    """
    names = {name for values in (*sampled.values(), *data.values()) for name in values}
    unknown = sorted(set(dims) - names)
    if unknown:
        raise ValueError(f"dims: found no site {unknown} in the posterior, expected some of {sorted(names)}")
    groups: dict[str, xr.Dataset] = {}
    sizes: dict[str, int] = {}
    for group, values in {**sampled, **data}.items():
        if not values:
            continue
        leading = ("chain", "draw") if group in sampled else ()
        own = {name: (*leading, *_dims(name, value, dims, len(leading), group)) for name, value in values.items()}
        _check_distinct(own)
        known = {dim: size for name, value in values.items() for dim, size in zip(own[name], value.shape, strict=True)}
        wrong = {dim: len(coords[dim]) for dim, size in known.items() if dim in coords and size != len(coords[dim])}
        if wrong:
            raise ValueError(f"coords: found labels for {wrong}, expected one a place for some of {known}")
        sizes |= known
        labels = {dim: list(coords[dim]) if dim in coords else np.arange(size) for dim, size in known.items()}
        attributes = provenance() | ({"sample_dims": ["chain", "draw"]} if leading else {})
        variables = {name: (own[name], value.detach().cpu().numpy()) for name, value in values.items()}
        groups[group] = xr.Dataset(variables, coords=labels, attrs=attributes)
    unused = {dim: len(labels) for dim, labels in coords.items() if dim not in sizes}
    if unused:
        raise ValueError(f"coords: found labels for {unused}, expected one a place for some of {sizes}")
    return groups


def _as_tensors(values: Mapping[str, Any]) -> dict[str, Tensor]:
    try:
        return {str(name): torch.as_tensor(value) for name, value in values.items()}
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"constant_data: expected arrays of numbers by name, found others: {error}") from error


def _check_distinct(named: Mapping[str, Sequence[str]]) -> None:
    """Checks that no site has two dimensions of one name, or another one of the name of its chains or draws."""
    for name, own in named.items():
        if len(set(own)) < len(own):
            raise ValueError(f"dims: expected distinct names for site {name!r}, found {list(own)} with those of draws")


def _dims(name: str, value: Tensor, dims: Mapping[str, Sequence[str]], leading: int, group: str) -> Sequence[str]:
    """The names of the dimensions of a site after the ``leading`` ones.

    Of a log-likelihood, dimensions within one observed value are missing.
    """
    missing = value.ndim - leading
    own = dims.get(name, [f"{name}_dim_{i}" for i in range(missing)])
    if group == "log_likelihood":
        own = own[:missing]
    if len(own) != missing:
        raise ValueError(
            f"dims: expected {missing} name(s) for site {name!r} of the shape {list(value.shape[leading:])}, found "
            f"{list(own)}"
        )
    return own
