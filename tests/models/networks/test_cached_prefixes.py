# SPDX-License-Identifier: Apache-2.0
"""Log-ratios with a key-value cache, against those of whole sequences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyro_ksd import AutoregressiveModel, Sequences
from pyro_ksd.edits import BeforeEnd, Substitutions, prefix_zs, zs
from pyro_ksd.models.networks.cached_prefixes import CausalLM
from pyro_ksd.models.networks.sampling_rules import RepetitionPenalty, SamplingRule, Temperature, TopK, TopP
from pyro_ksd.sequences.covariates import Covariates

SIZE, END, LONGEST = 6, 2, 7


@pytest.fixture(scope="module")
def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        torch.manual_seed(4)
        options = {"n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.3}
        lm = GPT2LMHeadModel(GPT2Config(vocab_size=SIZE, bos_token_id=0, eos_token_id=0, **options)).eval()
    return lm.double()


class Counted:
    """A language model that counts the tokens that it evaluates."""

    def __init__(self, lm: Any) -> None:
        self.lm, self.device, self.tokens = lm, lm.device, 0

    def __call__(self, input_ids: Tensor, **options: Any) -> Any:
        self.tokens += input_ids.numel()
        return self.lm(input_ids=input_ids, **options)


def models(lm: Any, rules: list[SamplingRule], prompt: Any) -> tuple[AutoregressiveModel, AutoregressiveModel]:
    """The model with a cache, and the same without."""
    options: dict[str, Any] = {"prompt": prompt, "end": END, "rules": rules}
    cached = AutoregressiveModel.from_causal_lm(lm, max_new_tokens=LONGEST, **options)
    network = CausalLM(lm)
    return cached, AutoregressiveModel(lambda codes: network(codes), max_length=LONGEST, **options)


RULES: list[list[SamplingRule]] = [[], [RepetitionPenalty(1.4), Temperature(0.8), TopK(4), TopP(0.95)]]
NEIGHBORHOODS: dict[str, Any] = {
    "all": zs(),
    "last": BeforeEnd(zs(1)),
    "last three": BeforeEnd(Substitutions(3)),
}


@pytest.mark.parametrize("rules", RULES, ids=["plain", "rules"])
@pytest.mark.parametrize("around", NEIGHBORHOODS)
@pytest.mark.parametrize("prompt", [[3], [1, 3, 0, 5]])
def test_log_ratios_are_those_of_whole_sequences(
    gpt2: Any, rules: list[SamplingRule], around: str, prompt: list[int]
) -> None:
    cached, plain = models(gpt2, rules, prompt)
    data = plain.draw(30, torch.Generator().manual_seed(0))
    edits = NEIGHBORHOODS[around].edits(data)
    found, expected = cached.log_ratio(data, edits), plain.log_ratio(data, edits)
    assert len(data.lengths.unique()) > 2
    assert expected.isfinite().sum() > 10
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert not cached.has_quick_ratios


@pytest.mark.parametrize("rules", RULES, ids=["plain", "rules"])
def test_sequences_with_prompts_of_their_own(gpt2: Any, rules: list[SamplingRule]) -> None:
    cached, plain = models(gpt2, rules, None)
    covariates = Covariates.of([[3], [1, 3, 0, 5], [3], [0, 0], [5, 1, 1]] * 6, 30)
    data = plain.draw_given(covariates, torch.Generator().manual_seed(0))
    edits = BeforeEnd(prefix_zs(plain.candidates, 4)).edits(data)
    found, expected = cached.log_ratio(data, edits), plain.log_ratio(data, edits)
    assert len(expected) > 50
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_a_prefix_is_evaluated_once(gpt2: Any) -> None:
    """One sequence of 5 symbols, and 5 substitutes before its end: the prefix once, and two codes of each edit."""
    counted = Counted(gpt2)
    cached, _ = models(counted, [], [1, 3, 0, 5])
    data = Sequences.of([[0, 1, 3, 4, END]], SIZE)
    edits = Substitutions(2).edits(data).select(torch.arange(5))
    assert {block.start.unique().item() for block in edits.blocks} == {3}
    counted.tokens = 0
    cached.log_ratio(data, edits)
    whole, prefix = 4 + 4, 4 + 3 - 1
    possible = 4  # to put an end there makes no sequence
    assert counted.tokens == whole + prefix + possible * 2


class Padding(Counted):
    """A language model that takes token 0 for padding unless a mask says otherwise."""

    def __call__(self, input_ids: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Any:
        if attention_mask is None:
            attention_mask = (input_ids != 0).long()
        assert attention_mask.dtype == torch.long  # as tokenizers make it
        if options.get("past_key_values") is not None:
            assert attention_mask.shape[1] == options["past_key_values"].get_seq_length() + input_ids.shape[1]
        return super().__call__(input_ids, attention_mask=attention_mask, **options)


def test_no_token_is_padding(gpt2: Any) -> None:
    careful, _ = models(Padding(gpt2), [], [0, 3, 0, 1])
    cached, _ = models(gpt2, [], [0, 3, 0, 1])
    data = Sequences.of([[0, 1, 0, 0, END], [0, END], [4, 0, 3, END]], SIZE)
    edits = BeforeEnd(zs()).edits(data)
    torch.testing.assert_close(careful.log_joint(data), cached.log_joint(data), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(careful.log_ratio(data, edits), cached.log_ratio(data, edits), rtol=1e-12, atol=1e-12)


def test_a_model_that_keeps_no_cache_by_default(gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cached, plain = models(gpt2, [], [3, 0])
    data = Sequences.of([[0, 1, 0, 0, END], [4, END]], SIZE)
    edits = BeforeEnd(zs()).edits(data)
    expected = plain.log_ratio(data, edits)
    monkeypatch.setattr(gpt2.config, "use_cache", False)
    torch.testing.assert_close(cached.log_ratio(data, edits), expected, rtol=1e-10, atol=1e-10)


def test_no_edits(gpt2: Any) -> None:
    cached, _ = models(gpt2, [], [1])
    data = Sequences.of([[END]], SIZE)
    assert cached.log_ratio(data, BeforeEnd(Substitutions()).edits(data)).shape == (0,)


def test_errors_name_the_network(gpt2: Any) -> None:
    class Broken(Counted):
        def __call__(self, input_ids: Tensor, past_key_values: Any = None, **options: Any) -> Any:
            if past_key_values is not None:
                raise RuntimeError("no cache")
            return super().__call__(input_ids, **options)

    cached, _ = models(Broken(gpt2), [], [1, 3])
    data = Sequences.of([[0, 1, END]], SIZE)
    with pytest.raises(ValueError, match=r"network: expected one that takes .* RuntimeError: no cache"):
        cached.log_ratio(data, BeforeEnd(Substitutions(1)).edits(data))
