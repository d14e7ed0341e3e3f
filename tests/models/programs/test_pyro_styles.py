# SPDX-License-Identifier: Apache-2.0
"""Programs in the styles of Pyro's examples and tutorials: exact log-ratios, a true and a wrong model."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyro_styles
import pyro_styles_hidden
import pyro_styles_hmm
import pyro_styles_lengths
import pyro_styles_loops
import pytest
from plain_walks import Style

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.models.conversion import as_model

MODULES = [pyro_styles, pyro_styles_hmm, pyro_styles_hidden, pyro_styles_lengths, pyro_styles_loops]
STYLES: dict[str, Style] = {name: style for module in MODULES for name, style in module.STYLES.items()}
# Every other program is checked by default, the others with the slow tests; log-ratios are always compared.
CHECKED = [pytest.param(name, marks=[pytest.mark.slow] if index % 2 else []) for index, name in enumerate(STYLES)]
OPTIONS: Any = {"bootstrap": "wild", "num_bootstrap": 200, "localize": False, "progress": False}
FEW = [[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1]]


def expected_warning(style: Style) -> AbstractContextManager[Any]:
    return nullcontext() if style.warning is None else pytest.warns(UserWarning, match=style.warning)


def p_value(style: Style, program: Any, parameters: Any) -> float:
    data = Sequences.of(style.draw(style.count), style.size)
    with expected_warning(style):
        check = ksd_check(program, data, parameters=parameters, end=style.end, **OPTIONS)
    return float(check["ksd"]["p_value_overall"])


@pytest.mark.parametrize("name", STYLES)
def test_log_ratios_of_all_edits_against_plain_python(name: str) -> None:
    style = STYLES[name]
    style.prepare()
    drawn = [x[:6] for x in style.draw(8, seed=1)]
    rows = drawn if style.given_lengths else [*FEW, *drawn[:3]]
    possible = [x for x in rows if style.truth.log_joint(x) > -math.inf]
    data = Sequences.of(possible, style.size)
    edits = (Substitutions() if style.given_lengths else zs()).edits(data)
    model = as_model(style.program, data, parameters=style.parameters)
    with expected_warning(style) if style.warns_when_scored else nullcontext():
        found = model.log_ratio(data, edits).tolist()
    before = [style.truth.log_joint(x) for x in possible]
    for ratio, owner, y in zip(found, edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        expected = style.truth.log_joint(y) - before[owner]
        assert ratio == pytest.approx(expected, rel=style.tolerance, abs=style.tolerance), (possible[owner], y)


@pytest.mark.parametrize("name", CHECKED)
def test_the_true_model_is_accepted(name: str) -> None:
    style = STYLES[name]
    style.prepare()
    assert p_value(style, style.program, style.parameters) > 0.01


@pytest.mark.parametrize("name", CHECKED)
def test_a_wrong_model_is_rejected(name: str) -> None:
    style = STYLES[name]
    style.prepare()
    assert p_value(style, style.wrong, style.wrong_parameters) <= 0.05
