# SPDX-License-Identifier: Apache-2.0
"""One prompt for each sequence, against models with that prompt for all sequences."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from pyro_ksd import AutoregressiveModel, Sequences, ksd_check
from pyro_ksd.models import TopK
from pyro_ksd.models.networks.prompts import Prompts, checked_prompt
from pyro_ksd.sequences.covariates import Covariates

SIZE, LONGEST, END = 4, 4, 2
PROMPTS = [[4, 1], [0], [3, 3, 4], [4, 1], [1, 0]]
LISTS = [(*x, END) for length in range(LONGEST) for x in product([0, 1, 3], repeat=length)]


class Scrambled:
    """A causal network whose logits depend on all codes up to the present one."""

    def __init__(self, seed: int = 48) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.randn(10_007, SIZE, dtype=torch.double, generator=generator)
        self.table[:, END] += 1.0

    def __call__(self, codes: Tensor) -> Tensor:
        states = [torch.zeros(len(codes), dtype=torch.long)]
        for code in codes.unbind(1):
            states.append((states[-1] * 101 + code + 1) % len(self.table))
        return self.table[torch.stack(states[1:], 1)]


def model(prompt: Any = None, top_k: int | None = None) -> AutoregressiveModel:
    rules = [] if top_k is None else [TopK(top_k)]
    return AutoregressiveModel(Scrambled(), prompt=prompt, end=END, max_length=LONGEST, rules=rules)


def prompted(lists: list[tuple[int, ...]], prompts: Any) -> Sequences:
    return Sequences.of(lists, SIZE).with_covariates(prompts)


ROWS = [LISTS[index] for index in (0, 3, 7, 20, 33)]
DATA = prompted(ROWS, PROMPTS)


@pytest.mark.parametrize("top_k", [None, 3])
def test_log_joints_and_log_ratios_are_those_of_models_with_the_prompt(top_k: int | None) -> None:
    own = model(top_k=top_k)
    possible = own.log_joint(DATA) > -torch.inf
    assert possible.sum() >= 2
    edits = own.default_neighborhood.edits(DATA)
    assert len(edits) > 20
    ratios = own.log_ratio(DATA, edits)
    candidates = own.candidates(DATA, 3)
    for row, prompt in enumerate(PROMPTS):
        alone = model(prompt, top_k)
        one = Sequences.of([ROWS[row]], SIZE)
        assert float(own.log_joint(DATA)[row]) == pytest.approx(float(alone.log_joint(one)), rel=1e-12)
        if not possible[row]:
            continue
        same = edits.owner == row
        theirs = edits.select(same.nonzero().squeeze(1)).within(torch.tensor([row]))
        torch.testing.assert_close(ratios[same], alone.log_ratio(one, theirs), rtol=1e-12, atol=1e-12)
        width = len(ROWS[row])
        assert candidates[row, :width].equal(alone.candidates(one, 3)[0, :width])


def test_prompts_may_stand_among_other_covariates() -> None:
    padded = [[*prompt, -1, -1][:3] for prompt in PROMPTS]
    data = prompted(ROWS, {"prompt": padded, "user": [1, 2, 3, 4, 5]})
    assert model().log_joint(data).equal(model().log_joint(DATA))


def test_draws_follow_their_prompts() -> None:
    own = model()
    covariates = Covariates.of([[4, 1], [0]], 2).repeated(3000)
    drawn = own.draw_given(covariates, torch.Generator().manual_seed(0))
    assert own.has_ended(drawn).all()
    for which, prompt in enumerate([[4, 1], [0]]):
        rows = torch.arange(which, 6000, 2)
        texts = [tuple(x) for x in drawn[rows].to_lists()]
        expected = model(prompt).log_joint(Sequences.of(LISTS, SIZE)).softmax(0)
        found = torch.tensor([texts.count(x) / 3000 for x in LISTS], dtype=torch.double)
        # Frequencies of 3,000 draws: four standard errors at the most.
        assert ((found - expected).abs() <= 4 * (expected * (1 - expected) / 3000).sqrt() + 1e-9).all()


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_a_check_with_a_prompt_for_each_sequence(bootstrap: Any) -> None:
    own = model()
    prompts = [PROMPTS[row % len(PROMPTS)] for row in range(90)]
    covariates = Covariates.of(prompts, 90)
    data = own.draw_given(covariates, torch.Generator().manual_seed(3))
    options: Any = {"bootstrap": bootstrap, "num_bootstrap": 100, "localize": False, "progress": False}
    check = ksd_check(own, data, **options)
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    other = AutoregressiveModel(Scrambled(seed=5), end=END, max_length=LONGEST)
    check = ksd_check(other, data, **options)
    assert float(check["ksd"]["p_value_overall"]) < 0.05


def test_mistakes_are_named() -> None:
    plain = Sequences.of(ROWS, SIZE)
    with pytest.raises(ValueError, match="prompt: expected a prompt for each sequence, as the model has none for all"):
        ksd_check(model(), plain, progress=False)
    with pytest.raises(ValueError, match="draw: expected prompts to draw for, as the model has none for all"):
        model().draw(3)
    with pytest.raises(
        ValueError, match=re.escape("prompt: expected a covariate 'prompt', found Covariates(5: 'user'[N])")
    ):
        model().log_joint(plain.with_covariates({"user": [1, 2, 3, 4, 5]}))
    with pytest.raises(
        ValueError, match=re.escape("prompt: expected codes [N, P], filled with -1, found torch.float32 [5, 2]")
    ):
        model().log_joint(plain.with_covariates(torch.zeros(5, 2)))
    with pytest.raises(
        ValueError, match=re.escape("-1 only after the last, found [-1, -1] for sequence 2; give a start")
    ):
        model().log_joint(plain.with_covariates([[1, 2], [1, 2], [], [1, 2], [1, 2]]))
    with pytest.raises(ValueError, match=re.escape("found [1, -1, 2] for sequence 0")):
        model().log_joint(plain.with_covariates([[1, -1, 2]] * 5))


def test_one_prompt_ignores_covariates() -> None:
    same = model([4, 1])
    assert same.log_joint(DATA).equal(same.log_joint(Sequences.of(ROWS, SIZE)))
    assert not same.takes_covariates
    assert DATA.covariates is not None
    assert same.draw_given(DATA.covariates, torch.Generator().manual_seed(0)).covariates is DATA.covariates


def test_prompts_that_would_be_ignored_are_refused() -> None:
    data = prompted(ROWS, {"prompt": [[1], [2], [1], [1], [1]]})
    with pytest.raises(ValueError, match=r"prompts among the covariates, but the model has one for all, \[4, 1\]"):
        ksd_check(model([4, 1]), data, progress=False)


def test_prompts_with_their_sequences() -> None:
    prompts = Prompts.of(Covariates.of(PROMPTS[:3], 3))
    tokens = torch.tensor([[7, 8], [7, 8], [7, 8]])
    assert prompts.followed_by(tokens).tolist() == [[4, 1, 7, 8, 0], [0, 7, 8, 0, 0], [3, 3, 4, 7, 8]]
    places = torch.arange(5.0).expand(3, -1)[..., None]
    assert prompts.behind(places)[..., 0].tolist() == [[1, 2, 3], [0, 1, 2], [2, 3, 4]]
    some = prompts.take(torch.tensor([1, 1]))
    assert some.behind(places[:2])[..., 0].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert (len(prompts), prompts.width) == (3, 3)


def test_one_prompt_is_checked() -> None:
    assert checked_prompt([3, 1]).tolist() == [3, 1]
    with pytest.raises(ValueError, match="or leave it out where each sequence has a prompt of its own"):
        checked_prompt([[3, 1], [2, 2]])  # type: ignore[list-item]


@pytest.mark.parametrize("symbols", ["ab", ["a", "b"]])
def test_symbols_are_no_codes(symbols: Any) -> None:
    with pytest.raises(ValueError, match=r"prompt: expected codes for the network, found the symbols .* data.encode"):
        checked_prompt(symbols)


def test_prompts_are_padded_with_a_code_that_every_network_knows() -> None:
    found = Prompts.of(Covariates.of([[5, 3], [7], [4, 4, 4]], 3))
    assert found.codes.tolist() == [[5, 3, 0], [7, 0, 0], [4, 4, 4]]
    assert found.lengths.tolist() == [2, 1, 3]
    assert found.followed_by(torch.tensor([[8, 9], [8, 9], [8, 9]])).tolist() == [
        [5, 3, 8, 9, 0],
        [7, 8, 9, 0, 0],
        [4, 4, 4, 8, 9],
    ]
