# SPDX-License-Identifier: Apache-2.0
"""What a user hands in, made ready: the data, and the views to look at."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from pyro_ksd.balancing import Balancing
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.neighborhoods import Neighborhood, Substitutions
from pyro_ksd.sequences import Sequences
from pyro_ksd.views import View, default_views

NO_LENGTH_LAW = """the model gives no probability to lengths (all sequences of a length together never count less \
than the shorter ones), so it can be checked only given the lengths, with substitutions. To have the lengths checked \
too, add a stop at each step,
    pyro.sample(f"stop_{t}", dist.Bernoulli(p), obs=(lengths == t + 1).float())   # inside the mask
or a law of the length,
    pyro.sample("length", dist.Poisson(rate), obs=lengths.float())                # inside the plate
or, to a score, a term that makes long sequences improbable,
    pyro.factor("length", -cost * lengths)                                        # inside the plate"""


def views_to_check(
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
    lengths: bool,
    suited: Neighborhood | None = None,
) -> list[View]:
    """The views to look at; of the default ones, those that names ask for.

    :param lengths: whether the model says how long a sequence is.
    :param suited: the edits that suit the model, if it is one that says so; the neighborhood where none is given.
    """
    if isinstance(views, str | View):
        views = [views]
    own = [view for view in views or [] if isinstance(view, View)]
    if views is not None and len(own) == len(views):
        if neighborhood is not None or balancing is not None:
            raise ValueError("neighborhood= and balancing= belong to the default views; state them in your own views")
        return own
    default = {view.name: view for view in _default_views(neighborhood or suited, balancing or "barker", lengths)}
    asked = list(default) if views is None else views
    names = [name for name in asked if isinstance(name, str) and name not in default]
    longer = {name: int(found[1]) for name in names if (found := re.fullmatch(r"content-([1-9]\d?)", name))}
    unknown = [name for name in names if name not in longer]
    if unknown:
        raise ValueError(
            f"views: expected names out of {list(default)}, content-4 and so on, or View objects, found {unknown}"
        )
    default |= {name: View(name, default["content-1"].operator, ContiguousKernel(t)) for name, t in longer.items()}
    return [view if isinstance(view, View) else default[view] for view in asked]


def _default_views(neighborhood: Neighborhood | None, balancing: str | Balancing, lengths: bool) -> list[View]:
    if lengths:
        return default_views(neighborhood, balancing)
    if neighborhood is None:
        warnings.warn(NO_LENGTH_LAW, UserWarning, stacklevel=4)
        neighborhood = Substitutions()
    return [view for view in default_views(neighborhood, balancing) if view.name != "length"]


def check_keeps_length(views: Sequence[View], sequences: Sequences) -> None:
    for view in views:
        edits = view.operator.neighborhood.edits(sequences)
        if any(block.growth and len(block) for block in edits.blocks):
            raise ValueError(f"view {view.name!r}: found edits that change the length, but {NO_LENGTH_LAW}")


def as_sequences(data: Any, model: Any) -> Sequences:
    """The data; integers are codes of the model's symbols, also those that the data lack."""
    if isinstance(data, SequenceModel) or callable(data):
        raise ValueError(f"data: expected sequences, found {type(data).__name__}; the model comes first, then the data")
    found = Sequences.of(data)
    if isinstance(data, Sequences):
        return found
    if not found.lengths.any():
        raise ValueError(
            f"data: expected symbols, found {len(found)} empty sequences only; look at how the data were read, or, if "
            "they are all empty, say over which symbols: Sequences.of(data, alphabet)"
        )
    if not isinstance(model, SequenceModel) or not isinstance(found.alphabet, int):
        return found
    return Sequences.of(data, model.alphabet_size)
