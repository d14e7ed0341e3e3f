# SPDX-License-Identifier: Apache-2.0
"""Profile hidden Markov models of DNA: exact log-ratios, a true and a wrong model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from plain_walks import Style
from profile_hmms import BASES, MATCHES, MUE, STYLES, mue_rows
from pyro.contrib.mue.models import ProfileHMM

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.conversion import as_model


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    """Double precision, in which ``pyro.contrib.mue`` makes its tensors."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)


def dna(codes: list[list[int]]) -> Sequences:
    return Sequences.of(["".join("ACGT"[code] for code in x) for x in codes], alphabet="ACGT")


def expected_warning(style: Style) -> AbstractContextManager[Any]:
    return nullcontext() if style.warning is None else pytest.warns(UserWarning, match=style.warning)


def p_value(style: Style, program: Any, parameters: Any) -> float:
    with expected_warning(style):
        check = ksd_check(
            program,
            dna(style.draw(style.count)),
            parameters=parameters,
            bootstrap="wild",
            num_bootstrap=200,
            localize=False,
            progress=False,
        )
    return float(check["ksd"]["p_value_overall"])


@pytest.mark.parametrize("name", STYLES)
def test_log_ratios_of_all_edits_against_plain_python(name: str) -> None:
    style = STYLES[name]
    rows = [[], [2], [0, 1], *style.draw(6, seed=1)]
    data = dna(rows)
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
    assert p_value(style, style.wrong, style.wrong_parameters) <= 0.05


def test_a_profile_of_one_hot_rows() -> None:
    style = STYLES["contrib.mue"]
    rows = style.draw(6, seed=2)
    data = Sequences.of([torch.eye(BASES)[x] for x in rows], alphabet=torch.eye(BASES))
    found = as_model(mue_rows, data, parameters=MUE).log_joint(data).tolist()
    assert found == pytest.approx([style.truth.log_joint(x) for x in rows], rel=1e-10)


def test_a_profile_of_one_hot_rows_needs_zeros_after_the_ends() -> None:
    rows = STYLES["contrib.mue"].draw(6, seed=2)
    data = Sequences.of([torch.eye(BASES)[x] for x in rows], alphabet=torch.eye(BASES))
    program = partial(ProfileHMM(MATCHES, BASES).model, local_scale=1.0)
    with pytest.raises(ValueError, match="changes with the padding after its end"):
        as_model(program, data, parameters=MUE)


def test_the_module_itself_is_no_program() -> None:
    with pytest.raises(ValueError, match=r"expected a program model\(sequences, lengths\)"):
        as_model(ProfileHMM(MATCHES, BASES), dna([[0, 1], [2]]), parameters=MUE)
