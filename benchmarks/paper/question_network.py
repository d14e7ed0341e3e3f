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

from pyro_ksd.models import AutoregressiveModel
from pyro_ksd.models.distribution import PAD
from pyro_ksd.sequences import Sequences

START = "<start>"
EPOCHS = 8
_WIDTH, _DROPOUT, _BATCH, _RATE, _SEED = 64, 0.3, 64, 5e-3, 0
_LONGEST = 20  # words of a sentence that are learned from


class WordNetwork(nn.Module):
    """Words, long ``[N, L]``, to the logits of the words behind them, ``[N, L, S]``."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(size, _WIDTH), nn.Dropout(_DROPOUT)
        self.recurrence, self.head = nn.GRU(_WIDTH, _WIDTH, batch_first=True), nn.Linear(_WIDTH, size)

    def forward(self, codes: Tensor) -> Tensor:
        states, _ = self.recurrence(self.dropout(self.embedding(codes)))
        logits: Tensor = self.head(self.dropout(states))
        return logits


@dataclass(frozen=True)
class LanguageModel:
    """A trained network and the words that it knows, in the order of their codes."""

    network: WordNetwork
    words: tuple[str, ...]

    def questions(self, prompt: str, *, top_k: int, max_length: int) -> AutoregressiveModel:
        """The questions after a prompt."""
        codes = [self.words.index(word) for word in (START, *prompt.split())]
        end = self.words.index("?")
        return AutoregressiveModel(self.network, prompt=codes, end=end, max_length=max_length, top_k=top_k)


def sentences() -> list[tuple[str, ...]]:
    """The sentences of the text, word by word, with their mark at the end."""
    folder = files("chatterbot_corpus") / "data" / "english"
    found = []
    for file in sorted((file for file in folder.iterdir() if file.name.endswith(".yml")), key=lambda file: file.name):
        for conversation in yaml.safe_load(file.read_text(encoding="utf-8"))["conversations"]:
            for line in conversation:
                found += [
                    tuple(re.findall(r"[\w']+|[.!?]", part)) for part in re.findall(r"[^.!?]*[.!?]", str(line).lower())
                ]
    counts = Counter(word for sentence in found for word in sentence)
    return [sentence for sentence in found if len(sentence) > 1 and min(counts[word] for word in sentence) > 1]


@cache
def trained(epochs: int = EPOCHS) -> LanguageModel:
    """The network after some passes over the text; always the same."""
    text = sentences()
    words = (START, *sorted({word for sentence in text for word in sentence}))
    rows = Sequences.of([(START, *sentence[:_LONGEST]) for sentence in text], words)
    with _reproducible(_SEED):
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
