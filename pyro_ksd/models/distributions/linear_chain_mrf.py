# SPDX-License-Identifier: Apache-2.0
"""Markov random fields on a chain, with a maximal length."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.utils import lazy_property

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.distributions.local import LocalSequence
from pyro_ksd.models.distributions.parameter_checks import Numbers, align, as_parameter, check_shape, last_size
from pyro_ksd.models.distributions.sampling import PAD, cumulative, grow, pick


class LinearChainMRF(LocalSequence):
    r"""A Markov random field on a chain of up to ``M`` symbols, exactly normalized.

    .. math:: \log p(x) = \sum_{i=0}^{\ell-1} u(x_i) + \sum_{i=1}^{\ell-1} w(x_{i-1}, x_i) + g(\ell) - \log Z

    The normalizer is a sum over all sequences of all lengths, by transfer matrices in log space. Log-potentials of
    ``-inf`` forbid a symbol, a pair or a length; longer sequences than ``M`` have probability 0.

    :param pairwise: ``[*, S, S]``, the log-potentials :math:`w`.
    :param unary: ``[*, S]``, the log-potentials :math:`u`; 0 if left out.
    :param length: ``[*, M + 1]``, the log-potentials :math:`g` of the lengths ``0 .. M``. Left out, it is 0 for
        ``1 .. M``, and the empty sequence is impossible.
    :param max_length: ``M``; needed only without ``length``.

    >>> import torch
    >>> model = LinearChainMRF(torch.tensor([[0.0, -torch.inf], [0.0, 0.0]]), max_length=2)
    >>> model.log_normalizer.exp()  # 0, 1, 00, 10, 11
    tensor(5.)
    >>> model.log_prob(torch.tensor([[0, -1], [0, 1], [-1, -1]])).exp()
    tensor([0.2000, 0.0000, 0.0000])
    """

    arg_constraints = {  # noqa: RUF012
        "pairwise": constraints.independent(constraints.less_than(torch.inf), 2),
        "unary": constraints.independent(constraints.less_than(torch.inf), 1),
        "length": constraints.independent(constraints.less_than(torch.inf), 1),
    }

    def __init__(
        self,
        pairwise: Numbers,
        unary: Numbers | None = None,
        length: Numbers | None = None,
        *,
        max_length: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        pairwise = as_parameter("pairwise", pairwise)
        size = last_size("pairwise", pairwise)
        check_shape("pairwise", pairwise, size, size)
        unary = pairwise.new_zeros(size) if unary is None else as_parameter("unary", unary)
        check_shape("unary", unary, size)
        if max_length is not None:
            check_number("max_length", max_length, least=1)
        if length is None:
            if max_length is None:
                raise ValueError("expected max_length or the log-potentials length, found neither; state max_length=M")
            length = pairwise.new_zeros(max_length + 1)
            length[0] = -torch.inf
        length = as_parameter("length", length)
        check_shape("length", length, last_size("length", length) if max_length is None else max_length + 1)
        if self._validating(validate_args):
            for name, tensor in (("pairwise", pairwise), ("unary", unary), ("length", length)):
                _check_potentials(name, tensor)
        batch_shape, (self._pairwise, self._unary, self._length) = align(
            pairwise=(pairwise, 2), unary=(unary, 1), length=(length, 1)
        )
        self._transfer = torch.nn.functional.pad(self._pairwise.double(), (0, 0, 0, 1)) + self._unary[:, None].double()
        factors = torch.nn.functional.pad(self._transfer, (0, 1))
        super().__init__(factors, length.shape[-1] - 1, batch_shape, validate_args, self._pairwise.dtype)

    @property
    def pairwise(self) -> Tensor:
        """``batch_shape + [S, S]``."""
        return self._expanded(self._pairwise)

    @property
    def unary(self) -> Tensor:
        """``batch_shape + [S]``."""
        return self._expanded(self._unary)

    @property
    def length(self) -> Tensor:
        """``batch_shape + [M + 1]``."""
        return self._expanded(self._length)

    @property
    def log_normalizer(self) -> Tensor:
        """The logarithm of :math:`Z`, of the batch shape."""
        return self._expanded(self._log_normalizer).to(self._dtype)

    @lazy_property
    def _messages(self) -> Tensor:
        """The log-weight of the ``r`` symbols behind a symbol, ``[B, M, S]`` over ``r`` and the symbol."""
        messages = [torch.zeros_like(self._unary, dtype=torch.double)]
        for _ in range(self.max_length - 1):
            messages.append((self._transfer[:, :-1] + messages[-1][:, None]).logsumexp(-1))
        return torch.stack(messages, 1)

    @lazy_property
    def _length_weights(self) -> Tensor:
        """The log-weight of all sequences of each length, ``[B, M + 1]``."""
        by_length = (self._unary[:, None] + self._messages).logsumexp(-1)
        return torch.nn.functional.pad(by_length, (1, 0)) + self._length

    @lazy_property
    def _log_normalizer(self) -> Tensor:
        log_normalizer = self._length_weights.logsumexp(-1)
        if self._validate_args and (log_normalizer == -torch.inf).any():
            raise ValueError(
                "expected at least one possible sequence, found log-potentials that forbid all; "
                "allow a length together with symbols and pairs for it"
            )
        return log_normalizer

    @torch.no_grad()
    def length_distribution(self) -> LengthDistribution | None:
        return LengthDistribution.of(self._length_weights[0].softmax(-1)) if len(self._table) == 1 else None

    def _length_terms(self, longest: int) -> Tensor:
        beyond = longest + 1 - self._length.shape[-1]
        return torch.nn.functional.pad(self._length.double(), (0, max(beyond, 0)), value=-torch.inf)

    def _log_prob(self, tokens: Tensor, rows: Tensor) -> Tensor:
        return super()._log_prob(tokens, rows) - self._log_normalizer[rows]

    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        rows = self._flat_rows(shape)
        weights = self._length_weights - self._log_normalizer[:, None]
        lengths = pick(cumulative(weights.exp())[rows], generator)
        before = torch.full_like(rows, self.alphabet_size)

        def step(position: int, alive: Tensor) -> Tensor:
            row = rows[alive]
            behind = lengths[alive] - position - 1
            weights = self._transfer[row, before[alive]] + self._messages[row, behind.clamp(min=0)]
            before[alive] = pick(cumulative(weights.softmax(-1)), generator)
            return before[alive].masked_fill(behind < 0, PAD)

        return grow(len(rows), self.max_length, step)


def _check_potentials(name: str, tensor: Tensor) -> None:
    bad = ~(tensor < torch.inf)
    if bad.any():
        index = bad.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: expected log-potentials that are finite or -inf, found {tensor[tuple(index)]:.6g} "
            f"at index {index}"
        )
