# SPDX-License-Identifier: Apache-2.0
"""The groups that every test of fit has, and what makes a result of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, check_mapping, check_number, found, is_real
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.fit_tests.replicates import Replicates
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.checksums import with_checksums
from pyro_ksd.results.containers import provenance, schema_stamp
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.sequence_groups import (
    observed_beside,
    observed_group,
    predictive_group,
    sequences_group,
)
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View

Settings = Mapping[str, str | int | float]
"""What a test was run with, kept in the attributes of the group ``ksd``."""


def common_groups(
    meanings: Mapping[str, str],
    statistic: Tensor,
    null: Tensor,
    p_value: Tensor,
    p_value_overall: float,
    sequences: Sequences,
    *,
    kind: str,
    settings: Settings,
) -> dict[str, xr.Dataset]:
    """The groups that every test has: ``ksd``, ``ksd_null``, ``ksd_data`` and ``observed_data``.

    :param meanings: what each of the ``V`` views looks at, by its name.
    :param statistic: ``[V]``.
    :param null: ``[B, V]``, null draws of the statistics.
    :param p_value: ``[V]``.
    :param kind: what kind of p-values these are.
    :param settings: what the test was run with, kept in the attributes of ``ksd``.

    >>> import torch
    >>> statistic, p = torch.tensor([0.3]), torch.tensor([0.02])
    >>> null, data = torch.zeros(99, 1), Sequences.of(["ab", "b"])
    >>> meanings = {"pairs": "pairs of neighbors"}
    >>> groups = common_groups(meanings, statistic, null, p, 0.02, data, kind="wild", settings={})
    >>> groups["ksd_null"]["ksd"].sizes["draw"]
    99
    """
    check_mapping("meanings", meanings, "what each view looks at, by its name")
    if not meanings:
        raise ValueError("meanings: expected at least one view, found none")
    check_tensor("statistic", statistic, len(meanings))
    check_tensor("null", null, "B", len(meanings))
    check_tensor("p_value", p_value, len(meanings))
    check_sequences("sequences", sequences)
    check_mapping("settings", settings, "what the test was run with, by name")
    check_instance("kind", kind, str, "words for the kind of the p-values")
    if not is_real(p_value_overall):
        raise ValueError(f"p_value_overall: expected a number, found {found(p_value_overall)}")
    view = {"view": as_strings(list(meanings))}
    ksd = xr.Dataset(
        {
            "statistic": ("view", as_numpy(statistic)),
            "p_value": ("view", as_numpy(p_value)),
            "p_value_overall": ((), p_value_overall),
            "meaning": ("view", as_strings(list(meanings.values()))),
        },
        coords=view,
        attrs={"kind": kind, "num_bootstrap": len(null), **settings},
    )
    draws = xr.Dataset(
        {"ksd": (("chain", "draw", "view"), as_numpy(null)[None])},
        coords={"chain": [0], "draw": np.arange(len(null)), **view},
        attrs={"kind": kind, "sample_dims": ["chain", "draw"]},
    )
    data = {"ksd_data": sequences_group(sequences), "observed_data": observed_group(sequences)}
    return {"ksd": ksd, "ksd_null": draws, **data}


def add_replicates(
    groups: dict[str, xr.Dataset], replicates: Replicates, sequences: Sequences, *, num_chains: int, parameters: str
) -> None:
    """Adds replicated data in numbers, and the same numbers of the data."""
    kept = groups["ksd"]["sequence"].values
    groups["posterior_predictive"] = predictive_group(
        replicates, sequences, kept, num_chains=num_chains, parameters=parameters
    )
    groups["observed_data"] = observed_beside(replicates, sequences, kept)


def stamped(groups: Mapping[str, xr.Dataset]) -> ResultTree:
    """The groups as one result, with attributes that say by which schema, when and by what they were made."""
    made = {name: group.assign_attrs(provenance()) for name, group in groups.items()}
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs=schema_stamp()), **made})
    return ResultTree.of(with_checksums(tree))


def check_data(sequences: Sequences, impossible_sites: Mapping[int, str], possible: int) -> None:
    """Checks that the data are the sequences of a test and those that its model calls impossible."""
    check_sequences("sequences", sequences)
    check_instance("impossible_sites", impossible_sites, Mapping, "sites by the rows of impossible sequences")
    for row in impossible_sites:
        check_number("impossible_sites", row, least=0, most=len(sequences) - 1)
    if len(sequences) != possible + len(impossible_sites):
        raise ValueError(
            f"sequences: expected all data, {possible} of the test and {len(impossible_sites)} impossible ones, found "
            f"{len(sequences)}"
        )


def meanings_of(views: Sequence[View]) -> dict[str, str]:
    return {view.name: view.kernel.meaning for view in views}


def seconds_attributes(seconds: Mapping[str, float]) -> dict[str, float]:
    return {f"seconds_{stage}": spent for stage, spent in seconds.items()}
