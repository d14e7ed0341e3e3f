# SPDX-License-Identifier: Apache-2.0
"""The models of Pyro's HMM example, with several tones a step: exact log-ratios, a true and a wrong model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import music_models
import pytest
import torch
from music_models import EVERY_CHORD, STYLES
from plain_walks import Style

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.conversion import as_model


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    """Double precision, in which the programs make their tensors."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)


def chords(codes: list[list[int]]) -> Sequences:
    """Sequences of chords, from arrays ``[T, C]``."""
    return Sequences.of([EVERY_CHORD[x] for x in codes], alphabet=EVERY_CHORD)


def p_value(style: Style, program: Any, parameters: Any) -> float:
    with pytest.warns(UserWarning, match=style.warning):
        check = ksd_check(
            program, chords(style.draw(style.count)), parameters=parameters, num_bootstrap=200, progress=False
        )
    return float(check["ksd"]["p_value_overall"])


@pytest.mark.parametrize("name", STYLES)
def test_log_ratios_of_all_edits_against_plain_python(name: str) -> None:
    style = STYLES[name]
    rows = style.draw(6, seed=1)
    data = chords(rows)
    edits = zs().edits(data)
    found = as_model(style.program, data, parameters=style.parameters).log_ratio(data, edits).tolist()
    edited = edits.apply(data)
    assert found
    for ratio, owner, tokens, length in zip(
        found, edits.owner.tolist(), edited.tokens.tolist(), edited.lengths.tolist(), strict=True
    ):
        expected = style.truth.log_joint(tokens[:length]) - style.truth.log_joint(rows[owner])
        assert ratio == pytest.approx(expected, rel=1e-10, abs=1e-10), (rows[owner], tokens[:length])


@pytest.mark.parametrize("name", STYLES)
def test_the_true_model_is_accepted(name: str) -> None:
    style = STYLES[name]
    assert p_value(style, style.program, style.parameters) > 0.01


@pytest.mark.parametrize("name", STYLES)
def test_a_wrong_model_is_rejected(name: str) -> None:
    style = STYLES[name]
    assert p_value(style, style.wrong, style.wrong_parameters) <= 0.01
