# SPDX-License-Identifier: Apache-2.0
"""Tables and pictures of other tests than this package's own, which have no features, weights, shares or lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import matplotlib.pyplot as plt  # noqa: E402
import xarray as xr  # noqa: E402
from example_models import walk  # noqa: E402
from pictures import axes_of, labels  # noqa: E402

from pyro_ksd import (  # noqa: E402
    likelihood_ratio_check,
    mmd_check,
    plot_lengths,
    plot_ngrams,
    plot_null,
    plot_views,
    summary,
    verdict,
)

TESTS: dict[str, Callable[..., xr.DataTree]] = {"mmd": mmd_check, "likelihood ratio": likelihood_ratio_check}


def found(test: str, hold: float) -> xr.DataTree:
    """What a test of a walk that always moves finds in data that hold now and then."""
    data = walk(hold=hold).draw(40, torch.Generator().manual_seed(0))
    options: dict[str, Any] = {"num_bootstrap": 199, "progress": False}
    return TESTS[test](walk(), data, **options)


@pytest.mark.parametrize("test", TESTS)
def test_what_lacks_weights_and_shares_is_read_and_drawn(test: str) -> None:
    check = found(test, hold=0.5)
    ksd = check["ksd"].to_dataset()
    assert not {"weight", "foreign_share", "feature_kind"} & set(ksd)
    assert "ksd_length" not in check.children
    views = ksd["view"].values.tolist()
    told = verdict(check)
    assert told.startswith("the model does not fit (p = 0.0")
    assert " wrong" in told
    assert "do not come from the model" not in told
    table = summary(check)
    assert table.index.tolist() == [*views, "overall"]
    rejecting = [view for view in views if table.loc[view, "finding"]]
    assert rejecting
    for view in rejecting:
        assert table.loc[view, "finding"] == f"the model gets {ksd['meaning'].sel(view=view).item()} wrong"
    assert labels(plot_views(check)) == [*views, "all views together"]
    assert len(axes_of(plot_null(check))) == len(views)
    with pytest.raises(ValueError, match="expected one with the group 'ksd_length'"):
        plot_lengths(check)
    with pytest.raises(ValueError, match="expected a check with the group 'ksd_ngram'"):
        plot_ngrams(check)
    plt.close("all")


@pytest.mark.parametrize("test", TESTS)
def test_nothing_is_said_of_a_model_that_may_fit(test: str) -> None:
    check = found(test, hold=0.0)
    assert verdict(check).startswith("the model may fit: the check found nothing wrong (p = ")
    assert set(summary(check)["finding"]) == {"", "nothing wrong was found"}
