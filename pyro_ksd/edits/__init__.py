# SPDX-License-Identifier: Apache-2.0
"""Edits of sequences, and the neighborhoods over which the Zanella–Stein operator sums."""

from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import (
    BeforeEnd,
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    Union,
    zs,
)
from pyro_ksd.edits.prefix_neighborhoods import (
    PrefixInsertionsDeletions,
    PrefixSubstitutions,
    prefix_zs,
    sparse_zs,
)
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.symbol_relations import ListedReplacements, RandomReplacements, one_channel
from pyro_ksd.edits.symmetry import check_symmetric, is_connected

__all__ = [
    "BeforeEnd",
    "Count",
    "CustomNeighborhood",
    "DoubleSubstitutions",
    "Edits",
    "InsertionsDeletions",
    "ListedReplacements",
    "Neighborhood",
    "PrefixInsertionsDeletions",
    "PrefixSubstitutions",
    "RandomReplacements",
    "Substitutions",
    "Union",
    "check_symmetric",
    "is_connected",
    "one_channel",
    "prefix_zs",
    "sparse_zs",
    "zs",
]
