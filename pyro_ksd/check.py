# SPDX-License-Identifier: Apache-2.0
"""The one call: does the model fit the data?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import xarray as xr
from torch import Tensor

from pyro_ksd.balancing import Balancing
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.convert import as_model
from pyro_ksd.models.guards import has_length_law
from pyro_ksd.models.sampled import Sampler
from pyro_ksd.neighborhoods import Neighborhood, Substitutions
from pyro_ksd.report import to_datatree
from pyro_ksd.sequences import Sequences
from pyro_ksd.testing import goodness_of_fit
from pyro_ksd.views import View, default_views


def ksd_check(
    model: Any,
    data: Any,
    *,
    views: Sequence[View] | None = None,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing = "barker",
    parameters: Mapping[str, Tensor] | None = None,
    order: int | None = None,
    sampler: Sampler | None = None,
    bootstrap: Literal["auto", "parametric", "wild"] = "auto",
    num_bootstrap: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> xr.DataTree:
    """Checks whether the data could have come from the model.

    :param model: a Pyro program ``model(sequences, lengths)``, ``model(x)`` or ``model()``, a distribution, or an
        object with ``log_joint`` and ``log_ratio``; see :func:`~pyro_ksd.models.as_model`.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param views: what to look at, in place of :func:`~pyro_ksd.views.default_views`.
    :param neighborhood: the edits of the default views. Left out, all substitutions, insertions and deletions, or only
        substitutions for a program that does not say how long a sequence is. Fewer edits take less time.
    :param balancing: the balancing function of the default views.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param order: the order of a program whose steps depend only on the ``order`` symbols before them; makes the check
        of long sequences much faster. See :class:`~pyro_ksd.models.TabulatedModel`.
    :param sampler: draws sequences from a model that cannot: takes their number and a generator.
    :param bootstrap: where the null draws come from. ``"parametric"`` draws data sets from the model and has the exact
        level; ``"wild"`` needs no samples and is right for large data; ``"auto"`` is parametric where the model can be
        sampled and there are fewer than 100 sequences.
    :param num_bootstrap: the number of null draws; more of them resolve smaller p-values.
    :param seed: of all random numbers; the same seed gives the same result.
    :param progress: whether to show a progress bar.
    :returns: the groups of :func:`~pyro_ksd.report.to_datatree`.

    >>> import torch
    >>> from pyro_ksd.models import MarkovSequence
    >>> coin = torch.tensor([0.5, 0.5])
    >>> model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.2)
    >>> check = ksd_check(model, ["HTHTHT", "THTH", "HTHTHTHTH", "THTHTHT", "HTH"] * 4, progress=False)
    >>> bool(check["ksd"]["p_value_overall"] < 0.01)  # too regular for a coin
    True
    """
    sequences = _as_sequences(data, model)
    ready = as_model(model, sequences, parameters=parameters, order=order, sampler=sampler)
    lengths = isinstance(model, SequenceModel) or has_length_law(ready, sequences)
    if views is None:
        views = _default_views(neighborhood, balancing, lengths)
    elif neighborhood is not None or balancing != "barker":
        raise ValueError("neighborhood= and balancing= belong to the default views; state them in your own views")
    if not lengths:
        _check_keeps_length(views, sequences[:10])
    result = goodness_of_fit(
        ready,
        sequences,
        views,
        bootstrap=bootstrap,
        num_bootstrap=num_bootstrap,
        seed=seed,
        progress=progress,
    )
    kinds = sorted({kind for view in views for kind in view.operator.neighborhood.kinds})
    return to_datatree(result, sequences, {"seed": seed, "edits": ", ".join(kinds)})


NO_LENGTH_LAW = """the model gives no probability to lengths (the sequences of each length have probability 1), so it \
can be checked only given the lengths, with substitutions. To have the lengths checked too, add a stop at each step,
    pyro.sample(f"stop_{t}", dist.Bernoulli(p), obs=(lengths == t + 1).float())   # inside the mask
or a law of the length,
    pyro.sample("length", dist.Poisson(rate), obs=lengths.float())                # inside the plate"""


def _default_views(neighborhood: Neighborhood | None, balancing: str | Balancing, lengths: bool) -> list[View]:
    if lengths:
        return default_views(neighborhood, balancing)
    if neighborhood is None:
        warnings.warn(NO_LENGTH_LAW, UserWarning, stacklevel=3)
        neighborhood = Substitutions()
    return [view for view in default_views(neighborhood, balancing) if view.name != "length"]


def _check_keeps_length(views: Sequence[View], sequences: Sequences) -> None:
    for view in views:
        edits = view.operator.neighborhood.edits(sequences)
        if any(block.growth and len(block) for block in edits.blocks):
            raise ValueError(f"view {view.name!r}: found edits that change the length, but {NO_LENGTH_LAW}")


def _as_sequences(data: Any, model: Any) -> Sequences:
    """The data; integers are codes of the model's symbols, also those that the data lack."""
    found = Sequences.of(data)
    if isinstance(data, Sequences) or not isinstance(model, SequenceModel) or not isinstance(found.alphabet, int):
        return found
    return Sequences.of(data, model.alphabet_size)
