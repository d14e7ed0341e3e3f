# SPDX-License-Identifier: Apache-2.0
"""Codes of n-grams: numbers whose digits are the codes of the symbols."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LONGEST_CODED = 62
"""The longest n-grams of two symbols that have codes, which are long integers."""


def ngram_code(symbols: Sequence[Tensor], base: int) -> Tensor:
    r""":math:`\sum_j u_j\,\mathrm{base}^{n-1-j}` for n-grams :math:`u`, given symbol by symbol.

    :param symbols: ``n`` long tensors of one shape, each with symbols ``0 .. base-1``.

    >>> ngram_code([torch.tensor([0, 1]), torch.tensor([2, 1])], base=3)
    tensor([2, 4])
    """
    code = symbols[0].clone()
    for symbol in symbols[1:]:
        code.mul_(base).add_(symbol)
    return code


def ngram_symbols(codes: Tensor, length: int, base: int) -> Tensor:
    """The symbols of n-grams, long ``[D, length]``, from their codes, long ``[D]``; undoes :func:`ngram_code`.

    >>> ngram_symbols(torch.tensor([2, 4]), length=2, base=3)
    tensor([[0, 2],
            [1, 1]])
    """
    places = base ** torch.arange(length - 1, -1, -1)
    return codes[:, None] // places % base


def check_codes(base: int, length: int) -> None:
    """Checks that all n-grams of a length have codes.

    >>> check_codes(10**6, 4)
    Traceback (most recent call last):
    ValueError: expected at most 2**62 different runs of 4 symbols, found 1000000 symbols; use shorter runs
    """
    if base**length > 2**LONGEST_CODED:
        most = f"2**{LONGEST_CODED} different runs of {length} symbols"
        raise ValueError(f"expected at most {most}, found {base} symbols; use shorter runs")
