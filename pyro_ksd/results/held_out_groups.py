# SPDX-License-Identifier: Apache-2.0
"""Checks of sequences that posteriors have not seen, as xarray groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import xarray as xr

from pyro_ksd.common.option_checks import check_instance, check_mapping
from pyro_ksd.fit_tests.held_out_decision import SplitPredictive
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.kept_data import KeptData
from pyro_ksd.results.misfit_groups import add_places, in_rows
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.shared_groups import Settings, check_data, common_groups, meanings_of, stamped
from pyro_ksd.sequences.container import Sequences


def held_out_datatree(
    result: SplitPredictive,
    sequences: Sequences,
    impossible_sites: Mapping[int, str],
    *,
    settings: Settings,
) -> ResultTree:
    """A check of held-out sequences as the groups of :func:`~pyro_ksd.results.to_datatree`, with ``ksd_fold``.

    ``ksd_fold`` has the ``statistic`` and the ``p_value`` of each fold and view, ``(fold, view)``, the
    ``p_value_overall`` of each fold, its ``num_sequences``, and the ``fold_index`` of each sequence.

    :param sequences: all of the data, also what the model calls impossible.
    :param impossible_sites: for each row that the model calls impossible, the site that makes it so, or ``""``.
    :param settings: what the test was run with, kept in the attributes of ``ksd``.
    """
    check_instance("result", result, SplitPredictive, "what split_predictive gave")
    contribution = result.places[0].contribution
    check_data(sequences, impossible_sites, 0 if contribution is None else len(contribution))
    check_mapping("settings", settings, "what the test was run with, by name")
    kind = "split predictive" if len(result.folds) == 1 else "divided predictive"
    groups = common_groups(
        meanings_of(result.views),
        result.statistic,
        result.null.statistic,
        result.p_value,
        result.p_value_overall,
        sequences,
        kind=kind,
        settings=settings,
    )
    data = KeptData.whole(sequences, impossible_sites)
    add_places(groups, result.views, in_rows(result.places, data.possible_rows.__getitem__), data, result.null.extreme)
    kept = groups["ksd"]["sequence"].values
    fold_index = np.zeros(len(kept), dtype=np.int64)
    for index, fold in enumerate(result.folds):
        fold_index[as_numpy(fold.rows)] = index
    groups["ksd_fold"] = xr.Dataset(
        {
            "statistic": (("fold", "view"), as_numpy(torch.stack([fold.statistic for fold in result.folds]))),
            "p_value": (("fold", "view"), as_numpy(torch.stack([fold.p_value for fold in result.folds]))),
            "p_value_overall": ("fold", np.array([fold.p_value_overall for fold in result.folds])),
            "num_sequences": ("fold", np.array([len(fold.rows) for fold in result.folds])),
            "fold_index": ("sequence", fold_index),
        },
        coords={
            "fold": np.arange(len(result.folds)),
            "view": as_strings([view.name for view in result.views]),
            "sequence": kept,
        },
        attrs={"kind": kind},
    )
    return stamped(groups)
