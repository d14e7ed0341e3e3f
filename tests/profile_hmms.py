# SPDX-License-Identifier: Apache-2.0
"""Profile hidden Markov models of DNA, by hand and from ``pyro.contrib.mue``, and the same in plain Python.

A profile has match states, one after the other. In front of each, and after the last, symbols can be inserted; each can
be deleted, that is skipped without a symbol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Style
from pyro import poutine
from pyro.contrib.mue.models import ProfileHMM
from torch import Tensor

MATCHES = 4
BASES = 4
AFTER_MATCH, AFTER_INSERT, AFTER_DELETE = range(3)

Program = Callable[[Tensor, Tensor], None]
Table = Sequence[Sequence[float]]


@dataclass(frozen=True)
class PlainProfile:
    """A profile whose deletions are states of their own, which emit nothing.

    :ivar match: the probabilities of the symbols of each match state, ``[M, S]``.
    :ivar background: those of inserted symbols in front of each match state and after the last, ``[M + 1, S]``.
    :ivar insert: in front of each match state and after the last, the probability of an insertion after a match, an
        insertion and a deletion, ``[M + 1, 3]``. Where nothing is inserted after the last match state, it ends.
    :ivar delete: the probability that a match state is skipped if nothing is inserted before it, ``[M, 3]``.
    :ivar longest: the sequence is only the first part of one that is drawn, of a length uniform from 1 to this, and
        its length is no part of the log-joint.
    """

    match: Table
    background: Table
    insert: Table
    delete: Table
    longest: int | None = None

    def log_joint(self, x: Sequence[int]) -> float:
        @cache
        def weight(place: int, kind: int, read: int) -> float:
            """Of the symbols from ``read`` on, in front of a match state, after a state of some kind."""
            if self.longest is not None and read == len(x):
                return 1.0
            insert = self.insert[place][kind]
            total = 0.0
            if read < len(x):
                total += insert * self.background[place][x[read]] * weight(place, AFTER_INSERT, read + 1)
            if place == len(self.match):
                return total + (1 - insert) * (read == len(x))
            delete = (1 - insert) * self.delete[place][kind]
            total += delete * weight(place + 1, AFTER_DELETE, read)
            if read < len(x):
                match = (1 - insert) * (1 - self.delete[place][kind])
                total += match * self.match[place][x[read]] * weight(place + 1, AFTER_MATCH, read + 1)
            return total

        found = weight(0, AFTER_MATCH, 0)
        return math.log(found) if found > 0 else -math.inf

    def draw(self, rng: Random) -> list[int]:
        most = math.inf if self.longest is None else rng.randint(1, self.longest)
        drawn: list[int] = []
        place, kind = 0, AFTER_MATCH
        while len(drawn) < most:
            if rng.random() < self.insert[place][kind]:
                drawn += rng.choices(range(BASES), self.background[place])
                kind = AFTER_INSERT
            elif place == len(self.match):
                break
            elif rng.random() < self.delete[place][kind]:
                place, kind = place + 1, AFTER_DELETE
            else:
                drawn += rng.choices(range(BASES), self.match[place])
                place, kind = place + 1, AFTER_MATCH
        return drawn


def probabilities(*shape: int, seed: int, scale: float = 1.5) -> Tensor:
    normals = torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return (scale * normals).softmax(-1)


MATCH = probabilities(MATCHES, BASES, seed=0, scale=2.0)
EVEN = torch.full((MATCHES + 1, BASES), 0.25, dtype=torch.double)
INSERT, DELETE = 0.15, 0.1


def profile_by_hand(match: Tensor, *, insert: float, delete: float) -> Program:
    """A program with a match and an insert state for each place, where deletions are jumps over match states.

    No insertion follows a deletion directly.
    """
    count = len(match)
    # Match states come first, then the insert states, then the start.
    emission = torch.cat([match, EVEN])
    next_places = [*range(1, count + 1), *range(count + 1), 0]
    moves = torch.zeros(len(next_places), len(emission), dtype=torch.double)
    for row, place in enumerate(next_places):
        skipped = (1 - insert) * delete ** torch.arange(count - place, dtype=torch.double)
        moves[row, place:count] = skipped * (1 - delete)
        moves[row, count + place] = insert
    end = 1 - moves.sum(1)

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            empty = (lengths == 0).double()
            pyro.sample("empty", dist.Bernoulli(end[-1]), obs=empty)
            z: Any = -1
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    probs = moves[z] / (1 - end[z])[..., None]
                    z = pyro.sample(f"z_{t}", dist.Categorical(probs), infer={"enumerate": "parallel"})
                    pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])
                    pyro.sample(f"end_{t}", dist.Bernoulli(end[z]), obs=(lengths == t + 1).double())

    return program


def constant(insert: float, delete: float) -> tuple[Table, Table]:
    """The same probabilities at all places, and no insertion after a deletion."""
    return [[insert, insert, 0.0]] * (MATCHES + 1), [[delete] * 3] * MATCHES


def mue_profile(sequences: Tensor, lengths: Tensor) -> None:
    """The profile of ``pyro.contrib.mue``, which takes one-hot rows, with rows of zeros after the end."""
    rows = torch.nn.functional.one_hot(sequences, BASES).to(torch.get_default_dtype())
    inside = torch.arange(sequences.shape[1]) < lengths[:, None]
    ProfileHMM(MATCHES, BASES).model(rows * inside[..., None], local_scale=1.0)


def mue_rows(x: Tensor) -> None:
    """The same for data that are one-hot rows, which are filled with -1 after the end."""
    ProfileHMM(MATCHES, BASES).model(x.clamp(min=0), local_scale=1.0)


def logits(*shape: int, seed: int, bias: float = 0.0) -> Tensor:
    normals = torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return 1.5 * normals + torch.tensor([bias, *[0.0] * (shape[-1] - 1)], dtype=torch.double)


MUE = {
    "precursor_seq": MATCH.log() + 0.5,
    "insert_seq": logits(MATCHES + 1, BASES, seed=1),
    "insert": logits(MATCHES, 3, 2, seed=2, bias=2.0),
    "delete": logits(MATCHES, 3, 2, seed=3, bias=2.0),
}


def plain_mue(values: dict[str, Tensor]) -> PlainProfile:
    table = {name: value.softmax(-1) for name, value in values.items()}
    return PlainProfile(
        table["precursor_seq"].tolist(),
        table["insert_seq"].tolist(),
        [*table["insert"][..., 1].tolist(), [1.0] * 3],  # after the last match state it inserts forever
        table["delete"][..., 1].tolist(),
        longest=7,
    )


BY_HAND = profile_by_hand(MATCH, insert=INSERT, delete=DELETE)
PLAIN = PlainProfile(MATCH.tolist(), EVEN.tolist(), *constant(INSERT, DELETE))
STYLES = {
    "by hand": Style(BY_HAND, profile_by_hand(MATCH.flip(0), insert=INSERT, delete=DELETE), PLAIN, size=BASES),
    "by hand, insertions": Style(BY_HAND, profile_by_hand(MATCH, insert=0.4, delete=DELETE), PLAIN, size=BASES),
    "contrib.mue": Style(
        mue_profile,
        mue_profile,
        plain_mue(MUE),
        size=BASES,
        parameters=MUE,
        wrong_parameters=MUE | {"precursor_seq": MUE["precursor_seq"].flip(0)},
        warning="no probability to lengths",
        given_lengths=True,
    ),
}
