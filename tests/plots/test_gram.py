# SPDX-License-Identifier: Apache-2.0
"""The picture of the Stein kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import labels
from synthetic import changed, made_up_check

from pyro_ksd.plots import plot_gram


def test_gram_is_sorted_by_contribution() -> None:
    check = made_up_check(num_sequences=8, impossible=1)
    one = check["ksd"].to_dataset().sel(view="start")
    order = np.argsort(-one["contribution"].values)
    ax = plot_gram(check, view="start")
    (image,) = ax.images
    assert np.array_equal(image.get_array(), one["gram"].values[order][:, order])
    low, high = image.get_clim()
    assert low == -high
    assert labels(ax) == [str(index) for index in one["sequence"].values[order]]
    assert plot_gram(made_up_check()).get_title(loc="left").startswith("content-2")


def test_gram_colors_leave_out_the_diagonal() -> None:
    check = made_up_check()
    gram = np.ones((5, 30, 30)) + 1e6 * np.eye(30)
    assert plot_gram(changed(check, "ksd", gram=gram)).images[0].get_clim() == (-1, 1)
    assert plot_gram(changed(check, "ksd", gram=0 * gram)).images[0].get_clim() == (-1, 1)


def test_gram_must_be_in_the_check() -> None:
    with pytest.raises(ValueError, match=r"found none; run ksd_check\(\.\.\., gram=True\)"):
        plot_gram(made_up_check(gram=False))
