# SPDX-License-Identifier: Apache-2.0
"""The groups that every test of fit has."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pyro_ksd import Sequences  # noqa: E402
from pyro_ksd.results.shared_groups import check_data, common_groups, seconds_attributes, stamped  # noqa: E402
from pyro_ksd.results.validation import check_result  # noqa: E402

DATA = Sequences.of(["ab", "b", "aba"])
STATISTIC = torch.tensor([0.3, -0.1], dtype=torch.double)
NULL = torch.arange(8.0).view(4, 2)
MEANINGS = {"pairs": "pairs of neighbors", "length": "the length"}


def test_a_result_of_the_common_groups_follows_the_schema() -> None:
    settings = {"level": 0.05, "localized": 0, **seconds_attributes({"model": 0.5})}
    p_value = torch.tensor([0.2, 0.4])
    groups = common_groups(MEANINGS, STATISTIC, NULL, p_value, 0.3, DATA, kind="wild", settings=settings)
    np.testing.assert_array_equal(groups["ksd_null"]["ksd"].values, NULL[None])
    groups["ksd"]["weight"] = ("view", [1.0, 1.0])
    result = stamped(groups)
    check_result(result, "made by hand")
    ksd = result["ksd"].to_dataset()
    assert ksd["p_value"].sel(view="length").item() == pytest.approx(0.4)
    assert float(ksd["p_value_overall"]) == 0.3
    assert ksd.attrs["num_bootstrap"] == 4
    assert ksd.attrs["seconds_model"] == 0.5
    assert (
        result["ksd_data"]["length"].values.tolist() == result["observed_data"]["length"].values.tolist() == [2, 1, 3]
    )


def test_impossible_sequences_are_rows_of_the_data() -> None:
    check_data(DATA, {2: "x_0"}, 2)
    with pytest.raises(ValueError, match="impossible_sites: expected an integer from 0 to 2"):
        check_data(DATA, {3: "x_0"}, 2)
    with pytest.raises(ValueError, match="expected all data, 2 of the test and 0 impossible ones, found 3"):
        check_data(DATA, {}, 2)
