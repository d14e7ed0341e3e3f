# SPDX-License-Identifier: Apache-2.0
"""A small language model of English conversations: a recurrent network over words, trained here.

The text is that of the package ``chatterbot-corpus``. Sentences with a word that occurs nowhere else are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
import yaml
from torch import Tensor, nn

from pyro_ksd.models import AutoregressiveModel, TopK
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences

START = "<start>"
_WIDTH = 64
_DROPOUT = 0.3
_BATCH = 64
_RATE = 5e-3
_LONGEST = 20  # words of a sentence that are learned from
_SENTENCE = re.compile(r"[^.!?]*[.!?]")
_WORD = re.compile(r"[\w']+|[.!?]")


class WordNetwork(nn.Module):
    """Words, long ``[N, L]``, to the logits of the words behind them, ``[N, L, S]``."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, _WIDTH)
        self.dropout = nn.Dropout(_DROPOUT)
        self.recurrence = nn.GRU(_WIDTH, _WIDTH, batch_first=True)
        self.head = nn.Linear(_WIDTH, size)

    def forward(self, codes: Tensor) -> Tensor:
        states, _ = self.recurrence(self.dropout(self.embedding(codes)))
        logits: Tensor = self.head(self.dropout(states))
        return logits


@dataclass(frozen=True)
class LanguageModel:
    """A trained network and the words that it knows, in the order of their codes."""

    network: WordNetwork
    words: tuple[str, ...]

    def questions(self, prompt: str, max_length: int, top_k: int, floor: float = 0.0) -> AutoregressiveModel:
        """The questions after a prompt.

        :param top_k: how many words are possible at each step.
        :param floor: what all others have in common as their probability.
        """

        def floored(codes: Tensor) -> Tensor:
            logits, kept = self.network(codes).double().topk(top_k, -1)
            probs = logits.new_full((*codes.shape, len(self.words)), floor / len(self.words))
            log_probs: Tensor = probs.scatter_add_(-1, kept, (1 - floor) * logits.softmax(-1)).log()
            return log_probs

        codes = [self.words.index(word) for word in (START, *prompt.split())]
        end = self.words.index("?")
        if floor:
            return AutoregressiveModel(floored, prompt=codes, end=end, max_length=max_length)
        return AutoregressiveModel(self.network, prompt=codes, end=end, max_length=max_length, rules=[TopK(top_k)])


def sentences() -> list[tuple[str, ...]]:
    """The sentences of the text, word by word, with their mark at the end."""
    folder = files("chatterbot_corpus") / "data" / "english"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".yml")}
    conversations = [lines for name in sorted(texts) for lines in yaml.safe_load(texts[name])["conversations"]]
    parts = [part for lines in conversations for line in lines for part in _SENTENCE.findall(str(line).lower())]
    found = [tuple(_WORD.findall(part)) for part in parts]
    counts = Counter(word for sentence in found for word in sentence)
    return [sentence for sentence in found if len(sentence) > 1 and min(counts[word] for word in sentence) > 1]


@cache
def trained(seed: int, epochs: int) -> LanguageModel:
    """The network after some passes over the text; always the same for one seed."""
    text = sentences()
    words = (START, *sorted({word for sentence in text for word in sentence}))
    rows = Sequences.of([(START, *sentence[:_LONGEST]) for sentence in text], words)
    with _reproducible(seed):
        network = WordNetwork(len(words))
        optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
        for _ in range(epochs):
            for batch in torch.randperm(len(rows)).split(_BATCH):
                codes = rows[batch].narrowed().padded(PAD)
                logits = network(codes[:, :-1].clamp(min=0)).flatten(0, 1)
                loss = nn.functional.cross_entropy(logits, codes[:, 1:].flatten(), ignore_index=PAD)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return LanguageModel(network.eval(), words)


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """One thread, as the order of sums matters, and random numbers that leave no trace."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
