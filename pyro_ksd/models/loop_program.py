# SPDX-License-Identifier: Apache-2.0
"""Pyro programs that make one sequence in a loop."""

from __future__ import annotations

import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pyro
import torch
from pyro import settings
from pyro.distributions.util import scale_and_mask
from pyro.params.param_store import ParamStoreDict
from pyro.poutine.messenger import Messenger
from pyro.poutine.util import site_is_subsample
from pyro.util import get_rng_state, set_rng_state
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.models.distribution import check_number
from pyro_ksd.models.evaluated import EvaluatedModel
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
        self._names = _Names(symbol_site, stop_site)
        self._params = ParamStoreDict()
        self._dtypes: dict[str, torch.dtype] = {}
        self._ends_anyway: dict[int, bool] = {}  # by length, for programs that are vectorized
        self._vectorizes = True

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences, from forward runs of the program.

        With a generator, no global random state (torch, numpy, ``random``) is used or changed.
        """
        check_number("num_sequences", num_sequences, least=1)
        with torch.no_grad(), _params_kept(), nullcontext() if generator is None else _seeded(generator):
            rows = [self._forward()]
            with _unvalidated():
                rows += [self._forward() for _ in range(num_sequences - 1)]
        return Sequences.of(rows, self.alphabet_size)

    def _forward(self) -> list[int]:
        run = _Drawn(self._names, self._params, self.alphabet_size, self.max_length)
        with run:
            self._program()
        return run.drawn

    def _evaluate(self, sequences: Sequences) -> Tensor:
        values = torch.empty(len(sequences), dtype=torch.double, device=sequences.device)
        with torch.no_grad(), _params_kept():
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
        run = _Checked(self._names, self._params, self._dtypes, tokens.unbind(), stop)
        return run.total if self._ends(run) else -math.inf

    def _conditioned(self, tokens: Tensor, stop: bool) -> _Conditioned:
        return _Conditioned(self._names, self._params, self._dtypes, tokens.unbind(), stop)

    def _ends(self, run: _Conditioned) -> bool:
        """Whether the program ends with all symbols of the sequence and no other."""
        with _no_chance(self._params):
            try:
                with run:
                    self._program()
            except _Impossible:
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
            run = _Accumulated(
                self._names, self._params, self._dtypes, symbols.unbind(), stop, self.alphabet_size, tokens.device
            )
            with run:
                self._program()
            if not run.complete:
                raise _Impossible
            return run.total

        try:
            with _unvalidated():
                return torch.func.vmap(total)(tokens)
        except _Impossible:  # the control flow depends on the length alone, or vmap would have refused it
            return tokens.new_full((len(tokens),), -torch.inf, dtype=torch.double)


class _Impossible(Exception):  # noqa: N818
    """The program cannot make the sequence."""


class _Names:
    """Tells the sites of symbols and stops by their names."""

    def __init__(self, symbol_site: str, stop_site: str) -> None:
        for option, template in (("symbol_site", symbol_site), ("stop_site", stop_site)):
            if not isinstance(template, str) or template.count("{}") != 1:
                raise ValueError(f"{option}: expected a name with one {{}} for the step, found {template!r}")
        if symbol_site == stop_site:
            raise ValueError(f"expected different names for symbols and stops, found {symbol_site!r} for both")
        self.symbol_site = symbol_site
        self._symbol, self._stop = (
            re.compile(r"(\d+)".join(map(re.escape, template.split("{}")))) for template in (symbol_site, stop_site)
        )

    def symbol_step(self, name: str) -> int | None:
        """The step of a symbol's site, ``None`` for other sites."""
        match = self._symbol.fullmatch(name)
        return int(match[1]) if match else None

    def is_stop(self, name: str) -> bool:
        return self._stop.fullmatch(name) is not None


