# SPDX-License-Identifier: Apache-2.0
"""Spelling codes: the labels of n-grams, other features and edits, as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def spelled(codes: Sequence[int], symbols: Sequence[str]) -> str:
    """The symbols of an n-gram; with spaces between them, unless each symbol of the alphabet is one letter.

    :param codes: of the symbols, padded with -1; the number of symbols is the code of the end of a sequence, ``$``.

    >>> spelled([1, 2], "abc"), spelled([1, 2, -1], ["AH", "B", "K"]), spelled([0, 3], "abc")
    ('bc', 'B K', 'a$')
    """
    return ("" if are_letters(symbols) else " ").join(spelled_symbols(codes, symbols))


def spelled_symbols(codes: Sequence[int], symbols: Sequence[str]) -> list[str]:
    """The symbols of an n-gram one by one; see :func:`spelled`.

    >>> spelled_symbols([1, 2, -1], ["AH", "B", "K"])
    ['B', 'K']
    """
    known = [*symbols, "$"]
    return [known[code] for code in codes if code >= 0]


def are_letters(symbols: Sequence[str]) -> bool:
    """Whether each symbol is one letter, so that n-grams need no spaces."""
    return all(len(symbol) == 1 for symbol in symbols)


def feature_labels(
    kind: str, name: str, codes: Sequence[int], ngrams: Sequence[Sequence[int]], symbols: Sequence[str]
) -> list[str]:
    """The labels of the features of a view.

    :param kind: what a feature is, see :attr:`pyro_ksd.kernels.Kernel.feature_kind`.
    :param name: what features are called that are not n-grams.
    :param codes: of the features.
    :param ngrams: the codes of the symbols of each feature, as for :func:`spelled`.

    >>> feature_labels("ngram", "", [5], [[1, 2]], "abc"), feature_labels("length", "length", [0], [[]], "abc")
    (['bc'], ['length'])
    >>> feature_labels("start", "", [0, 3], [[0, 1], [2, 3]], "abc")
    ['^ab', '^c$']
    """
    if kind == "ngram":
        return [spelled(ngram, symbols) for ngram in ngrams]
    if kind == "start":
        return [f"^{spelled(ngram, symbols)}" for ngram in ngrams]
    if len(codes) == 1:
        return [name]
    return [f"{name}, feature {code}" if kind == "length" else f"{name} {code}" for code in codes]


def operation(removed: Sequence[int], inserted: Sequence[int], symbols: Sequence[str]) -> str:
    """What an edit does.

    :param removed: the codes of the symbols that go, padded with -1.
    :param inserted: the codes of the symbols that come, padded with -1.

    >>> operation([0], [1], "ab"), operation([-1], [1], "ab"), operation([0, 1], [-1], "ab")
    ("replace 'a' by 'b'", "insert 'b'", "delete 'a' 'b'")
    """
    gone, come = (" ".join(repr(symbols[code]) for code in codes if code >= 0) for codes in (removed, inserted))
    if not gone:
        return f"insert {come}"
    return f"replace {gone} by {come}" if come else f"delete {gone}"
