# SPDX-License-Identifier: Apache-2.0
"""What all distributions of sequences share: shapes, validation, sampling and the protocol of the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import torch
from pyro.distributions.torch_distribution import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.edits import Edits, SpliceBlock
from pyro_ksd.sequences import Sequences

PAD = -1
"""The value that fills a padded sequence behind its end."""


class SequenceConstraint(constraints.Constraint):
    """Codes ``0 .. alphabet_size - 1``, then nothing but the padding -1.

    >>> SequenceConstraint(2).check(torch.tensor([[0, 1, -1], [0, -1, 1]]))
    tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, alphabet_size: int) -> None:
        self.alphabet_size = alphabet_size
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Boolean ``[...]`` for values ``[..., T]``."""
        return ~self.violations(value).any(-1)

    def violations(self, value: Tensor) -> Tensor:
        """Boolean ``[..., T]``, true for what is no code, and for codes behind the padding."""
        padding = value == PAD
        code = (value >= 0) & (value < self.alphabet_size) & (value % 1 == 0)
        return (~code & ~padding) | (code & (padding.cumsum(-1) > 0))


class SequenceDistribution(TorchDistribution):
    """Base of the distributions over variable-length sequences of the symbols from 0 to ``S - 1``.

    An event is one padded sequence: a long ``[T]`` tensor, filled with -1 behind the end. Samples have
    ``T = max_length``; :meth:`log_prob` takes any width. Where the law allows longer sequences than ``max_length``, it
    is not truncated: their probabilities are given, and drawing one is an error.

    Batches may be expanded over many sequences (as a plate does) at no cost: the parameters lie flat, one row for
    each member of the batch before any expansion, and ``_rows`` says which row a member of the batch uses.

    Subclasses set their parameters, then call ``super().__init__``.

    >>> from pyro_ksd.examples import random_walk
    >>> walk = random_walk(3, mean_length=2)
    >>> isinstance(walk, SequenceDistribution), walk.batch_shape
    (True, torch.Size([]))
    >>> walk.log_prob(torch.tensor([[0, 1, -1], [0, 1, 2]])).exp()  # the padding -1 stands behind the end
    tensor([0.0416, 0.0104], dtype=torch.float64)
    """

    has_enumerate_support = False

    def __init__(
        self,
        alphabet_size: int,
        max_length: int,
        batch_shape: torch.Size,
        device: torch.device,
        validate_args: bool | None,
    ) -> None:
        check_number("max_length", max_length, least=1)
        self.max_length = max_length
        self._alphabet_size = alphabet_size
        self._own_shape = batch_shape
        self._rows = torch.arange(batch_shape.numel(), device=device).reshape(batch_shape)
        super().__init__(batch_shape, torch.Size([max_length]), validate_args=validate_args)

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self._alphabet_size

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> SequenceConstraint:
        return SequenceConstraint(self.alphabet_size)

    @abstractmethod
    def _log_prob(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """``[R]``, from long ``tokens`` ``[R, T]`` padded with -1 and the rows of the parameters, long ``[R]``."""

    @abstractmethod
    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draws ``shape.numel()`` sequences, long ``[R, T]`` padded with -1; ``shape`` ends with the batch shape."""

    @abstractmethod
    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, ``[E]``; every ``p(x) > 0``."""

    def log_prob(self, value: Tensor) -> Tensor:
        """``log p``, of shape ``[...]`` broadcast with the batch shape, of padded sequences, long ``[..., T]``."""
        if self._validate_args:
            self._validate_sample(value)
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        tokens = value.expand(shape + value.shape[-1:]).reshape(shape.numel(), value.shape[-1])
        return self._log_prob(tokens.long(), self._flat_rows(shape)).reshape(shape)

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)``, ``[N]``; ``-inf`` where the model calls a sequence impossible."""
        self._check_protocol(sequences)
        return self._log_prob(sequences.padded(PAD), self._flat_rows(torch.Size([len(sequences)])))

    def sample(self, sample_shape: torch.Size = torch.Size()) -> Tensor:  # noqa: B008
        """Padded sequences, long ``sample_shape + batch_shape + [max_length]``."""
        shape = torch.Size(sample_shape) + self.batch_shape
        with torch.no_grad():
            tokens = self._generate(shape, None)
        filled = torch.nn.functional.pad(tokens, (0, self.max_length - tokens.shape[1]), value=PAD)
        return filled.reshape(shape + self.event_shape)

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model."""
        self._check_single()
        with torch.no_grad():
            tokens = self._generate(torch.Size([num_sequences]), generator)
        return Sequences(tokens.clamp(min=0), (tokens != PAD).sum(-1), self.alphabet_size)

    def expand(self, batch_shape: torch.Size, _instance: Any = None) -> Any:
        new = self._get_checked_instance(type(self), _instance)
        new.__dict__.update(self.__dict__)
        new._batch_shape = torch.Size(batch_shape)
        new._rows = self._rows.expand(new._batch_shape)
        return new

    def _flat_rows(self, shape: torch.Size) -> Tensor:
        """The row of the parameters for each member of ``shape``, which ends with the batch shape: long ``[R]``."""
        return self._rows.expand(shape).reshape(-1)

    def _expanded(self, flat: Tensor) -> Tensor:
        """A parameter ``[B, ...]`` as the user knows it: ``batch_shape + [...]``."""
        event = flat.shape[1:]
        return flat.reshape(self._own_shape + event).expand(self.batch_shape + event)

    @classmethod
    def _validating(cls, validate_args: bool | None) -> bool:
        return bool(cls._validate_args if validate_args is None else validate_args)

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor) or value.ndim < 1 or value.is_floating_point():
            found = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"value: expected padded sequences, a long tensor of shape [..., T], found {found}; "
                "code the symbols as integers and fill with -1 behind the end"
            )
        try:
            torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        except RuntimeError:
            raise ValueError(
                f"value: expected the shape [..., T] to broadcast with the batch shape {list(self.batch_shape)}, found "
                f"{list(value.shape)}; give one sequence for each member of the batch"
            ) from None
        bad = self.support.violations(value)
        if bad.any():
            index = tuple(bad.nonzero()[0].tolist())
            raise ValueError(
                f"value: expected codes 0..{self.alphabet_size - 1}, then only the padding -1, found "
                f"{int(value[index])} at index {list(index)}; mend the sequence, or use a model of a larger alphabet"
            )

    def _check_single(self) -> None:
        if self.batch_shape:
            raise ValueError(
                f"expected one model (batch_shape ()), found a batch of models of shape {tuple(self.batch_shape)}; "
                "check one member of the batch at a time"
            )

    def _check_protocol(self, sequences: Sequences) -> None:
        self._check_single()
        if sequences.alphabet_size != self.alphabet_size:
            raise ValueError(
                f"expected sequences over the model's {self.alphabet_size} symbols, found an alphabet of "
                f"{sequences.alphabet_size}; state it in Sequences.of(data, alphabet=...)"
            )


def align(**parameters: tuple[Tensor, int]) -> tuple[torch.Size, list[Tensor]]:
    """The common batch shape of parameters, and each as ``[B, ...]`` in their common dtype.

    :param parameters: name to tensor and the number of its last dimensions that are no batch.
    """
    batches = {name: tensor.shape[: tensor.ndim - dims] for name, (tensor, dims) in parameters.items()}
    batch = common_batch(batches)
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor, _ in parameters.values()))
    events = {name: tensor.shape[tensor.ndim - dims :] for name, (tensor, dims) in parameters.items()}
    return batch, [
        tensor.to(dtype).expand(batch + events[name]).reshape((batch.numel(), *events[name]))
        for name, (tensor, _) in parameters.items()
    ]


def common_batch(batches: dict[str, torch.Size]) -> torch.Size:
    """The shape to which the batch shapes of all parameters broadcast."""
    try:
        return torch.Size(torch.broadcast_shapes(*batches.values()))
    except RuntimeError:
        found = ", ".join(f"{name} {list(shape)}" for name, shape in batches.items())
        raise ValueError(
            f"expected batch shapes that broadcast, found {found}; give all parameters the same leading dimensions"
        ) from None


def check_number(name: str, number: int, least: int) -> None:
    """Checks that an option is an integer of at least the given size."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, found {number!r}")


