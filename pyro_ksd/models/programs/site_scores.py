# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of the sites of a trace, one value for each sequence."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from pyro.distributions import Delta, Unit
from pyro.ops import packed
from pyro.ops.contract import contract_to_tensor
from pyro.poutine.trace_struct import Trace
from torch import Tensor

from pyro_ksd.models.programs.exact_probabilities import exact_log_prob, innermost
from pyro_ksd.models.programs.plate_layout import is_enumerated

Sites = list[tuple[str, dict[str, Any]]]
"""Names and contents of sites."""


def score_sites(sites: Sites) -> None:
    """Gives the sites their log-probabilities, without masks and scales."""
    for name, site in sites:
        try:
            values = exact_log_prob(site["fn"], site["value"])
        except (ValueError, IndexError, RuntimeError) as error:
            raise ValueError(f"site {name!r}: {error}") from error
        site["unscaled_log_prob"] = site["log_prob"] = values


def summed_over_sites(sites: Sites, dim: int, num_sequences: int) -> Tensor:
    """The log-joint of each sequence, double ``[N]``, for a program without enumerated sites.

    :param sites: inside the plate of the sequences, scored.
    :param dim: of the plate, counted from the right.
    """
    total = torch.zeros(num_sequences, dtype=torch.double)
    for _, site in sites:
        values = masked_log_prob(site)
        others = [axis for axis in range(-values.ndim, 0) if axis != dim]
        total = total + (values.sum(others, dtype=torch.double) if others else values)
    return total


def summed_over_states(trace: Trace, sites: Sites, plate: str) -> Tensor:
    """The log-joint of each sequence, double ``[N]``, with the enumerated sites summed out.

    :param sites: inside the plate of the sequences, scored.
    """
    trace.pack_tensors()
    symbol = trace.plate_to_symbol[plate]
    factors: OrderedDict[frozenset[str], list[Tensor]] = OrderedDict()
    enumerated: set[str] = set()
    for _, site in sites:
        frames = frozenset(trace.plate_to_symbol[f.name] for f in site["cond_indep_stack"] if f.vectorized)
        values = site["packed"]["unscaled_log_prob"]
        if is_enumerated(site):
            # Never masked: after the end the states must still sum to 1, or each padded step would add log K.
            enumerated |= set(values._pyro_dims)
        else:
            values = packed.scale_and_mask(values, mask=site["packed"]["mask"])
        factors.setdefault(frames, []).append(_in_double(values))
    enumerated -= set(trace.plate_to_symbol.values())
    total: Tensor = contract_to_tensor(factors, enumerated, target_ordinal=frozenset({symbol}))
    return total


def _in_double(values: Tensor) -> Tensor:
    """Packed log-probabilities in double precision: sites of several dtypes go together, and sums lose nothing."""
    double = values.double()
    double._pyro_dims = values._pyro_dims  # type: ignore[attr-defined]
    return double


def masked_log_prob(site: dict[str, Any]) -> Tensor:
    """The log-probabilities of a scored site, 0 where it is masked."""
    values: Tensor = site["unscaled_log_prob"]
    mask = site["mask"]
    if mask is None or mask is True:
        return values
    if mask is False:
        return torch.zeros_like(values)
    return torch.where(mask, values, 0.0)


def is_factor(named: tuple[str, dict[str, Any]]) -> bool:
    """Whether a site only multiplies the probability: a ``pyro.factor``, or a ``Delta`` with a density of its own.

    >>> import pyro.distributions as dist
    >>> is_factor(("f", {"fn": dist.Unit(torch.zeros(3))})), is_factor(("x", {"fn": dist.Delta(torch.zeros(3))}))
    (True, False)
    """
    kind = innermost(named[1]["fn"])
    return isinstance(kind, Unit) or (isinstance(kind, Delta) and bool((kind.log_density != 0).any()))


def nan_error(sites: Sites, sequence: Sequence[Hashable]) -> ValueError:
    """What to say of a log-joint that is not a number.

    :param sites: inside the plate of the sequences, scored.
    :param sequence: the symbols of the sequence that has it.
    """
    names = [repr(name) for name, site in sites if bool(masked_log_prob(site).isnan().any())]
    return ValueError(
        f"site {first_and_others(names) or 'unknown'}: found NaN in the log-probability of the sequence "
        f"{list(sequence)}; fix the parameters of its distribution, or the value of the factor"
    )


def first_and_others(names: Sequence[str]) -> str:
    """Names of sites, of which programs may have one for every step.

    >>> first_and_others(["start", "stop"]), first_and_others(["x_0", "x_1", "x_2"]), first_and_others([])
    ('start, stop', 'x_0 and 2 others', '')
    """
    return ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"
