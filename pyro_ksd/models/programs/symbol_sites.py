# SPDX-License-Identifier: Apache-2.0
"""The sites of a program that observe symbols: do they know the symbols of the alphabet, and no others?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, OneHotCategorical

from pyro_ksd.models.programs.exact_probabilities import innermost, own_mask
from pyro_ksd.models.programs.site_scores import Sites


def recoded(tokens: Tensor, alphabet_size: int) -> Tensor:
    """Other symbols in every place, if there are others: a site with another value observes them."""
    return (tokens + 1) % alphabet_size


def check_symbol_sites(runs: Sequence[tuple[Sites, Tensor]], dim: int, alphabet_size: int) -> None:
    """Checks that sites which observe symbols have as many values as there are symbols.

    A site observes symbols if its values are a column of the tokens, in every run. It may have further values that
    occur at other steps, such as an end symbol that is no part of the sequences.

    :param runs: the sites inside the plate, and the tokens ``[N, T]`` that they were made from; with other symbols in
        each run.
    :param dim: of the plate, counted from the right.
    :raises ValueError: naming a site that knows more or fewer symbols than the alphabet has.
    """
    first = {name: site for name, site in runs[0][0] if site["is_observed"] and _num_values(site["fn"]) is not None}
    occurring: dict[int, int] = {}
    for site in first.values():
        known = _num_values(site["fn"])
        codes, counts = _observed(site, dim)
        if known is not None and counts.any():
            occurring[known] = max(occurring.get(known, 0), int(codes[counts].max()) + 1)
    for name, site in first.items():
        known = _num_values(site["fn"])
        if known is None or known == alphabet_size or not _observes_symbols(name, runs, dim):
            continue
        if known < alphabet_size:
            raise ValueError(
                f"site {name!r}: found a distribution of {known} symbols, but the alphabet of the data has "
                f"{alphabet_size}; widen the program, or state the symbols that it knows in the order of their codes: "
                "Sequences.of(data, alphabet=...)"
            )
        if occurring[known] < known:
            raise missing_symbols(name, known, alphabet_size)


def missing_symbols(site: str, known: int, alphabet_size: int) -> ValueError:
    """What to say of a site that knows more symbols than the alphabet has."""
    return ValueError(
        f"site {site!r}: found a distribution of {known} symbols, but the alphabet of the data has {alphabet_size}, so "
        "codes may mean other symbols than in the program, and no edit would reach the others; state all symbols that "
        f"the program knows, in the order of their codes: Sequences.of(data, alphabet={known}), or alphabet=[...] "
        f"with {known} names"
    )


def _num_values(fn: Any) -> int | None:
    """How many values a distribution over symbols has; ``None`` for other distributions."""
    inner = innermost(fn)
    if isinstance(inner, Categorical):
        return int(inner._num_events)
    return int(inner.event_shape[-1]) if isinstance(inner, OneHotCategorical) else None


def _observes_symbols(name: str, runs: Sequence[tuple[Sites, Tensor]], dim: int) -> bool:
    """Whether the values of a site, where it counts, are columns of the tokens in every run."""
    columns = torch.tensor(True)
    counted = torch.tensor(False)
    for sites, tokens in runs:
        site = dict(sites).get(name)
        if site is None:
            return False
        codes, counts = _observed(site, dim)
        equal = (codes[:, :, None] == tokens[:, None, :]) | ~counts[:, :, None]
        columns = columns & equal.all(0)
        counted = counted | counts.any(0)
    return bool(counted.any() and columns.any(-1)[counted].all())


def _observed(site: dict[str, Any], dim: int) -> tuple[Tensor, Tensor]:
    """The values of a site as codes, long ``[N, M]``, and whether they count, boolean ``[N, M]``."""
    fn = site["fn"]
    value = site["value"]
    event_dim = fn.event_dim
    if isinstance(innermost(fn), OneHotCategorical):
        value = value.argmax(-1)
        event_dim -= 1
    mask = torch.as_tensor(own_mask(fn)) & torch.as_tensor(True if site["mask"] is None else site["mask"])
    batch = torch.broadcast_shapes(mask.shape, fn.batch_shape)
    shape = torch.Size([*batch, *value.shape[value.ndim - event_dim :]])
    counts = mask.expand(batch).reshape([*batch, *[1] * event_dim])
    values, counted = (part.expand(shape).movedim(dim - event_dim, 0) for part in (value.long(), counts))
    return values.reshape(len(values), -1), counted.reshape(len(counted), -1)
