# SPDX-License-Identifier: Apache-2.0
"""Networks that go on from what they have computed for a prefix, such as language models with a key-value cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor


class PrefixNetwork(ABC):
    """A network that can evaluate a prefix once for many sequences that begin with it."""

    @abstractmethod
    def __call__(self, codes: Tensor) -> Tensor:
        """The logits of the next symbols, ``[N, L, S]``, after each of the codes ``[N, L]``."""

    @abstractmethod
    def after(self, prefixes: Tensor, which: Tensor, codes: Tensor) -> Tensor:
        """The same for codes that stand after prefixes, ``[E, K, S]``.

        :param prefixes: long ``[M, L]``, with ``L`` of at least 1.
        :param which: long ``[E]``, the prefix of each row.
        :param codes: long ``[E, K]``.
        """


class CausalLM(PrefixNetwork):
    """A causal language model of the package ``transformers``.

    No token attends to a later one, so what fills the short sequences of a batch needs no mask. A mask of ones says so
    to models that would take some token for padding.

    :param lm: the model.
    """

    def __init__(self, lm: Any) -> None:
        self._lm = lm

    def __call__(self, codes: Tensor) -> Tensor:
        ids = codes.to(self._lm.device)
        logits: Tensor = self._lm(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
        return logits

    def after(self, prefixes: Tensor, which: Tensor, codes: Tensor) -> Tensor:
        before = prefixes.to(self._lm.device)
        cache = self._lm(input_ids=before, attention_mask=torch.ones_like(before), use_cache=True).past_key_values
        cache.batch_select_indices(which.to(self._lm.device))
        ids = codes.to(self._lm.device)
        mask = torch.ones(len(ids), prefixes.shape[1] + ids.shape[1], dtype=torch.long, device=ids.device)
        logits: Tensor = self._lm(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True).logits
        return logits
