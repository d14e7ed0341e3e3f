# SPDX-License-Identifier: Apache-2.0
"""Sampling rules against those of the package transformers, and models with rules against enumeration."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from transformers import (
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from pyro_ksd import AutoregressiveModel, Sequences, ksd_check
from pyro_ksd.edits.symmetry import check_symmetric
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import RepetitionPenalty, SamplingRule, Temperature, TopK, TopP
from pyro_ksd.models.networks.sampling_rules import after_rules
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

THEIRS: dict[type[SamplingRule], Any] = {
    Temperature: lambda rule: TemperatureLogitsWarper(rule.temperature),
    TopK: lambda rule: TopKLogitsWarper(rule.k),
    TopP: lambda rule: TopPLogitsWarper(rule.p),
    RepetitionPenalty: lambda rule: RepetitionPenaltyLogitsProcessor(rule.penalty),
}
RULES = [
    [Temperature(0.7)],
    [TopK(3)],
    [TopK(1)],
    [TopP(0.9)],
    [TopP(0.5)],
    [TopP(0.01)],
    [TopP(1.0)],
    [RepetitionPenalty(1.3)],
    [RepetitionPenalty(0.5)],
    *[list(some) for some in permutations([RepetitionPenalty(1.5), Temperature(1.4), TopK(4), TopP(0.8)])],
]
SIZE = 7


def theirs(rules: list[SamplingRule], logits: Tensor, codes: Tensor, last: Tensor) -> Tensor:
    """One prefix after the other, as text is generated."""
    found = torch.empty_like(logits)
    for row in range(len(logits)):
        for column in range(logits.shape[1]):
            scores = logits[row : row + 1, column]
            for rule in rules:
                scores = THEIRS[type(rule)](rule)(codes[row : row + 1, : last[row, column] + 1], scores)
            found[row, column] = scores[0]
    return found


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_rules_are_those_of_transformers(rules: list[SamplingRule], ties: bool) -> None:
    generator = torch.Generator().manual_seed(int(ties))
    logits = 2 * torch.randn(40, 3, SIZE, generator=generator)
    if ties:
        logits = logits.round()
    codes = torch.randint(SIZE + 2, (40, 5), generator=generator)  # some are known to the prompt only
    last = torch.randint(3, (40, 1), generator=generator) + torch.arange(3)
    expected = theirs(rules, logits, codes, last)
    found = after_rules(rules, logits, codes, last)
    assert torch.equal(found.strict, expected)
    kept = found.strict > -torch.inf
    assert torch.equal(found.lenient[kept], found.strict[kept])
    if not ties and any(isinstance(rule, TopK | TopP) for rule in rules) and rules != [TopP(1.0)]:
        assert not kept.all()
        assert torch.equal(found.lenient, found.strict)  # nothing is close to a boundary


@pytest.mark.parametrize("rule", [Temperature(0.5), RepetitionPenalty(2.0)], ids=str)
def test_what_rounding_makes_possible_stays_possible_under_later_rules(rule: SamplingRule) -> None:
    logits = torch.tensor([[[3.0, 3.0 - 2**-20, 1.0]]])  # the second symbol is as probable as the first, up to rounding
    codes, last = torch.tensor([[2]]), torch.tensor([[0]])
    found = after_rules([TopK(1), rule], logits, codes, last)
    assert found.strict.isfinite().tolist() == [[[True, False, False]]]
    assert found.lenient.isfinite().tolist() == [[[True, True, False]]]
    without = after_rules([rule], logits, codes, last)
    assert found.lenient[..., :2].equal(without.strict[..., :2])


# ------------------------------------------------------------------------------------------- whole models

END, LONGEST, PROMPT = 2, 4, [1, 5, 0]
SYMBOLS = 4
LISTS = [(*x, END) for length in range(LONGEST) for x in product([0, 1, 3], repeat=length)]
SPACE = Sequences.of(LISTS, SYMBOLS)
MODELS = [
    [Temperature(0.6)],
    [TopP(0.8)],
    [TopP(0.6), Temperature(2.0)],
    [RepetitionPenalty(2.0)],
    [RepetitionPenalty(1.5), Temperature(0.8), TopK(3), TopP(0.9)],
]


class Scrambled:
    """A causal network whose logits depend on all codes up to the present one."""

    def __init__(self) -> None:
        self.table = 1.5 * torch.randn(1009, SYMBOLS, dtype=torch.double, generator=torch.Generator().manual_seed(3))

    def __call__(self, codes: Tensor) -> Tensor:
        states = [torch.zeros(len(codes), dtype=torch.long)]
        for code in codes.unbind(1):
            states.append((states[-1] * 101 + code + 1) % len(self.table))
        return self.table[torch.stack(states[1:], 1)]


def model(rules: Any, prompt: list[int] | None = PROMPT) -> AutoregressiveModel:
    return AutoregressiveModel(Scrambled(), prompt=prompt, end=END, max_length=LONGEST, rules=rules)


def truth(rules: list[SamplingRule], prompt: list[int] = PROMPT) -> Tensor:
    """The log-probability of each sequence, one prefix after the other, by the rules of transformers."""
    network = Scrambled()
    found = []
    for x in LISTS:
        total = 0.0
        for t, symbol in enumerate(x):
            codes = torch.tensor([[*prompt, *x[:t]]])
            scores = network(codes)[:, -1]
            for rule in rules:
                scores = THEIRS[type(rule)](rule)(codes, scores)
            total += float(scores.log_softmax(-1)[0, symbol])
        found.append(total)
    return torch.tensor(found, dtype=torch.double)


@pytest.mark.parametrize("rules", MODELS, ids=str)
def test_log_joints_against_enumeration(rules: list[SamplingRule]) -> None:
    found = model(rules).log_joint(SPACE)
    torch.testing.assert_close(found, truth(rules), rtol=1e-12, atol=1e-12)
    assert found.isfinite().sum() > 2
    prompts = [PROMPT, [3], [0, 0, 3, 3]]
    each = model(rules, None)
    for prompt in prompts:
        data = SPACE.with_covariates([prompt] * len(SPACE))
        torch.testing.assert_close(each.log_joint(data), truth(rules, prompt), rtol=1e-12, atol=1e-12)
    mixed = Sequences.cat([SPACE] * len(prompts)).with_covariates([own for own in prompts for _ in LISTS])
    expected = torch.cat([truth(rules, prompt) for prompt in prompts])
    torch.testing.assert_close(each.log_joint(mixed), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rules", MODELS, ids=str)
def test_draws_edits_and_stein_identity(rules: list[SamplingRule]) -> None:
    lm, p = model(rules), truth(rules).softmax(0)
    drawn = lm.draw(3000, torch.Generator().manual_seed(1))
    index = {x: row for row, x in enumerate(LISTS)}
    counts = torch.tensor([index[tuple(x)] for x in drawn.to_lists()]).bincount(minlength=len(LISTS))  # type: ignore[index]
    likely = 3000 * p >= 5
    assert not counts[p == 0].any()
    found, expected = [*counts[likely].tolist()], [*(3000 * p[likely]).tolist()]
    if (rest := 3000 - sum(expected)) > 1e-6:
        found, expected = [*found, 3000 - sum(found)], [*expected, rest]
    assert chisquare(found, expected).pvalue > 1e-3
    data = SPACE[p > 0]
    check_symmetric(lm.default_neighborhood, data)
    [features] = stein_matrices(lm, data, [View("", ZanellaOperator(lm.default_neighborhood), ContiguousKernel(2))])
    assert isinstance(features, FeatureMatrix)
    assert features.weighted_sum(p[p > 0][None]).abs().max() < 1e-12
    assert features.values.to_dense().abs().max() > 0.1


def test_candidates_are_the_possible_symbols() -> None:
    lm = model([TopP(0.6)])
    codes = lm.candidates(SPACE, 4)
    assert codes.shape[2] < 4  # of the most possible symbols after any prefix
    scores = after_rules(
        [TopP(0.6)], Scrambled()(torch.tensor([PROMPT]))[:, -1:], torch.tensor([PROMPT]), torch.tensor([[2]])
    ).strict[0, 0]
    possible = {code for code in range(SYMBOLS) if scores[code] > -math.inf and code != END}
    assert {code for code in codes[0, 0].tolist() if code >= 0} == possible


def test_parts_with_other_numbers_of_possible_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sequence at a time; the most possible symbols after any prefix are filled up in the other parts."""
    rules: list[SamplingRule] = [TopP(0.6)]
    lm, p = model(rules), truth(rules).softmax(0)
    candidates = lm.candidates(SPACE, 4)
    drawn = lm.draw(200, torch.Generator().manual_seed(0))
    monkeypatch.setattr("pyro_ksd.models.networks.autoregressive.LOGITS", 1)
    assert lm.candidates(SPACE, 4).equal(candidates)
    for x in lm.draw(200, torch.Generator().manual_seed(0)).to_lists():
        assert p[LISTS.index(tuple(x))] > 0  # type: ignore[arg-type]
    assert lm.draw(200, torch.Generator().manual_seed(0)).to_lists() == drawn.to_lists()


