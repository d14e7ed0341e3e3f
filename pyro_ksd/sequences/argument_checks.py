# SPDX-License-Identifier: Apache-2.0
"""Checks of the sequences that functions of the engine take."""

from __future__ import annotations

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.sequences.container import Sequences


def check_sequences(name: str, value: object) -> None:
    """Checks that an argument is :class:`~pyro_ksd.sequences.Sequences`; the engine reads no other data.

    >>> check_sequences("start", ["ab", "b"])
    Traceback (most recent call last):
    ValueError: start: expected Sequences, made by Sequences.of(data), found ['ab', 'b']
    """
    check_instance(name, value, Sequences, "Sequences, made by Sequences.of(data)")


def check_pair(x: object, y: object) -> None:
    """Checks that two arguments are sequences whose codes stand for the same symbols.

    >>> check_pair(Sequences.of(["ab"]), Sequences.of(["abc"]))
    Traceback (most recent call last):
    ValueError: x and y: expected sequences over one alphabet, found two different ones (of 2 and 3 symbols); give ...
    """
    check_sequences("x", x)
    check_sequences("y", y)
    if isinstance(x, Sequences) and isinstance(y, Sequences) and x.alphabet != y.alphabet:
        raise ValueError(
            f"x and y: expected sequences over one alphabet, found two different ones (of {x.alphabet_size} and "
            f"{y.alphabet_size} symbols); give both the same alphabet= in Sequences.of"
        )


def unknown_symbols(sequences: Sequences, known: int) -> str:
    """Which symbols of sequences a model of fewer symbols may not know, and where they are, as a part of an error.

    These are the last codes, or, where symbols have names, white space and then the rarest of them.

    :param known: how many symbols the model knows.

    >>> unknown_symbols(Sequences.of(["ACGT", "GGTTA", "CANA"]), 4)
    "perhaps it does not know 'N' (once, first in sequence 2)"
    """
    counts = sequences.tokens[sequences.mask].bincount(minlength=sequences.alphabet_size).tolist()
    names = [str(symbol) for symbol in sequences.symbols]
    codes = sorted(range(len(counts)), reverse=True)
    if not isinstance(sequences.alphabet, int):
        codes.sort(key=lambda code: (not names[code].isspace(), counts[code]))
    codes = codes[: len(counts) - known]
    shown = [_shown_symbol(sequences, code, counts[code]) for code in codes[:_SHOWN]]
    more = ", ..." if len(codes) > _SHOWN else ""
    ends = any(names[code].isspace() for code in codes)
    fix = "; if that is the end of a line, read the lines with line.strip()" if ends else ""
    return f"perhaps it does not know {', '.join(shown)}{more}{fix}"


_SHOWN = 3  # symbols in a message


def _shown_symbol(sequences: Sequences, code: int, count: int) -> str:
    symbol = repr(sequences.symbols[code])
    if not count:
        return f"{symbol} (in no sequence)"
    row = int(((sequences.tokens == code) & sequences.mask).any(1).nonzero()[0])
    return f"{symbol} ({'once' if count == 1 else f'{count} times'}, first in sequence {row})"
