# SPDX-License-Identifier: Apache-2.0
"""Pyro programs that make one sequence in a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.common.random_numbers import check_generator, drawn_seed, following_seed
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.programs.call_conventions import function_of
from pyro_ksd.models.programs.global_sites import (
    GlobalSite,
    GlobalSites,
    bind,
    check_by_name,
    checked_point,
    sites_of,
)
from pyro_ksd.models.programs.loop_drawing import LoopDrawing
from pyro_ksd.models.programs.loop_runs import DrawnRun, ObservedInLoopError
from pyro_ksd.models.programs.loop_scoring import LoopScoring
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.models.repeated_runs import check_goes_on
from pyro_ksd.models.session_state import isolated, random_states, unvalidated
from pyro_ksd.sequences.container import Sequences

_LOOKS = 20  # forward runs in which the sites of a program are looked for
_LOOKED_AT = 3  # forward runs after which the random states are compared
_MANY = 300  # sequences from which on it is faster to draw them at once, also for the first time
_SHORTEST_RUN = 8  # symbols, of a run that draws many sequences at once


class LoopProgram(ChunkedModel):
    r"""A Pyro program without arguments that makes one sequence, symbol after symbol, in a loop.

    The program samples its symbols at the sites ``x_0, x_1, ...`` and decides at sites ``stop_0, stop_1, ...``
    (Bernoulli, 1 for stop) whether the sequence is over, before or after each symbol. With the observed sites ``o`` of
    the program, among them every ``pyro.factor``,

    .. math:: \log p(x) = \sum_t \log p(x_t \mid \ldots) + \sum_t \log p(\mathrm{stop}_t \mid \ldots)
              + \sum_o \log p(o \mid \ldots)

    For a sequence of ``l`` symbols, a stop site is 0 as long as symbols are missing and 1 once all ``l`` are there.

    * A program that asks for another symbol without having asked whether to stop, or that ends with symbols missing,
      cannot make the sequence: ``-inf``.
    * A program may end by a rule of its own, such as a maximal length. Where it then ends whatever the last stop site
      says, both values of that site are summed over.
    * A program that goes on after a stop site said 1 is an error, since the sequence does not tell its stop sites.

    Global parameters need a value (``parameters=``, ``pyro.condition``, ``pyro.param``, ``pyro.module``). Sample them
    before the loop, so that their own log-probabilities are the same for all sequences. Parameters that the program
    initializes itself, with values that are not random, stay out of the parameter store. ``pyro.poutine.scale`` is
    ignored.

    Sequences of one length run at once under :func:`torch.func.vmap`, and many sequences are drawn at once. A program
    whose control flow depends on the symbols (``.item()``, ``int(x)``, ``if x == 3``) runs once a sequence instead, far
    slower; a warning says so. A program that draws random numbers beside its sites draws one sequence at a time.

    :param program: a callable without arguments; what it returns is ignored.
    :param alphabet_size: the number of symbols ``S``; the sites of the symbols have the values ``0 .. S-1``.
    :param parameters: values of global sample sites and of ``pyro.param`` sites.
    :param symbol_site: the name of the sites of the symbols, with ``{}`` for the step, counted from 0.
    :param stop_site: the name of the stop sites, with ``{}`` for the step.
    :param max_length: drawing a longer sequence is an error.

    >>> import pyro
    >>> import pyro.distributions as dist
    >>> def program():
    ...     probs, stop, t = torch.tensor([0.5, 0.5]), False, 0
    ...     while not stop:
    ...         x = pyro.sample(f"x_{t}", dist.Categorical(probs))
    ...         stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.2))
    ...         probs, t = torch.tensor([[0.9, 0.1], [0.4, 0.6]])[x], t + 1
    >>> model = LoopProgram(program, alphabet_size=2)
    >>> model.log_joint(Sequences.of([[0], [0, 1], []], alphabet=2)).exp()
    tensor([0.1000, 0.0080, 0.0000], dtype=torch.float64)
    """

    def __init__(
        self,
        program: Callable[[], Any],
        alphabet_size: int,
        parameters: Mapping[str, Tensor] | None = None,
        *,
        symbol_site: str = "x_{}",
        stop_site: str = "stop_{}",
        max_length: int = 10_000,
    ) -> None:
        check_function("program", function_of(program))
        alphabet_size = check_number("alphabet_size", alphabet_size, least=1)
        self.max_length = check_number("max_length", max_length, least=1)
        if parameters is not None:
            check_by_name("parameters", parameters)
        super().__init__(alphabet_size)
        self._names = SiteNames(symbol_site, stop_site)
        values = checked_point(parameters, loop_sites(program, self._names), program, ()) if parameters else {}
        self._program = bind(program, values)
        self._scoring = LoopScoring(self._program, alphabet_size, self._names)
        self._drawing = LoopDrawing(self._program, alphabet_size, self._names, self._scoring)

    @property
    def is_costly(self) -> bool:
        """Whether the program was found to branch on its symbols."""
        return not self._scoring.vectorizes

    @computed_once
    def can_draw(self) -> bool:
        """Whether forward runs draw from the program's distribution: no factor was met within a sequence."""
        for seed in range(_LOOKS):
            try:
                with isolated(seed=seed):
                    self._forward()
            except ObservedInLoopError:
                return False
            except ValueError:
                return True  # what is wrong with draws is told by them
        return True

    @property
    def is_normalized(self) -> bool:
        return self.can_draw

    @property
    def defines_lengths(self) -> bool:
        """A program that makes sequences says when they end."""
        return True

    def _evaluate(self, sequences: Sequences) -> Tensor:
        values = torch.empty(len(sequences), dtype=torch.double)
        with isolated():
            for length in sequences.lengths.unique().tolist():
                rows = (sequences.lengths == length).nonzero().squeeze(1)
                values[rows] = self._scoring.of_one_length(sequences.tokens[rows, :length])
        return values

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences, from forward runs of the program, many at once where it allows that.

        The global random states (of torch, numpy, ``random``) stay as they are; without a generator, torch's seeds the
        runs.
        """
        num_sequences = check_number("num_sequences", num_sequences, least=1)
        if generator is not None:
            check_generator(generator)
        with isolated(seed=drawn_seed(generator)):
            rows = self._first(min(num_sequences, _LOOKED_AT))
            left = num_sequences - len(rows)
            many = self._drawn_at_once(left, rows) if left >= _MANY else None
            if many is None:
                with unvalidated():
                    rows += [self._forward() for _ in range(left)]
        few = Sequences.of(rows, self.alphabet_size)
        return few if many is None else Sequences.cat([few, many])

    def _first(self, count: int) -> list[list[int]]:
        """The first draws, one at a time. One of them is validated, and random numbers must change between them."""
        states = [random_states()]
        rows = []
        for run in range(count):
            with unvalidated() if run else nullcontext():
                rows.append(self._forward())
            states.append(random_states())
        check_goes_on(states)
        return rows

    def _drawn_at_once(self, count: int, first: list[list[int]]) -> Sequences | None:
        longest = max(map(len, first))
        # The random states stay where they are: an attempt that fails does not change the plain draws after it.
        seed = following_seed(torch.default_generator)
        horizon = max(longest, _SHORTEST_RUN)
        return self._drawing.at_once(count, horizon=horizon, max_length=self.max_length, seed=seed)

    def _forward(self) -> list[int]:
        run = DrawnRun(self._names, self.alphabet_size, self.max_length)
        with run:
            self._program()
        return run.drawn


def loop_sites(program: Callable[[], Any], names: SiteNames) -> GlobalSites:
    """The global sites of a program, and those of symbols and stops; each run may reach others."""
    found: dict[str, GlobalSite] = {}
    for seed in range(_LOOKS):
        found |= sites_of(program, seed=seed).sites
    local = {name for name in found if names.is_stop(name) or names.symbol_step(name) is not None}
    return GlobalSites(
        {name: site for name, site in found.items() if name not in local},
        dict.fromkeys(local, "it is the site of a symbol or a stop: leave it out"),
    )
