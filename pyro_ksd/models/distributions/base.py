# SPDX-License-Identifier: Apache-2.0
"""The base of the distributions over sequences: Pyro's shapes and validation, and the methods of a model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from pyro.distributions.torch_distribution import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.common.option_checks import check_flag, check_instance, check_number
from pyro_ksd.common.random_numbers import check_generator
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel, check_alphabet_size
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences


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


class SequenceDistribution(TorchDistribution, SequenceModel):
    """Base of the distributions over variable-length sequences of the symbols from 0 to ``S - 1``.

    An event is one padded sequence: a long ``[T]`` tensor, filled with -1 after the end. Samples have
    ``T = max_length``; :meth:`log_prob` takes any width. Where longer sequences than ``max_length`` are
    possible, the distribution is not truncated: they keep their probabilities, and drawing one is an error.

    Batches may be expanded over many sequences (as a plate does) at no cost: the parameters lie flat, one row for
    each member of the batch before any expansion, and ``_rows`` says which row a member of the batch uses.

    Parameters are tensors, arrays of numpy, or nested lists. :meth:`log_prob` is differentiable in them; the methods of
    a model, :meth:`log_joint`, :meth:`log_ratio` and :meth:`draw`, track no gradients.

    :param dtype: of the parameters, which :meth:`log_prob` has as well; left out, that of ``_log_prob``.

    Subclasses set their parameters, then call ``super().__init__``.

    >>> from pyro_ksd.examples import random_walk
    >>> walk = random_walk(3, mean_length=2)
    >>> isinstance(walk, SequenceDistribution), walk.batch_shape
    (True, torch.Size([]))
    >>> walk.log_prob(torch.tensor([[0, 1, -1], [0, 1, 2]])).exp()  # the padding -1 stands after the end
    tensor([0.0416, 0.0104], dtype=torch.float64)
    """

    has_enumerate_support = False

    def __init__(
        self,
        alphabet_size: int,
        max_length: int,
        batch_shape: torch.Size,
        validate_args: bool | None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._dtype = dtype
        self.max_length = max_length = check_number("max_length", max_length, least=1)
        self._alphabet_size = alphabet_size
        self._own_shape = batch_shape
        self._rows = torch.arange(batch_shape.numel()).reshape(batch_shape)
        super().__init__(batch_shape, torch.Size([max_length]), validate_args=validate_args)

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self._alphabet_size

    @property
    def defines_lengths(self) -> bool:
        return True

    @property
    def is_threadsafe(self) -> bool:
        return True

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> SequenceConstraint:
        return SequenceConstraint(self.alphabet_size)

    @abstractmethod
    def _log_prob(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """Double ``[R]``, from long ``tokens`` ``[R, T]`` padded with -1 and the rows of the parameters ``[R]``."""

    @abstractmethod
    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draws ``shape.numel()`` sequences, long ``[R, T]`` padded with -1; ``shape`` ends with the batch shape."""

    @abstractmethod
    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, double ``[E]``; every ``p(x) > 0``."""

    def log_prob(self, value: Tensor) -> Tensor:
        """``log p``, of shape ``[...]`` broadcast with the batch shape, of padded sequences, long ``[..., T]``.

        It has the dtype of the parameters, but is summed in double precision.
        """
        if self._validate_args:
            self._validate_sample(value)
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        tokens = value.expand(shape + value.shape[-1:]).reshape(shape.numel(), value.shape[-1])
        values = self._log_prob(tokens.long(), self._flat_rows(shape)).reshape(shape)
        return values if self._dtype is None else values.to(self._dtype)

    @torch.no_grad()
    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)``, double ``[N]``; ``-inf`` where the model calls a sequence impossible. Without gradients."""
        self._check_one_model_for(sequences)
        return self._log_prob(sequences.padded(PAD), self._flat_rows(torch.Size([len(sequences)])))

    def sample(self, sample_shape: torch.Size = torch.Size()) -> Tensor:  # noqa: B008
        """Padded sequences, long ``sample_shape + batch_shape + [max_length]``."""
        _check_sizes(sample_shape)
        shape = torch.Size(sample_shape) + self.batch_shape
        with torch.no_grad():
            tokens = self._generate(shape, None)
        filled = torch.nn.functional.pad(tokens, (0, self.max_length - tokens.shape[1]), value=PAD)
        return filled.reshape(shape + self.event_shape)

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model."""
        self._check_single()
        num_sequences = check_number("num_sequences", num_sequences, least=1)
        if generator is not None:
            check_generator(generator)
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
        if validate_args is not None:
            check_flag("validate_args", validate_args)
        return bool(cls._validate_args if validate_args is None else validate_args)

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor) or value.ndim < 1 or value.is_floating_point():
            found = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"value: expected padded sequences, a long tensor of shape [..., T], found {found}; "
                "code the symbols as integers and fill with -1 after the end"
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
                f"{int(value[index])} at index {list(index)}; fix the sequence, or use a model of a larger alphabet"
            )

    def _check_single(self) -> None:
        if self.batch_shape:
            raise ValueError(
                f"expected one model (batch_shape ()), found a batch of models of shape {tuple(self.batch_shape)}; "
                "check one member of the batch at a time"
            )

    def _check_one_model_for(self, sequences: Sequences) -> None:
        self._check_single()
        check_alphabet_size(self, sequences)


def _check_sizes(sample_shape: object) -> None:
    """Checks the shape of a sample."""
    check_instance("sample_shape", sample_shape, (tuple, list), "a torch.Size, such as torch.Size([3])")
    for size in sample_shape:  # type: ignore[attr-defined]
        check_number("sample_shape", size, least=0)