def check_shape(name: str, tensor: Tensor, *sizes: int) -> None:
    """Checks that a parameter is floating-point and that its last dimensions have the given sizes."""
    shape = tuple(tensor.shape[max(tensor.ndim - len(sizes), 0) :])
    if not tensor.is_floating_point() or shape != sizes:
        raise ValueError(
            f"{name}: expected a floating-point tensor of shape {['...', *sizes]}, found {tensor.dtype} "
            f"{list(tensor.shape)}".replace("'", "")
        )


def last_size(name: str, tensor: Tensor) -> int:
    """The size of a parameter's last dimension, which must be there."""
    if tensor.ndim < 1 or tensor.shape[-1] < 1:
        raise ValueError(
            f"{name}: expected at least one dimension, one entry for each symbol or state, found {list(tensor.shape)}"
        )
    return tensor.shape[-1]


def check_probabilities(name: str, tensor: Tensor, where: Tensor | None = None, sums: bool = True) -> None:
    """Checks probabilities ``[..., n]``.

    :param where: boolean ``[...]``, the rows to check; ``None`` for all.
    :param sums: whether each row must sum to 1.
    """
    bad = ~((tensor >= 0) & (tensor <= 1))
    if where is not None:
        bad &= where[..., None]
    if bad.any():
        index = bad.nonzero()[0].tolist()
        raise ValueError(f"{name}: expected probabilities in 0..1, found {tensor[tuple(index)]:.6g} at index {index}")
    if not sums:
        return
    total = tensor.sum(-1)
    off = (total - 1).abs() > 1e-6
    if where is not None:
        off &= where
    if off.any():
        index = off.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: expected probabilities that sum to 1 along the last dimension, found the sum "
            f"{total[tuple(index)]:.6g} at index {index}; divide each row by its sum"
        )


