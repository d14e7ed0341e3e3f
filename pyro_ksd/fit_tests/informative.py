# SPDX-License-Identifier: Apache-2.0
"""Which views can say anything: those whose edits the model allows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from torch import Tensor

from pyro_ksd.stein.assembly import allows_few_jumps
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View


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
        warnings.warn(f"{message}; they are left out", UserWarning, stacklevel=4)
    return [index for index, view in enumerate(views) if view.name not in poor]
