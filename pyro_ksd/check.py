# SPDX-License-Identifier: Apache-2.0
"""The one call: does the model fit the data?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import xarray as xr

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.report import to_datatree
from pyro_ksd.sequences import Sequences
from pyro_ksd.testing import goodness_of_fit
from pyro_ksd.views import View, default_views


def ksd_check(
    model: SequenceModel,
    data: Any,
    *,
    views: Sequence[View] | None = None,
    bootstrap: Literal["auto", "parametric", "wild"] = "auto",
    num_bootstrap: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> xr.DataTree:
    """Checks whether the data could have come from the model.

    :param model: one of the distributions of :mod:`pyro_ksd.models`, or any object with their methods ``log_joint``,
        ``log_ratio`` and, for the parametric bootstrap, ``draw``.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param views: what to look at; all of :func:`~pyro_ksd.views.default_views` if left out.
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
    sequences = _as_sequences(data, model.alphabet_size)
    result = goodness_of_fit(
        model,
        sequences,
        default_views() if views is None else views,
        bootstrap=bootstrap,
        num_bootstrap=num_bootstrap,
        seed=seed,
        progress=progress,
    )
    return to_datatree(result, sequences, {"seed": seed})


def _as_sequences(data: Any, alphabet_size: int) -> Sequences:
    """The data; integers are codes of the model's symbols, also those that the data lack."""
    if isinstance(data, Sequences):
        return data
    found = Sequences.of(data)
    return Sequences.of(data, alphabet_size) if isinstance(found.alphabet, int) else found
