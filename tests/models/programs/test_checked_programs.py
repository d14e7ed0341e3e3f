# SPDX-License-Identifier: Apache-2.0
"""Every style of program through the one call."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro_programs import CHAIN, EXAMPLES, FEW_SEQUENCES, SIZE, chain_with_stop

from pyro_ksd import Sequences, default_views, ksd_check
from pyro_ksd.models import constrain
from pyro_ksd.models.conversion import as_model

DATA = CHAIN.draw(25, torch.Generator().manual_seed(1))
STYLES = ["chain_with_stop", "chain_with_end_symbol", "chain_as_one_site", "chain_in_a_loop", "chain_without_loop"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_program_runs_with_no_further_argument(name: str) -> None:
    short = [x for x in DATA.to_lists() if len(x) <= 5]  # the sums over all hidden paths take their time
    possible = [x for x in short if EXAMPLES[name].log_joint(x) > -math.inf]  # type: ignore[arg-type]
    check = ksd_check(EXAMPLES[name].program, Sequences.of(possible, SIZE), num_bootstrap=10, progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1
    generates = name in {"chain with stop", "chain as one site"}
    assert check["ksd"].attrs["kind"] == ("parametric" if generates else "wild")


def test_five_styles_give_the_same_p_value() -> None:
    # By the features of the length that hang on no model: others are made at sequences that a model draws, if it can.
    views = default_views()
    options: dict[str, Any] = {"views": views, "bootstrap": "wild", "num_bootstrap": 200, "seed": 5, "progress": False}

    def run(model: Any) -> Any:
        return ksd_check(model, DATA, **options)["ksd"].to_dataset()

    expected = run(CHAIN)
    for style in STYLES:
        found = run(getattr(programs, style))
        assert float(found["p_value_overall"]) == float(expected["p_value_overall"])
        assert found["p_value"].values.tolist() == expected["p_value"].values.tolist()
        assert found["statistic"].values.tolist() == pytest.approx(expected["statistic"].values.tolist(), abs=1e-9)


def test_features_of_the_length_are_the_same_for_programs_that_draw_alike() -> None:
    def length(model: Any) -> Any:
        check = ksd_check(model, DATA, views="length", bootstrap="wild", num_bootstrap=20, progress=False)
        return check["ksd_length"]["expected"].values

    expected = length(CHAIN)
    for style in STYLES:
        found = length(getattr(programs, style))
        size = min(len(expected), len(found))
        assert abs(found[:size] - expected[:size]).max() < 0.05  # estimates, at other sequences


def test_the_parametric_bootstrap_of_a_program_has_the_law_of_the_distribution() -> None:
    options: Any = {"num_bootstrap": 300, "localize": False, "progress": False}
    found = [ksd_check(m, DATA, **options) for m in (CHAIN, programs.chain_with_stop)]
    a, b = (check["ksd_null"]["ksd"].values[0] for check in found)
    for view in range(a.shape[1]):  # two samples of one law: their means differ by little
        spread = ((a[:, view].var() + b[:, view].var()) / 300) ** 0.5
        assert abs(a[:, view].mean() - b[:, view].mean()) < 4 * spread


def test_an_output_constrained_program() -> None:
    ends_with_two = lambda x: x.tokens.gather(1, (x.lengths - 1).clamp(min=0)[:, None])[:, 0] == 2  # noqa: E731
    inside = DATA[ends_with_two(DATA)]
    model = constrain(as_model(programs.chain_with_stop, DATA), ends_with_two)
    check = ksd_check(model, inside, num_bootstrap=20, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    with pytest.raises(ValueError, match=r"found 18 of 25 sequences outside: sequence 2, \[0\]; .*leave them out"):
        ksd_check(model, DATA, num_bootstrap=20, progress=False)


def test_a_sampler_can_be_passed_in() -> None:
    check = ksd_check(programs.chain_backwards, DATA, sampler=CHAIN.draw, num_bootstrap=30, progress=False)
    expected = ksd_check(CHAIN, DATA, num_bootstrap=30, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    assert float(check["ksd"]["p_value_overall"]) == float(expected["ksd"]["p_value_overall"])


def test_own_views_and_options_of_default_views_exclude_each_other() -> None:
    from pyro_ksd import default_views

    with pytest.raises(ValueError, match="neighborhood= and balancing= belong to the default views"):
        ksd_check(CHAIN, DATA, views=default_views(), balancing="mpf")


def generative_hmm(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return programs.hmm(sequences, lengths)
    columns: list[torch.Tensor] = []
    lengths = torch.zeros(num_sequences, dtype=torch.long)
    z: Any = None
    with pyro.plate("sequences", num_sequences):
        while (alive := lengths == 0).any():
            t = len(columns)
            start = programs.HIDDEN_START.expand(num_sequences, -1)
            z = pyro.sample(f"z_{t}", dist.Categorical(start if z is None else programs.HIDDEN_MOVES[z]))
            columns.append(pyro.sample(f"x_{t}", dist.Categorical(programs.EMISSION[z])))
            lengths[alive & pyro.sample(f"stop_{t}", programs.bernoulli()).bool()] = t + 1
    return torch.stack(columns, 1), lengths


def test_an_hmm_that_generates_is_checked_by_the_parametric_bootstrap() -> None:
    model = as_model(generative_hmm, FEW_SEQUENCES)
    drawn = model.draw(20_000, torch.Generator().manual_seed(0))  # type: ignore[attr-defined]
    singles = Sequences.of([[a] for a in range(SIZE)], SIZE)
    expected = model.log_joint(singles).exp()
    alone = drawn.tokens[drawn.lengths == 1, 0]
    found = torch.bincount(alone, minlength=SIZE) / len(drawn)
    assert (found - expected).abs().max() < 4 * (0.25 / len(drawn)) ** 0.5
    assert ksd_check(generative_hmm, drawn[:30], num_bootstrap=20, progress=False)["ksd"].attrs["kind"] == "parametric"


def test_model_comes_first() -> None:
    with pytest.raises(ValueError, match="found function; the model comes first, then the data"):
        ksd_check(DATA, chain_with_stop)


def test_data_without_a_symbol_are_refused() -> None:
    for data in (["", ""], [[], []], torch.zeros(2, 0, dtype=torch.long)):
        with pytest.raises(ValueError, match="data: expected symbols, found 2 empty sequences only; look at how"):
            ksd_check(chain_with_stop, data)