def safe_log(x: Tensor) -> Tensor:
    """``log x`` with exactly ``-inf`` at 0, where the gradient is 0 and not NaN."""
    positive = x > 0
    return x.where(positive, torch.ones_like(x)).log().masked_fill(~positive, -torch.inf)


def subtract(new: Tensor, old: Tensor) -> Tensor:
    """``new - old`` for log-probabilities; ``-inf`` wherever ``new`` is, also against an impossible ``old``."""
    return torch.where(new == -torch.inf, new, new - old)


def cumulative(probs: Tensor) -> Tensor:
    """Cumulated probabilities along the last dimension, in double precision and with an exact 1 at the end."""
    total = probs.double().cumsum(-1)
    return total / total[..., -1:]


def pick(cumulated: Tensor, generator: torch.Generator | None) -> Tensor:
    """One index a row, long ``[R]``, from cumulated probabilities ``[R, n]``; never one of probability 0."""
    uniform = torch.rand(len(cumulated), 1, dtype=torch.double, device=cumulated.device, generator=generator)
    return (cumulated <= uniform).sum(-1)


def grow(count: int, max_length: int, device: torch.device, step: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Sequences made symbol after symbol, long ``[count, T]`` padded with -1.

    :param step: takes the position and the rows ``[A]`` that are alive, gives their symbols ``[A]``, -1 for the end.
    """
    alive = torch.arange(count, device=device)
    columns: list[Tensor] = []
    for position in range(max_length + 1):
        symbol = step(position, alive)
        going = symbol != PAD
        alive, symbol = alive[going], symbol[going]
        if not len(alive):
            return torch.stack(columns, 1) if columns else alive.new_empty(count, 0)
        columns.append(alive.new_full((count,), PAD).index_copy_(0, alive, symbol))
    raise ValueError(
        f"{len(alive)} of {count} sequences were still alive at max_length={max_length}; raise max_length, or make the "
        "sequences shorter"
    )


def pieces(edits: Edits, size: int) -> Iterator[SpliceBlock]:
    """The blocks of the edits in order, cut into pieces of at most ``size`` splices, which bounds the memory."""
    for block in edits.blocks:
        for cut in range(0, len(block), size):
            part = slice(cut, cut + size)
            yield SpliceBlock(block.owner[part], block.start[part], block.removed, block.inserted[part])