class _Sites(Messenger, ABC):
    """Runs a program and sorts its sites; what becomes of symbols, stops and others is up to the subclasses."""

    def __init__(self, names: _Names, params: ParamStoreDict) -> None:
        super().__init__()
        self._names = names
        self._params = params
        self.count = 0  # symbols so far
        self.first_stop: int | None = None  # symbols before the first stop site
        self.ended: str | None = None  # the site at which the sequence was over

    @abstractmethod
    def _symbol(self, msg: Any) -> None:
        """The site of the next symbol."""

    @abstractmethod
    def _stop(self, msg: Any) -> None:
        """A stop site."""

    @abstractmethod
    def _observed(self, msg: Any) -> None:
        """Another site, which has a value."""

    def _pyro_param(self, msg: Any) -> None:
        if msg["name"] not in pyro.get_param_store():
            msg["fn"] = self._params.get_param

    def _pyro_sample(self, msg: Any) -> None:
        msg["stop"] = True  # handlers around a call of the model are no part of the program
        step = self._names.symbol_step(msg["name"])
        if step is None and not self._names.is_stop(msg["name"]):
            self._other(msg)
            return
        _check_free(msg)
        if self.ended is not None:
            self._go_on(msg["name"])
        if step is None:
            self.first_stop = self.count if self.first_stop is None else self.first_stop
            self._stop(msg)
        else:
            self._check_order(msg["name"], step)
            self._symbol(msg)
            self.count += 1

    def _other(self, msg: Any) -> None:
        if site_is_subsample(msg) and (msg["value"] is not None or msg["fn"].subsample_size in (None, msg["fn"].size)):
            return  # a plate
        if msg["value"] is None:
            raise ValueError(
                f"site {msg['name']!r} has no value; give it one (parameters=...) or marginalize it; if it is a symbol "
                "or a stop, give its name in symbol_site= or stop_site="
            )
        self._observed(msg)

    def _check_order(self, name: str, step: int) -> None:
        if step != self.count:
            expected = self._names.symbol_site.format(self.count)
            raise ValueError(
                f"expected the site {expected!r} for the next symbol, found {name!r}; count the symbols from 0"
            )

    def _go_on(self, name: str) -> None:
        raise ValueError(
            f"the program goes on to site {name!r} after {self.ended!r} said stop, expected the end of the sequence; "
            "sample a stop site only where the program heeds it, and after the last symbol"
        )


class _Conditioned(_Sites):
    """A run that makes a given sequence.

    :param dtypes: the dtypes of the samples by site, to be filled.
    :param tokens: the symbols, each a long tensor without dimensions.
    :param stop: what the last stop site says: ``True``, except to see whether the program heeds it.
    """

    def __init__(
        self,
        names: _Names,
        params: ParamStoreDict,
        dtypes: dict[str, torch.dtype],
        tokens: Sequence[Tensor],
        stop: bool,
    ) -> None:
        super().__init__(names, params)
        self._dtypes = dtypes
        self._tokens = tokens
        self._last = stop

    @property
    def complete(self) -> bool:
        """Whether the run has made the sequence, and, if the last stop site is to say no, had such a site."""
        return self.count == len(self._tokens) and (self._last or self.ended is not None)

    def _symbol(self, msg: Any) -> None:
        if self.count == len(self._tokens):
            raise _Impossible
        self._set(msg, self._tokens[self.count])
        self._score_symbol(msg)

    def _stop(self, msg: Any) -> None:
        over = self.count == len(self._tokens)
        self.ended = msg["name"] if over else None
        self._set(msg, torch.tensor(float(over and self._last)))
        self._score(msg)

    def _observed(self, msg: Any) -> None:
        self._score(msg)

    def _go_on(self, name: str) -> None:
        if self._last:
            super()._go_on(name)
        raise _Impossible

    def _set(self, msg: Any, value: Tensor) -> None:
        name, fn = msg["name"], msg["fn"]
        if name not in self._dtypes:
            self._dtypes[name] = _sample_dtype(fn, value.dtype)
        value, shape = value.to(self._dtypes[name]), fn.shape()
        msg["value"] = value.expand(shape) if shape else value
        msg["is_observed"] = True

    def _score_symbol(self, msg: Any) -> None:
        self._score(msg)

    def _score(self, msg: Any) -> None:
        """Nothing: the run only shows how the program stops."""


class _Checked(_Conditioned):
    """A plain run that sums the log-probabilities and checks each of them."""

    total = 0.0

    def _score_symbol(self, msg: Any) -> None:
        support = _support(msg["fn"])
        if support is not None and not support.check(msg["value"]).all():
            bounds = _bounds(support)
            expected = str(support) if bounds is None else f"{bounds[0]}..{bounds[1]}"
            raise ValueError(
                f"site {msg['name']!r}: found the symbol {int(msg['value'])} in {self._sequence}, expected {expected}, "
                "the support of its distribution; let it cover the alphabet, with a probability of 0 for symbols that "
                "cannot occur, or mend alphabet_size="
            )
        self._score(msg)

    def _score(self, msg: Any) -> None:
        value = float(_log_prob(msg))
        if value == -math.inf:
            raise _Impossible
        if not value < math.inf:
            raise ValueError(
                f"site {msg['name']!r}: expected a log-probability, found {value} for {self._sequence}; mend the "
                "parameters of its distribution"
            )
        self.total += value

    @property
    def _sequence(self) -> str:
        codes = [str(int(token)) for token in self._tokens[:20]]
        more = ", ..." if len(self._tokens) > 20 else ""
        return f"the sequence [{', '.join(codes)}{more}]"


