# SPDX-License-Identifier: Apache-2.0
"""A result that shows itself: its verdict in a notebook and on a terminal, in place of a list of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from pyro_ksd.results.check_table import summary
from pyro_ksd.results.comparison_table import compare_table
from pyro_ksd.results.containers import has_group
from pyro_ksd.results.evidence_words import monitor_verdict
from pyro_ksd.results.pages.notebook_card import card


class ResultTree(xr.DataTree):
    """A result: an ``xarray.DataTree`` of flat groups that shows its verdict.

    In a notebook, a cell that ends in it shows a card, and ``print(check)`` gives the table and the verdict as text.
    Otherwise it is a DataTree in all respects: it has the same groups, attributes and methods, and xarray and ArviZ
    take it as one. A copy, also by ``pickle``, is again a ``ResultTree``; parts, such as ``check["ksd"]``, and what
    xarray computes of it, such as ``check.isel(view=0)``, are plain DataTrees, and so is what
    ``xarray.open_datatree`` reads: :func:`pyro_ksd.load` gives a ``ResultTree``.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc"] * 4
    >>> print(ksd_check(random_walk(3), data, views="content-2", progress=False))
               statistic p_value looks at                  finding
    content-2 21.2       0.002   pairs of neighbors        'bb' (weight × ...
    overall              0.002   all of the above together the model does not fit
    <BLANKLINE>
    The model does not fit (p = 0.002): 'bb' (weight × ...
    """

    __slots__ = ()

    @classmethod
    def from_dict(cls, *args: Any, **options: Any) -> xr.DataTree:  # type: ignore[override]
        """A plain DataTree: xarray calls this with parts of a result, and with what it computes of one."""
        return xr.DataTree.from_dict(*args, **options)

    @classmethod
    def of(cls, tree: xr.DataTree) -> ResultTree:
        """The groups of another tree."""
        return cls(tree.to_dataset(inherit=False), {name: child.copy() for name, child in tree.children.items()})

    def __repr__(self) -> str:  # type: ignore[override]
        tables: Mapping[str, Any] = {"ksd": summary, "ksd_compare": compare_table}
        try:
            texts = [repr(table(self)) for group, table in tables.items() if has_group(self, group)]
        except (KeyError, ValueError):  # some groups were changed or taken away
            texts = []
        if has_group(self, "ksd_monitor"):
            texts.append(monitor_verdict(self))
        return "\n\n".join(texts) or super().__repr__()

    __str__ = __repr__

    def _repr_html_(self) -> str:
        groups: str = super()._repr_html_()
        if not (has_group(self, "ksd") or has_group(self, "ksd_compare")):
            return groups
        try:
            return card(self, groups)
        except (KeyError, ValueError):  # some groups were changed or taken away
            return groups
