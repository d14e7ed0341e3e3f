# SPDX-License-Identifier: Apache-2.0
"""Pyro programs that make one sequence in a loop."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pyro
import torch
from pyro import settings
from pyro.params.param_store import ParamStoreDict
from pyro.util import get_rng_state, set_rng_state
from torch import Tensor

from pyro_ksd.models.distribution import check_number
from pyro_ksd.models.evaluated import EvaluatedModel
from pyro_ksd.models.isolation import params_kept
from pyro_ksd.models.loop_sites import AccumulatedRun, CheckedRun, ConditionedRun, DrawnRun, Impossible, SiteNames
from pyro_ksd.sequences import Sequences


class LoopProgram(EvaluatedModel):
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

    Global parameters need a value (``pyro.condition``, ``pyro.param``, ``pyro.module``). Sample them before the loop,
    so that their own log-probabilities are the same for all sequences. Parameters that the program initializes itself
    are kept by the model and stay out of the parameter store. ``pyro.poutine.scale`` is ignored.

    Sequences of one length run at once under :func:`torch.func.vmap`. A program whose control flow depends on the
    symbols (``.item()``, ``int(x)``, ``if x == 3``) runs once a sequence instead, far slower; a warning says so.

    :param program: a callable without arguments; what it returns is ignored.
    :param alphabet_size: the number of symbols ``S``; the sites of the symbols have the values ``0 .. S-1``.
    :param symbol_site: the name of the sites of the symbols, with ``{}`` for the step, counted from 0.
    :param stop_site: the name of the stop sites, with ``{}`` for the step.
    :param max_length: drawing a longer sequence is an error.

    >>> import pyro.distributions as dist
    >>> def program():
    ...     law, stop, t = torch.tensor([0.5, 0.5]), False, 0
    ...     while not stop:
    ...         x = pyro.sample(f"x_{t}", dist.Categorical(law))
    ...         stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.2))
    ...         law, t = torch.tensor([[0.9, 0.1], [0.4, 0.6]])[x], t + 1
    >>> model = LoopProgram(program, alphabet_size=2)
    >>> model.log_joint(Sequences.of([[0], [0, 1], []], alphabet=2)).exp()
    tensor([0.1000, 0.0080, 0.0000], dtype=torch.float64)
    """

    def __init__(
        self,
        program: Callable[[], Any],
        alphabet_size: int,
        *,
        symbol_site: str = "x_{}",
        stop_site: str = "stop_{}",
        max_length: int = 10_000,
    ) -> None:
        if not callable(program):
            raise ValueError(f"program: expected a callable without arguments, found {type(program).__name__}")
        check_number("alphabet_size", alphabet_size, least=1)
        check_number("max_length", max_length, least=1)
        super().__init__(alphabet_size)
        self.max_length = max_length
        self._program = program
        self._names = SiteNames(symbol_site, stop_site)
        self._params = ParamStoreDict()
        self._dtypes: dict[str, torch.dtype] = {}
        self._ends_anyway: dict[int, bool] = {}  # by length, for programs that are vectorized
        self._vectorizes = True

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences, from forward runs of the program.

        With a generator, no global random state (torch, numpy, ``random``) is used or changed.
        """
        check_number("num_sequences", num_sequences, least=1)
        with torch.no_grad(), params_kept(), nullcontext() if generator is None else _seeded(generator):
            rows = [self._forward()]
            with _unvalidated():
                rows += [self._forward() for _ in range(num_sequences - 1)]
        return Sequences.of(rows, self.alphabet_size)

    def _forward(self) -> list[int]:
        run = DrawnRun(self._names, self._params, self.alphabet_size, self.max_length)
        with run:
            self._program()
        return run.drawn

    def _evaluate(self, sequences: Sequences) -> Tensor:
        values = torch.empty(len(sequences), dtype=torch.double, device=sequences.device)
        with torch.no_grad(), params_kept():
            for length in sequences.lengths.unique().tolist():
                rows = (sequences.lengths == length).nonzero().squeeze(1)
                values[rows] = self._group(sequences.tokens[rows, :length])
        return values

    def _group(self, tokens: Tensor) -> Tensor:
        """``log p``, double ``[B]``, of sequences of one length, long ``[B, l]``."""
        length, expected = tokens.shape[1], None
        if length not in self._ends_anyway:
            expected = self._first_look(tokens[0])
        if not self._vectorizes:
            return self._one_by_one(tokens)
        try:
            values = self._vectorized(tokens)
        except Exception as error:  # whatever vmap cannot do; a mistake of the user's comes again in the plain run
            values = self._one_by_one(tokens)
            self._give_up(str(error))
            return values
        suspect = (~(values < torch.inf)).nonzero().squeeze(1)
        values[suspect] = self._one_by_one(tokens[suspect])
        if expected is not None and not math.isclose(values[0], expected, rel_tol=1e-4, abs_tol=1e-4):
            self._give_up(f"a vectorized run gave log p = {float(values[0]):.6g} where a plain run gave {expected:.6g}")
            return self._one_by_one(tokens)
        return values

    def _give_up(self, reason: str) -> None:
        self._vectorizes = False
        warnings.warn(
            f"the program cannot be vectorized ({reason.splitlines()[0]}); from now on it runs once a sequence, which "
            "is far slower. To vectorize it, use tensors in place of control flow that depends on the symbols: "
            "torch.where(x == 3, a, b) for `if x == 3`, a tensor table[x] for a list or int(x), no x.item()",
            UserWarning,
            stacklevel=2,
        )

    def _first_look(self, tokens: Tensor) -> float:
        """``log p`` of the first sequence of its length, long ``[l]``, with a check of how the program stops."""
        with _unvalidated():  # the checks of the plain run name the site
            value = self._single(tokens)
        with _unvalidated() if value == -math.inf else nullcontext():  # what follows the impossible may be nonsense
            run = self._conditioned(tokens, stop=False)
            anyway = self._ends(run)
            if run.first_stop is not None:
                # A program that heeds no stop before some minimal length is found here, at its first chance to stop.
                self._ends(self._conditioned(tokens[: run.first_stop], stop=True))
        self._ends_anyway[len(tokens)] = anyway
        return value

    def _one_by_one(self, tokens: Tensor) -> Tensor:
        with _unvalidated():
            values = [self._single(row) for row in tokens]
        return torch.tensor(values, dtype=torch.double, device=tokens.device)

    def _single(self, tokens: Tensor) -> float:
        """``log p`` of one sequence, long ``[l]``, by plain runs that check every site."""
        value = self._checked(tokens, stop=True)
        if self._ends(self._conditioned(tokens, stop=False)):
            value = float(np.logaddexp(value, self._checked(tokens, stop=False)))
        return value

    def _checked(self, tokens: Tensor, stop: bool) -> float:
        run = CheckedRun(self._names, self._params, self._dtypes, tokens.unbind(), stop)
        return run.total if self._ends(run) else -math.inf

    def _conditioned(self, tokens: Tensor, stop: bool) -> ConditionedRun:
        return ConditionedRun(self._names, self._params, self._dtypes, tokens.unbind(), stop)

    def _ends(self, run: ConditionedRun) -> bool:
        """Whether the program ends with all symbols of the sequence and no other."""
        with _no_chance(self._params):
            try:
                with run:
                    self._program()
            except Impossible:
                return False
        return run.complete

    def _vectorized(self, tokens: Tensor) -> Tensor:
        values = self._mapped(tokens, stop=True)
        if self._ends_anyway[tokens.shape[1]]:
            values = torch.logaddexp(values, self._mapped(tokens, stop=False))
        return values

    def _mapped(self, tokens: Tensor, stop: bool) -> Tensor:
        """``log p``, double ``[B]``, of sequences ``[B, l]``; NaN where a plain run must find what is wrong."""

        def total(symbols: Tensor) -> Tensor:
            run = AccumulatedRun(
                self._names, self._params, self._dtypes, symbols.unbind(), stop, self.alphabet_size, tokens.device
            )
            with run:
                self._program()
            if not run.complete:
                raise Impossible
            return run.total

        try:
            with _unvalidated():
                return torch.func.vmap(total)(tokens)
        except Impossible:  # the control flow depends on the length alone, or vmap would have refused it
            return tokens.new_full((len(tokens),), -torch.inf, dtype=torch.double)


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Switches off the validation of distributions, which is slow, and data-dependent control flow under vmap."""
    with settings.context(validate_distributions_pyro=False, validate_distributions_torch=False):
        yield


@contextmanager
def _no_chance(params: ParamStoreDict) -> Iterator[None]:
    """Sees to it that a conditioned run draws nothing, except to initialize parameters."""
    state, known = torch.get_rng_state(), len(params)
    try:
        yield
        if len(params) > known:
            state = torch.get_rng_state()
        elif not torch.equal(state, torch.get_rng_state()):
            raise ValueError(
                "the program draws random numbers although all its sites have values, expected the same "
                "log-probability from every run; look for dropout (call .eval() on modules), blocked sites, torch.rand"
            )
    finally:
        torch.set_rng_state(state)


@contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """Seeds all random states by the generator, and restores them."""
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    state = get_rng_state()
    with torch.random.fork_rng():
        try:
            pyro.set_rng_seed(seed)
            yield
        finally:
            set_rng_state(state)
