# SPDX-License-Identifier: Apache-2.0
"""The sites of a program that observe symbols: do they know the symbols of the alphabet, and no others?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, OneHotCategorical

from pyro_ksd.models.programs.exact_probabilities import innermost, own_mask
from pyro_ksd.models.programs.site_scores import Sites
from pyro_ksd.sequences.argument_checks import unknown_symbols
from pyro_ksd.sequences.container import Sequences

_ROWS = 48  # random sequences, so many that no other values agree with a column of symbols by chance


def random_sequences(example: Sequences) -> Sequences:
    """Sequences of random symbols, as long as the longest one: a site that observes the symbols of a step shows it."""
    longest = int(example.lengths.max())
    shape = (_ROWS, longest)
    tokens = torch.randint(example.alphabet_size, shape, generator=torch.Generator().manual_seed(0))
    return example.derived(tokens, torch.full((_ROWS,), longest), torch.arange(_ROWS) % len(example))


def check_symbol_sites(sites: Sites, tokens: Tensor, dim: int, data: Sequences) -> None:
    """Checks that sites which observe symbols have as many values as there are symbols.

    A site observes symbols if its values are a column of the tokens. It may have further values that occur at other
    steps, such as an end symbol that is no part of the sequences.

    :param sites: inside the plate of the sequences, from a run with random symbols.
    :param tokens: the symbols of that run, long ``[N, T]``.
    :param dim: of the plate, counted from the right.
    :param data: sequences over the alphabet.
    :raises ValueError: naming a site that knows more or fewer symbols than the alphabet has.
    """
    alphabet_size = data.alphabet_size
    observed = {name: site for name, site in sites if site["is_observed"]}
    known = {name: size for name, site in observed.items() if (size := _num_values(site["fn"])) is not None}
    values = {name: _observed(observed[name], dim) for name in known}
    for name, size in known.items():
        if size == alphabet_size or not _observes_symbols(*values[name], tokens):
            continue
        if size < alphabet_size:
            raise ValueError(
                f"site {name!r}: found a distribution of {size} symbols, but the alphabet of the data has "
                f"{alphabet_size}: {unknown_symbols(data, size)}; widen the program, or state the symbols that it "
                "knows in the order of their codes: Sequences.of(data, alphabet=...)"
            )
        alike = [values[other] for other, theirs in known.items() if theirs == size]
        if max(int(codes[counts].max()) for codes, counts in alike if counts.any()) < size - 1:
            raise missing_symbols(name, size, alphabet_size)


def observe_twice(sites: Sites, tokens: Tensor, dim: int) -> bool:
    """Whether two sites observe the symbols of one step, as in a product of experts, which is not normalized.

    :param sites: these and the following as for :func:`check_symbol_sites`.
    """
    observing = torch.zeros(tokens.shape[1], dtype=torch.long)
    for _, site in sites:
        if site["is_observed"] and _num_values(site["fn"]) is not None:
            codes, counts = _observed(site, dim)
            agrees = ((codes[:, :, None] == tokens[:, None]) | ~counts[:, :, None]).all(0)
            observing += agrees[counts.any(0)].any(0)
    return bool((observing > 1).any())


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


def _observes_symbols(codes: Tensor, counts: Tensor, tokens: Tensor) -> bool:
    """Whether values ``[N, M]`` are columns of the tokens ``[N, T]``, where they count."""
    counted = counts.any(0)
    pairs = zip(codes.T[counted], counts.T[counted], strict=True)
    return bool(counted.any()) and all(((own == tokens.T) | ~rows).all(1).any() for own, rows in pairs)


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