class _Accumulated(_Conditioned):
    """A run under vmap that sums the log-probabilities; symbols outside of the support make the sum not a number."""

    def __init__(
        self,
        names: _Names,
        params: ParamStoreDict,
        dtypes: dict[str, torch.dtype],
        tokens: Sequence[Tensor],
        stop: bool,
        alphabet_size: int,
        device: torch.device,
    ) -> None:
        super().__init__(names, params, dtypes, tokens, stop)
        self._alphabet_size = alphabet_size
        self.total = torch.zeros((), dtype=torch.double, device=device)

    def _score_symbol(self, msg: Any) -> None:
        support = _support(msg["fn"])
        bounds = _bounds(support)
        covered = bounds is not None and bounds[0] <= 0 and bounds[1] >= self._alphabet_size - 1
        if support is not None and not covered:
            self.total = torch.where(support.check(msg["value"]).all(), self.total, torch.nan)
        self._score(msg)

    def _score(self, msg: Any) -> None:
        self.total = self.total + _log_prob(msg)


class _Drawn(_Sites):
    """A forward run that keeps the symbols."""

    def __init__(self, names: _Names, params: ParamStoreDict, alphabet_size: int, max_length: int) -> None:
        super().__init__(names, params)
        self._alphabet_size = alphabet_size
        self._max_length = max_length
        self.drawn: list[int] = []

    def _symbol(self, msg: Any) -> None:
        if self.count == self._max_length:
            raise ValueError(
                f"the program was still going at max_length={self._max_length}, expected a shorter sequence; raise "
                "max_length, or make the sequences shorter"
            )

    def _stop(self, msg: Any) -> None:
        """Nothing: the program draws it."""

    def _observed(self, msg: Any) -> None:
        begun = self.count > 0 or self.first_stop is not None
        if begun and not msg["infer"].get("_deterministic"):
            raise ValueError(
                f"site {msg['name']!r}: found an observed site or factor within the sequence, which changes the law of "
                "the sequences, so forward runs do not draw from it; give a sampler of your own. If it is a global "
                "parameter, sample it before the loop"
            )

    def _pyro_post_sample(self, msg: Any) -> None:
        name, value = msg["name"], msg["value"]
        if self._names.symbol_step(name) is not None:
            if value.item() not in range(self._alphabet_size):
                raise ValueError(
                    f"site {name!r}: found the symbol {value.item()}, expected 0..{self._alphabet_size - 1}; mend "
                    "alphabet_size= or the program"
                )
            self.drawn.append(int(value))
        elif self._names.is_stop(name) and value:
            self.ended = name


def _check_free(msg: Any) -> None:
    """Checks that a symbol or stop is a single value that the program leaves open."""
    if msg["value"] is not None:
        raise ValueError(f"site {msg['name']!r}: found an observed site, expected one without a value; leave out obs=")
    shape = msg["fn"].shape()
    if shape.numel() != 1:
        raise ValueError(
            f"site {msg['name']!r}: found values of shape {list(shape)}, expected a single value; the program makes "
            "one sequence, outside of any plate"
        )


def _log_prob(msg: Any) -> Tensor:
    log_prob = msg["fn"].log_prob(msg["value"], *msg["args"], **msg["kwargs"])
    masked: Tensor = scale_and_mask(log_prob, mask=msg["mask"])
    return masked.sum() if masked.ndim else masked


def _sample_dtype(fn: Any, default: torch.dtype) -> torch.dtype:
    with torch.random.fork_rng(_cuda_devices()):
        try:
            return fn.sample().dtype  # type: ignore[no-any-return]
        except (RuntimeError, ValueError):  # wrong parameters, which show in the log-probability
            return default


def _support(fn: Any) -> constraints.Constraint | None:
    try:
        return fn.support  # type: ignore[no-any-return]
    except NotImplementedError:
        return None


def _bounds(support: constraints.Constraint | None) -> tuple[int, int] | None:
    """The smallest and the largest value of a support that is known without looking at tensors."""
    if not isinstance(support, constraints.integer_interval):
        return None
    bounds = support.lower_bound, support.upper_bound
    return bounds if all(isinstance(bound, int) for bound in bounds) else None


def _cuda_devices() -> list[int]:
    return list(range(torch.cuda.device_count()))


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Switches off the validation of distributions, which is slow, and data-dependent control flow under vmap."""
    with settings.context(validate_distributions_pyro=False, validate_distributions_torch=False):
        yield


@contextmanager
def _params_kept() -> Iterator[None]:
    """Takes out of the parameter store what modules put in there themselves."""
    store = pyro.get_param_store()
    before = set(store.keys())
    try:
        yield
    finally:
        for name in set(store.keys()) - before:
            del store[name]


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
    with torch.random.fork_rng(_cuda_devices()):
        try:
            pyro.set_rng_seed(seed)
            yield
        finally:
            set_rng_state(state)