def test_rounding_does_not_make_drawn_sequences_impossible() -> None:
    """The probabilities of the last two symbols are half of the nucleus, up to rounding that changes with the batch."""

    def unstable(codes: Tensor) -> Tensor:
        probs = torch.tensor([0.25, 0.25, 0.25, 0.25]).repeat(*codes.shape, 1)
        probs[..., 1] += 1e-7 if len(codes) % 2 else -1e-7
        return probs.log()

    lm = AutoregressiveModel(unstable, prompt=[0], end=END, max_length=30, rules=[TopP(0.75)])
    drawn = lm.draw(300, torch.Generator().manual_seed(0))
    for count in (299, 298, 1):
        assert lm.log_joint(drawn[:count]).isfinite().all()


def test_half_precision_is_sampled_in_single_precision() -> None:
    logits = torch.randn(5, 1, SIZE, generator=torch.Generator().manual_seed(0)).bfloat16()
    codes, last = torch.zeros(5, 1, dtype=torch.long), torch.zeros(5, 1, dtype=torch.long)
    rules: list[SamplingRule] = [Temperature(0.7), TopK(4)]
    assert torch.equal(after_rules(rules, logits, codes, last).strict, theirs(rules, logits.float(), codes, last))


def test_a_check_says_whether_symbols_were_sampled_from_the_most_probable_ones() -> None:
    """No sequence is impossible without the rule, and none of those drawn with it are impossible with it."""

    def network(codes: Tensor) -> Tensor:
        return torch.tensor([0.5, 0.15, 0.25, 0.1]).log().repeat(*codes.shape, 1)

    def served(rules: list[SamplingRule]) -> AutoregressiveModel:
        return AutoregressiveModel(network, prompt=[0], end=END, max_length=60, rules=rules)

    plain, truncated = served([]), served([TopK(3)])
    options: dict[str, Any] = {"num_bootstrap": 99, "localize": False, "views": "content-1", "progress": False}
    data = truncated.draw(150, torch.Generator().manual_seed(0))
    assert float(ksd_check(plain, data, **options)["ksd"]["p_value_overall"]) <= 0.02
    assert float(ksd_check(truncated, data, **options)["ksd"]["p_value_overall"]) > 0.05
    with pytest.warns(UserWarning, match="probability zero"):
        wrong = ksd_check(truncated, plain.draw(150, torch.Generator().manual_seed(0)), **options)
    assert float(wrong["ksd"]["p_value_overall"]) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Temperature(0.0), "temperature: expected a finite number above 0"),
        (lambda: RepetitionPenalty(-1.0), "penalty: expected a finite number above 0"),
        (lambda: TopK(0), "k: expected an integer of at least 1, found 0"),
        (lambda: TopP(1.5), "p: expected a probability of at most 1, found 1.5"),
        (lambda: TopP(0.0), "p: expected a finite number above 0"),
    ],
)
def test_refuses(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
