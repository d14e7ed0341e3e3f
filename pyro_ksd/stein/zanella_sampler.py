# SPDX-License-Identifier: Apache-2.0
"""Samples of models that are known only up to a constant, by the Zanella process."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EDITS
from pyro_ksd.common.option_checks import check_flag, check_number, check_positive
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.edits.neighborhoods import Neighborhood, check_neighborhood, zs
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.impossible_sequences import find_impossible
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing, as_balancing
from pyro_ksd.stein.mixing import effective_sample_size, split_rhat
from pyro_ksd.stein.weighting import edits_with_ratios

_RECORDS = 50  # times at which the processes are looked at
_RHAT = 1.01  # the bound of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021)


@dataclass(frozen=True, eq=False)
class ZanellaSamples:
    """The final states of ``C`` Zanella processes, and how well the processes mixed.

    The diagnostics look at ``log p`` and at the length of the states at 50 times, equally spaced over the second half.
    They see whether the processes have forgotten where they started and agree with each other; parts of the space that
    no process has found stay unseen, so start from sequences that differ. They are strict: R-hat asks that each process
    by itself has seen all of ``p`` several times, which takes longer than to forget the start.

    :ivar sequences: the states at ``time``.
    :ivar time: how long the processes ran.
    :ivar jumps: long ``[C]``, how often each process jumped.
    :ivar log_joint: double ``[C, 50]``, the recorded ``log p`` up to a constant.
    :ivar lengths: long ``[C, 50]``, the recorded lengths.

    >>> from pyro_ksd.models import LinearChainMRF
    >>> model, start = LinearChainMRF(torch.eye(2).double(), max_length=3), Sequences.of([[0], [1, 1]])
    >>> print(zanella_sample(model, 50, start=start, time=1.0, progress=False))  # too short
    50 processes did not mix until time 1 (... jumps on average, at least ...; log p: R-hat ...
    """

    sequences: Sequences
    time: float
    jumps: Tensor
    log_joint: Tensor
    lengths: Tensor

    @property
    def rhat(self) -> dict[str, float]:
        """The split R-hat of ``"log p"`` and ``"length"``."""
        return {"log p": split_rhat(self.log_joint), "length": split_rhat(self.lengths.double())}

    @property
    def ess(self) -> dict[str, float]:
        """The effective sample size of the ``50 C`` records of ``"log p"`` and ``"length"``."""
        return {
            "log p": effective_sample_size(self.log_joint),
            "length": effective_sample_size(self.lengths.double()),
        }

    @property
    def mixed(self) -> bool:
        """Whether every R-hat is below 1.01. What never changed is not counted; if nothing did, it is false."""
        known = [value for value in self.rhat.values() if not math.isnan(value)]
        return bool(known) and max(known) < _RHAT

    def __str__(self) -> str:
        rhat = self.rhat
        ess = self.ess
        found = "; ".join(
            f"{name} never changed"
            if math.isnan(rhat[name])
            else f"{name}: R-hat {rhat[name]:.3f}, effective sample size {ess[name]:.0f}"
            for name in rhat
        )
        return (
            f"{len(self.jumps)} processes {'mixed' if self.mixed else 'did not mix'} until time {self.time:g} "
            f"({self.jumps.double().mean():.1f} jumps on average, at least {int(self.jumps.min())}; {found})."
        )


def zanella_sample(
    model: SequenceModel,
    num_sequences: int,
    *,
    start: Sequences,
    time: float,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing = "barker",
    seed: Seed = 0,
    progress: bool = True,
) -> ZanellaSamples:
    r"""Samples a model by independent Zanella processes, which need only its probability ratios.

    A process jumps from :math:`x` to each neighbor :math:`y` at the rate :math:`g(p(y) / p(x))` and leaves
    :math:`p` invariant (Power and Goldman, 2019, *Accelerated sampling on discrete spaces with non-reversible Markov
    processes*; Baum, Kanagawa and Gretton, 2023, section 3). The samples are exact only in the limit of a long
    ``time``: look at :attr:`ZanellaSamples.mixed` before you use them.

    :param num_sequences: the number of processes ``C``; each gives one sequence.
    :param start: process ``c`` starts at ``start[c % len(start)]``.
    :param time: how long each process runs. A larger neighborhood makes more jumps in the same time.
    :param neighborhood: all substitutions, insertions and deletions if left out. Edits must lead from everywhere to
        everywhere: substitutions alone keep the lengths of ``start``.
    :param balancing: ``"barker"``, ``"mpf"``, ``"metropolis"`` or a function of the log-ratio.
    :param seed: of all random numbers, or the generator from which to take them.

    >>> from pyro_ksd.models import LinearChainMRF
    >>> model = LinearChainMRF(torch.eye(2).double(), max_length=3)
    >>> found = zanella_sample(model, 100, start=Sequences.of([[0], [1, 1]]), time=200.0, progress=False)
    >>> len(found.sequences), found.mixed
    (100, True)

    For the parametric bootstrap of a model that has no ``draw``:

    >>> from pyro_ksd.models import with_sampler
    >>> def sampler(num_sequences, generator):
    ...     options = {"start": Sequences.of([[0], [1, 1]]), "time": 20.0, "seed": generator, "progress": False}
    ...     return zanella_sample(model, num_sequences, **options).sequences
    >>> len(with_sampler(model, sampler).draw(5))
    5
    """
    num_sequences = check_number("num_sequences", num_sequences, least=1)
    check_positive("time", time)
    check_flag("progress", progress)
    around = zs() if neighborhood is None else neighborhood
    check_neighborhood("neighborhood", around)
    rate = as_balancing(balancing)
    generator = _generator(seed)
    model = required_model(model)
    log_joint = _possible(model, start)

    active = torch.arange(num_sequences)
    states = start[active % len(start)]
    log_joint = log_joint[active % len(start)]
    clock = torch.zeros_like(log_joint)
    jumps = torch.zeros_like(active)
    grid = torch.linspace(time / 2, time, _RECORDS, dtype=torch.double)
    recorded = log_joint[:, None].repeat(1, _RECORDS)
    lengths = states.lengths[:, None].repeat(1, _RECORDS)
    with progress_bar(total=100, desc="Zanella processes", unit="%", show=progress) as bar:
        while len(active):
            active, hold, log_ratio, moved = _next_jumps(model, around, rate, states, active, generator)
            clock[active] += hold
            intime = clock[active] <= time
            active = active[intime]
            states = _replaced(states, active, moved[intime])
            log_joint[active] += log_ratio[intime]
            jumps[active] += 1
            # A state counts for all times to come, until the next jump overwrites it.
            ahead = grid >= clock[active, None]
            recorded[active] = torch.where(ahead, log_joint[active, None], recorded[active])
            lengths[active] = torch.where(ahead, states.lengths[active, None], lengths[active])
            bar.update(int(100 * clock.clamp(max=time).mean() / time) - bar.done)
    return ZanellaSamples(states, time, jumps, recorded, lengths)


def _generator(seed: Seed) -> torch.Generator:
    return seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(as_seed(seed))


def _possible(model: SequenceModel, start: Sequences) -> Tensor:
    """``log p`` of the first states, double ``[N]``, none of which is impossible."""
    check_sequences("start", start)
    if not len(start):
        raise ValueError("start: expected at least one sequence, found none")
    if start.alphabet_size != model.alphabet_size:
        raise ValueError(
            f"start: expected sequences over the model's {model.alphabet_size} symbols, found an alphabet of "
            f"{start.alphabet_size}; state it in Sequences.of(data, alphabet=...)"
        )
    found = find_impossible(model, start)
    if len(found):
        raise ValueError(f"start: {found.message}; leave them out")
    return found.log_joint.double()


def _next_jumps(
    model: SequenceModel,
    neighborhood: Neighborhood,
    balancing: Balancing,
    states: Sequences,
    active: Tensor,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor, Sequences]:
    """:func:`_race` for the active processes, long ``[A]``, a bounded number at a time."""
    bound = neighborhood.edit_bound(int(states.lengths[active].max()), states.alphabet_size)
    parts = []
    for rows in active.split(max(1, EDITS // max(1, bound))):
        row, hold, log_ratio, after = _race(model, neighborhood, balancing, states[rows].narrowed(), generator)
        parts.append((rows[row], hold, log_ratio, after))
    jumping, holds, log_ratios, moved = zip(*parts, strict=True)
    return torch.cat(jumping), torch.cat(holds), torch.cat(log_ratios), Sequences.cat(moved)


def _race(
    model: SequenceModel,
    neighborhood: Neighborhood,
    balancing: Balancing,
    states: Sequences,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor, Sequences]:
    """The next jump of each process that can jump at all, ``J`` of them.

    Every edit rings after an exponential time of its own rate, and the first one to ring is the jump.

    :returns: the rows of the processes, long ``[J]``, the times until they jump and the log-ratios of the jumps, double
        ``[J]`` each, and the states after the jumps.
    """
    edits, log_ratio = edits_with_ratios(model, neighborhood, states)
    rates = balancing(log_ratio)
    uniform = torch.rand(len(edits), dtype=torch.double, generator=generator)
    rings = (-uniform.log() / rates).masked_fill(rates == 0, torch.inf)
    first = rings.new_full((len(states),), torch.inf).scatter_reduce_(0, edits.owner, rings, "amin")
    ringing = ((rings == first[edits.owner]) & (rings < torch.inf)).nonzero().squeeze(1)
    # Should two edits ring at the very same moment, one of them wins.
    winner = ringing.new_full((len(states),), -1).scatter_(0, edits.owner[ringing], ringing)
    winner = winner[winner >= 0].sort().values
    row = edits.owner[winner]
    return row, first[row], log_ratio[winner], edits.select(winner).apply(states)


def _replaced(states: Sequences, rows: Tensor, moved: Sequences) -> Sequences:
    """The states with those of some rows replaced."""
    width = max(states.width, moved.width)
    old, new = (torch.nn.functional.pad(part.tokens, (0, width - part.width)) for part in (states, moved))
    lengths = states.lengths.index_copy(0, rows, moved.lengths)
    return states.derived(old.index_copy(0, rows, new), lengths)
