# SPDX-License-Identifier: Apache-2.0
"""The evidence against a model that a stream of sequences has given until now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.fit_tests.betting import Bets, log_mean_evidence

_MOST_LOOKS = 1_000  # looks that are kept; if there are more, every other one of the earlier ones is dropped
_BETS = ("total", "squares", "direction", "log_wealth")


@dataclass(frozen=True, eq=False)
class StreamEvidence:
    """The evidence of ``V`` views after some sequences of a stream.

    :param bets: those of each view.
    :param needed: the log of the evidence at which the model is rejected.
    :param num_sequences: how many sequences there were.
    :param num_impossible: to how many of them the model gives probability 0. Nobody bets on these: one is enough.
    :param first_clear: after how many sequences the evidence was first large enough; -1 if it never was.
    :param most: the largest log of the evidence until now.
    :param most_of_views: double ``[V]``, the same for each view by itself, at least 0.
    :param looks: long ``[L]``, the numbers of sequences after which somebody looked.
    :param seen: double ``[L, V + 1]``, the logs of the evidence at these times, of each view and of all together.

    >>> start = StreamEvidence.at_start([Bets.at_start(1, reach=1.0)], level=0.05)
    >>> psi = torch.full((100, 1), 0.5, dtype=torch.double)
    >>> found = start.after([psi], torch.ones(100, dtype=torch.bool))
    >>> found.num_sequences, found.first_clear, found.p_value < 1e-6
    (100, 30, True)
    """

    bets: tuple[Bets, ...]
    needed: float
    num_sequences: int
    num_impossible: int
    first_clear: int
    most: float
    most_of_views: Tensor
    looks: Tensor
    seen: Tensor

    @staticmethod
    def at_start(bets: Sequence[Bets], level: float) -> StreamEvidence:
        """Before the first sequence.

        :param level: one over the evidence at which the model is rejected.
        """
        looks = torch.zeros(0, dtype=torch.long)
        seen = torch.zeros(0, len(bets) + 1, dtype=torch.double)
        tops = torch.zeros(len(bets), dtype=torch.double)
        return StreamEvidence(tuple(bets), -math.log(level), 0, 0, -1, 0.0, tops, looks, seen)

    @property
    def p_value(self) -> float:
        """One over the largest evidence until now, at most 1; 0 if there was an impossible sequence."""
        return math.exp(-self.most)

    def after(self, psi: Sequence[Tensor], possible: Tensor) -> StreamEvidence:
        """The evidence after further sequences.

        :param psi: ``[M, D]`` for each view, the Stein features of those sequences that are possible.
        :param possible: boolean ``[N]``, which ones are.
        """
        begin = self.num_sequences - self.num_impossible
        played = [own.after(values, begin) for own, values in zip(self.bets, psi, strict=True)]
        paths = [path for _, path in played]
        overall = torch.full((len(possible),), torch.inf, dtype=torch.double)
        overall[possible] = log_mean_evidence(paths)
        clear = (overall >= self.needed).nonzero()[:, 0].tolist()
        first = self.first_clear
        if first < 0 and clear:
            first = self.num_sequences + clear[0] + 1
        at = torch.tensor([self.num_sequences + len(possible)])
        nothing = self.seen.new_zeros(1, len(paths) + 1)
        now = torch.cat([nothing, self.seen, torch.stack([*paths, log_mean_evidence(paths)], 1)])[-1:]
        looks, seen = _thinned(torch.cat([self.looks, at]), torch.cat([self.seen, now]))
        return replace(
            self,
            bets=tuple(own for own, _ in played),
            num_sequences=int(at),
            num_impossible=self.num_impossible + int((~possible).sum()),
            first_clear=first,
            most=max(self.most, *overall.tolist()),
            most_of_views=torch.stack(
                [torch.cat([top[None], path]).max() for top, path in zip(self.most_of_views, paths, strict=True)]
            ),
            looks=looks,
            seen=seen,
        )

    def parts(self) -> dict[str, Tensor]:
        """All that changes, as tensors by name."""
        numbers = torch.tensor([self.num_sequences, self.num_impossible, self.first_clear])
        most = torch.tensor(self.most, dtype=torch.double)
        tops = self.most_of_views
        parts = {"numbers": numbers, "most": most, "tops": tops, "looks": self.looks, "seen": self.seen}
        return parts | {f"{index} {name}": getattr(own, name) for index, own in enumerate(self.bets) for name in _BETS}

    def going_on_from(self, parts: Mapping[str, Tensor]) -> StreamEvidence:
        """The evidence with some :meth:`parts`."""
        bets = []
        for index, own in enumerate(self.bets):
            values: dict[str, Any] = {name: parts[f"{index} {name}"] for name in _BETS}
            bets.append(replace(own, **values))
        num_sequences, num_impossible, first_clear = parts["numbers"].tolist()
        return replace(
            self,
            bets=tuple(bets),
            num_sequences=num_sequences,
            num_impossible=num_impossible,
            first_clear=first_clear,
            most=float(parts["most"]),
            most_of_views=parts["tops"],
            looks=parts["looks"],
            seen=parts["seen"],
        )


def _thinned(looks: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Looks without every other one of the earlier ones, if there are too many; the last one stays."""
    if len(looks) <= _MOST_LOOKS:
        return looks, seen
    kept = torch.arange(len(looks) - 1, -1, -2).flip(0)
    return looks[kept], seen[kept]
