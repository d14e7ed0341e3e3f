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


def readable(symbol: str) -> str:
    r"""A symbol as one can see it: spaces and control characters are invisible.

    >>> readable("a b"), readable("\n")
    ('a␣b', '\\n')
    """
    seen = ("␣" if character == " " else character for character in symbol)
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in seen)


def feature_labels(
    kind: str, names: Sequence[str], ngrams: Sequence[Sequence[int]], symbols: Sequence[str]
) -> list[str]:
    """The labels of the features of a view.

    :param kind: what a feature is, see :data:`pyro_ksd.kernels.base.FeatureKind`.
    :param names: what the features are called apart from their symbols, see
        :meth:`pyro_ksd.kernels.Kernel.feature_label`.
    :param ngrams: the codes of the symbols of each feature, as for :func:`spelled`.

    >>> feature_labels("ngram", [""], [[1, 2]], "abc"), feature_labels("length", ["length"], [[]], "abc")
    (['bc'], ['length'])
    >>> feature_labels("start", ["", ""], [[0, 1], [2, 3]], "abc"), feature_labels("end", [""], [[3, 1]], "abc")
    (['^ab', '^c$'], ['^b$'])
    >>> feature_labels("ends", [""], [[0, 1]], "abc"), feature_labels("skip", ["_"], [[0, 1]], "abc")
    (['^a...b$'], ['a_b'])
    >>> feature_labels("position", ["position 2 of 3"], [[0]], "abc")
    ['a at position 2 of 3']
    >>> feature_labels("feature", ["rests 0", "rests 7"], [[], []], "abc")
    ['rests 0', 'rests 7']
    >>> feature_labels("feature", ["rests 0"], [[]], "abc")
    ['rests']
    """
    if kind == "feature" and len(names) == 1:  # its number says nothing
        return [names[0].removesuffix(" 0")]
    pairs = zip(names, ngrams, strict=True)
    return [_feature_label(kind, name, ngram, symbols) for name, ngram in pairs]


def _feature_label(kind: str, name: str, ngram: Sequence[int], symbols: Sequence[str]) -> str:
    if kind in ("ngram", "start", "end", "ends"):
        return _edge_label(kind, ngram, symbols)
    if kind == "skip":
        return ("" if are_letters(symbols) else " ").join(_around(name, spelled_symbols(ngram, symbols)))
    if kind == "position":
        return f"{spelled(ngram, symbols)} at {name}"
    return name


def _around(name: str, pair: Sequence[str]) -> list[str]:
    return [pair[0], name, pair[1]] if name else list(pair)


def _edge_label(kind: str, ngram: Sequence[int], symbols: Sequence[str]) -> str:
    missing = len(symbols)  # the code of a place that the sequence does not have
    if kind == "start":
        return f"^{spelled(ngram, symbols)}"
    if kind == "end":
        is_whole = missing in ngram
        own = spelled([code for code in ngram if code != missing], symbols)
        return f"^{own}$" if is_whole else f"{own}$"
    if kind == "ends":
        first, last = ngram
        return f"^{spelled([first], symbols)}...{spelled([last], symbols)}$" if first != missing else "^$"
    return spelled(ngram, symbols)


def readable_label(label: str, kind: str, symbols: Sequence[str]) -> str:
    """The label of a feature as one can see it; spaces that are not symbols stay as they are.

    :param kind: what a feature is, as for :func:`feature_labels`.

    >>> readable_label("^a ", "start", ["a", " "]), readable_label("long words", "feature", ["a", " "])
    ('^a␣', 'long words')
    >>> readable_label("  at position 1 of 2", "position", ["a", " "]), readable_label("AH B", "ngram", ["AH", "B"])
    ('␣ at position 1 of 2', 'AH B')
    """
    if are_letters(symbols) and kind in ("ngram", "start", "end", "ends", "skip"):
        return readable(label)
    if are_letters(symbols) and kind == "position":
        return f"{readable(label[0])}{label[1:]}"
    return " ".join(map(readable, label.split(" ")))


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
