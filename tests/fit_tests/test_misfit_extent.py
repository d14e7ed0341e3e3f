# SPDX-License-Identifier: Apache-2.0
"""How large the misfit is: the parts against direct calls of what they are made of."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import pytest
import torch
from example_models import walk

from pyro_ksd.fit_tests.absolute import Bootstrap, GoodnessOfFit, goodness_of_fit
from pyro_ksd.fit_tests.discrepancy_bounds import closeness
from pyro_ksd.fit_tests.fault_sizes import EffectSizes, effect_sizes
from pyro_ksd.fit_tests.foreign_sequences import foreign_share, tolerance_p_value
from pyro_ksd.fit_tests.localization import Localization, localize
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.fit_tests.null_draws import wild_bootstrap
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.views import default_views

MODEL = walk(hold=0.1)
DATA = walk(hold=0.5).draw(60, torch.Generator().manual_seed(0))
DRAWN = MODEL.draw(100, torch.Generator().manual_seed(1))


@cache
def fitted(bootstrap: Bootstrap) -> tuple[GoodnessOfFit, list[Localization]]:
    result = goodness_of_fit(MODEL, DATA, default_views(), bootstrap=bootstrap, num_bootstrap=99, seed=5)
    assert result.p_value_overall <= 0.05
    return result, localize(result)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_the_share_of_foreign_sequences(level: float) -> None:
    result, places = fitted("parametric")
    found = extent(result, places, DATA, DRAWN, level=level).foreign
    direct = foreign_share([place.pushes for place in places], result.null.extreme, level)
    assert found.share_overall == direct.share_overall > 0
    assert found.share.tolist() == direct.share.tolist()


def test_no_sequence_is_called_foreign_unless_the_model_is_rejected() -> None:
    result, places = fitted("parametric")
    accepted = replace(result, p_value_overall=0.0501)
    assert foreign_share([place.pushes for place in places], result.null.extreme, 0.05).share.max() > 0
    found = extent(accepted, places, DATA, DRAWN).foreign
    assert found.share_overall == 0
    assert found.share.tolist() == [0.0] * 10
    assert extent(accepted, places, DATA, DRAWN, level=0.06).foreign.share_overall > 0
    assert extent(replace(result, p_value_overall=0.05), places, DATA, DRAWN).foreign.share_overall > 0


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
@pytest.mark.parametrize("accepted", [False, True])
def test_the_tolerance(bootstrap: Bootstrap, accepted: bool) -> None:
    result, places = fitted(bootstrap)
    result = replace(result, p_value_overall=0.9) if accepted else result
    found = extent(result, places, DATA, DRAWN, level=0.1, tolerance=0.15, seed=3).tolerated
    assert found is not None
    assert found.tolerance == 0.15
    each, overall = tolerance_p_value([place.pushes for place in places], result.null.extreme, 0.15)
    torch.testing.assert_close(found.p_value, each, rtol=0, atol=0, equal_nan=True)
    assert found.p_value_overall == float(overall)
    wild = result.null
    if bootstrap == "parametric":
        matrices = [result.visits.whole(view)[0] for view in result.views]
        wild = wild_bootstrap(matrices, result.views, Signs(3, 99))
    direct = closeness(result.states, wild.statistic, 0.1)
    torch.testing.assert_close(found.closeness.estimate, direct.estimate, rtol=1e-10, atol=1e-12, equal_nan=True)
    torch.testing.assert_close(found.closeness.upper, direct.upper, rtol=1e-10, atol=1e-12, equal_nan=True)
    other = closeness(result.states, wild.statistic, 0.3)
    assert not torch.equal(other.upper.nan_to_num(9), direct.upper.nan_to_num(9))


def test_without_a_tolerance_nothing_is_said_of_it() -> None:
    result, places = fitted("wild")
    assert extent(result, places, DATA, DRAWN).tolerated is None
    assert extent(result, places, DATA, DRAWN, tolerance=0.0).tolerated is not None


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_effect_sizes_are_those_of_the_draws(level: float) -> None:
    result, places = fitted("parametric")
    found = extent(result, places, DATA, DRAWN, level=level, seed=4)
    direct = effect_sizes(result, places, DATA, DRAWN, level)
    assert not found.sizes[1].expected.isnan().all()
    for one, other in zip(found.sizes, direct, strict=True):
        for field in fields(EffectSizes):
            values = getattr(one, field.name), getattr(other, field.name)
            torch.testing.assert_close(*values, rtol=0, atol=0, equal_nan=True)


def test_without_draws_nothing_is_expected() -> None:
    result, places = fitted("wild")
    assert extent(result, places, DATA, DRAWN).drawn is DRAWN
    found = extent(result, places, DATA, None)
    assert found.drawn is None
    assert not found.sizes[1].observed.isnan().all()
    assert all(one.expected.isnan().all() for one in found.sizes)


def test_the_level_is_one() -> None:
    result, places = fitted("wild")
    with pytest.raises(ValueError, match="level: expected"):
        extent(result, places, DATA, DRAWN, level=5)


@pytest.mark.parametrize("accepted", [False, True])
def test_impossible_sequences_are_foreign(accepted: bool) -> None:
    result, places = fitted("parametric")
    result = replace(result, p_value_overall=0.9) if accepted else result
    found = extent(result, places, DATA, None, num_impossible=20).foreign
    alone = extent(result, places, DATA, None).foreign
    assert (alone.share_overall == 0) == accepted
    assert found.share_overall == pytest.approx((60 * alone.share_overall + 20) / 80)
    torch.testing.assert_close(found.share, (60 * alone.share.nan_to_num(0.0) + 20) / 80)


def test_impossible_sequences_use_up_the_tolerance() -> None:
    result, places = fitted("parametric")

    def p_value(tolerance: float, num_impossible: int) -> float:
        found = extent(result, places, DATA, None, tolerance=tolerance, num_impossible=num_impossible).tolerated
        assert found is not None
        return found.p_value_overall

    assert p_value(0.24, 20) == 0.0  # at most 19.2 of 80, which are not 20
    assert p_value(0.25, 20) == p_value(0.0, 0) > 0
    assert p_value(0.4, 20) == p_value(12 / 60, 0)
    assert p_value(0.99, 20) == p_value(59 / 60, 0) == 1.0


@pytest.mark.parametrize("level", [-0.1, 0.0, 1.0])
def test_a_wrong_level_is_refused(level: float) -> None:
    result, places = fitted("parametric")
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        extent(result, places, DATA, DRAWN, level=level)


def test_the_seed_is_zero_by_default() -> None:
    result, places = fitted("parametric")
    bounds = []
    for options in ({}, {"seed": 0}, {"seed": 1}):
        tolerated = extent(result, places, DATA, DRAWN, tolerance=0.15, **options).tolerated
        assert tolerated is not None
        bounds.append(tolerated.closeness.upper.nan_to_num(2.0).tolist())
    assert bounds[0] == bounds[1] != bounds[2]
