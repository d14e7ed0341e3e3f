# SPDX-License-Identifier: Apache-2.0
"""Which views can say anything: those whose edits the model allows, and whose features recur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.kernels.window_kernel import WindowKernel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import allows_few_jumps
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View

_SOME = 10_000  # sequences that mostly show whether runs of symbols recur
_RECURRING = 0.1  # the share of runs of symbols that must occur in several sequences


def informative_views(views: Sequence[View], rates: Mapping[Operator, Tensor], num_sequences: int) -> list[int]:
    """The views whose edits the model allows often enough; a warning names the others.

    As many jumps lead to the sequences of a true model as away from them. If fewer than a handful are to be expected in
    all of the data, the statistic is next to nothing however wrong the model is. The signs of the wild bootstrap would
    even reject a true model: the few sequences to which the jumps lead are most likely missing, and the others, each of
    which is a little less probable than its edits, look as if the model were wrong.

    :param rates: the sums of all weights of each operator, ``[K]`` under ``K`` models.
    :raises ValueError: if no view is left.
    """
    poor = [view.name for view in views if allows_few_jumps(rates[view.operator], num_sequences)]
    if poor:
        message = (
            f"the model hardly ever allows the edits of the view(s) {', '.join(poor)}, so that they show nothing, "
            "however badly it fits"
        )
        if len(poor) == len(views):
            raise ValueError(
                f"{message}; choose edits that lead from one possible sequence to another (neighborhood=), or views "
                "with such edits"
            )
        warn_user(f"{message}; they are left out")
    return [index for index, view in enumerate(views) if view.name not in poor]


def recurring_views(views: Sequence[View], sequences: Sequences) -> list[int]:
    """The views that random signs can judge: all but those of n-grams that hardly ever recur; a warning names these.

    Where almost every n-gram occurs in one sequence only, the statistic is the sum of a few coincidences: edits of one
    sequence that happen to make an n-gram of another. There are many that raise it a little and few that would lower it
    much, which random signs take for a fault. Draws from the model have the same coincidences and need no such care.

    :raises ValueError: if no view is left.
    """
    rare = [
        view.name
        for view in views
        if isinstance(view.kernel, WindowKernel)
        and not any(_recurs(sequences, shape.width) for shape in view.kernel.shapes)
    ]
    if rare:
        message = (
            f"the view(s) {', '.join(rare)} cannot be used with the wild bootstrap: fewer than {100 * _RECURRING:.0f} "
            "% of their n-grams occur in more than one sequence"
        )
        if len(rare) == len(views):
            raise ValueError(f"{message}; choose other views, or bootstrap='parametric' if the model can be sampled")
        warn_user(f"{message}; they are left out")
    return [index for index, view in enumerate(views) if view.name not in rare]


def _recurs(sequences: Sequences, size: int) -> bool:
    """Whether enough runs of ``size`` symbols occur in several sequences: of some of the sequences, or of all."""
    step = len(sequences) // _SOME
    if step > 1 and recurrence(sequences[::step].narrowed(), size) >= _RECURRING:
        return True  # among more sequences, more of them recur
    return recurrence(sequences, size) >= _RECURRING


def recurrence(sequences: Sequences, size: int) -> float:
    """The share of all runs of ``size`` symbols that occur in another sequence as well.

    >>> recurrence(Sequences.of(["abc", "ab", "ccc"]), 2)
    0.4
    """
    if sequences.width < size:
        return 0.0
    windows = sequences.tokens.unfold(1, size, 1)
    inside = torch.arange(windows.shape[1]) + size <= sequences.lengths[:, None]
    owner = inside.nonzero()[:, 0]
    if not len(owner):
        return 0.0
    _, run = distinct_rows(windows[inside])
    first = owner.new_full((len(run),), len(sequences)).scatter_reduce_(0, run, owner, "amin")
    last = owner.new_full((len(run),), -1).scatter_reduce_(0, run, owner, "amax")
    return float((first != last)[run].double().mean())
