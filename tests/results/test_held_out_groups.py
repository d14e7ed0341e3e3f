# SPDX-License-Identifier: Apache-2.0
"""The groups of checks of held-out data."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pyro_ksd import Sequences  # noqa: E402
from pyro_ksd.examples import random_walk  # noqa: E402
from pyro_ksd.fit_tests.absolute import goodness_of_fit  # noqa: E402
from pyro_ksd.fit_tests.held_out import HeldOut  # noqa: E402
from pyro_ksd.fit_tests.held_out_decision import SplitPredictive, split_predictive  # noqa: E402
from pyro_ksd.fit_tests.localization import localize  # noqa: E402
from pyro_ksd.results.held_out_groups import held_out_datatree  # noqa: E402
from pyro_ksd.stein.views import default_views  # noqa: E402

DATA = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
VIEWS = [view for view in default_views() if view.name in ("content-2", "start")]


def decided(rows: list[list[int]]) -> SplitPredictive:
    parts = []
    for own in rows:
        found = goodness_of_fit(random_walk(3), DATA[own], VIEWS, num_bootstrap=20)
        rates = {view.operator: torch.tensor([9.0]) for view in VIEWS}
        parts.append(HeldOut(found.statistic, found.null, rates, localize(found)))
    return split_predictive(parts, [torch.tensor(own) for own in rows], VIEWS)


def test_folds_are_in_a_group_of_their_own() -> None:
    result = decided([[0, 3], [1, 4], [2, 5]])
    whole = Sequences.of([[], *DATA.to_lists()], "abc")
    tree = held_out_datatree(result, whole, {0: "x_0"}, settings={"level": 0.05, "seed": 3})
    assert set(tree.children) == {
        "ksd",
        "ksd_null",
        "ksd_ngram",
        "ksd_edit",
        "ksd_fold",
        "ksd_impossible",
        "ksd_data",
        "observed_data",
    }
    fold = tree["ksd_fold"].to_dataset()
    assert fold.attrs["kind"] == tree["ksd"].attrs["kind"] == "divided predictive"
    assert fold["sequence"].values.tolist() == [1, 2, 3, 4, 5, 6]
    assert fold["fold_index"].values.tolist() == [0, 1, 2, 0, 1, 2]
    assert fold["num_sequences"].values.tolist() == [2, 2, 2]
    for index, own in enumerate(result.folds):
        np.testing.assert_array_equal(fold["statistic"].values[index], own.statistic)
        np.testing.assert_array_equal(fold["p_value"].values[index], own.p_value)
        assert float(fold["p_value_overall"][index]) == own.p_value_overall
    np.testing.assert_allclose(tree["ksd"]["contribution"].sum("sequence"), tree["ksd"]["statistic"])


def test_data_that_were_put_aside_are_one_fold() -> None:
    tree = held_out_datatree(decided([list(range(6))]), DATA, {}, settings={"level": 0.05})
    assert tree["ksd"].attrs["kind"] == "split predictive"
    assert tree["ksd_fold"].sizes["fold"] == 1
