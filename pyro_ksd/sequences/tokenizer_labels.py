# SPDX-License-Identifier: Apache-2.0
"""Readable symbols for the token ids of a tokenizer."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from pyro_ksd.common.option_checks import check_number, found

SPACE = "␣"
"""How a space is shown at the edges of a label."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # how tokenizers with a fallback to bytes write these
_SPACE_MARK = "▁"  # of SentencePiece


def token_labels(tokenizer: Any, size: int | None = None) -> tuple[str, ...]:
    r"""The tokens of a tokenizer as symbols, in the order of their ids.

    Tokenizers of the package ``transformers`` write tokens in codes of their own: ``Ġ`` or ``▁`` for a space, and other
    letters for bytes. Labels show spaces as ``␣``, bytes that are no text as ``\xe2``, and line breaks as ``\n``.
    Labels are distinct: those of tokens with the same text end with their ids, as in ``a#17``.

    :param tokenizer: has ``convert_ids_to_tokens(ids)`` and ``len(tokenizer)``, such as
        ``AutoTokenizer.from_pretrained("gpt2")``.
    :param size: how many ids the language model knows, if that is more than the tokenizer has.

    >>> class Tokenizer:
    ...     tokens = ["Ġthe", "he", "âĢ", "Ċ"]
    ...     def __len__(self):
    ...         return len(self.tokens)
    ...     def convert_ids_to_tokens(self, ids):
    ...         return [self.tokens[i] for i in ids]
    >>> token_labels(Tokenizer(), size=5)
    ('␣the', 'he', '\\xe2\\x80', '\\n', '<unused 4>')

    Pass token ids and their labels as follows:

    >>> from pyro_ksd import Sequences
    >>> labels = token_labels(Tokenizer())
    >>> Sequences.of([[0, 3], [1]], alphabet=len(labels)).over(labels).to_lists()
    [['␣the', '\\n'], ['he']]
    """
    if not hasattr(tokenizer, "convert_ids_to_tokens") or not hasattr(tokenizer, "__len__"):
        raise ValueError(
            f"tokenizer: expected a tokenizer of the package transformers, found {found(tokenizer)}; for others pass "
            "the labels themselves, data.over(labels)"
        )
    known = len(tokenizer)
    size = known if size is None else check_number("size", size, least=1)
    if size < known:
        raise ValueError(f"size: expected at least the {known} tokens of the tokenizer, found {size}")
    tokens = tokenizer.convert_ids_to_tokens(list(range(known)))
    of_bytes = _is_byte_level(tokens)
    labels = [f"<unused {code}>" if token is None else _label(token, of_bytes) for code, token in enumerate(tokens)]
    labels += [f"<unused {code}>" for code in range(known, size)]
    counts = Counter(labels)
    return tuple(f"{label}#{code}" if counts[label] > 1 else label for code, label in enumerate(labels))


def _label(token: str, of_bytes: bool) -> str:
    """What a token is called."""
    byte = _BYTE.fullmatch(token)
    if byte is not None:
        return _shown(bytes([int(byte[1], 16)]))
    if of_bytes and all(letter in _BYTES for letter in token):
        return _shown(bytes(_BYTES[letter] for letter in token))
    return _shown(token.replace(_SPACE_MARK, " ").encode())


def _shown(content: bytes) -> str:
    """Bytes as text in which everything can be seen."""
    text = content.decode("utf-8", "backslashreplace")
    visible = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
    return visible.replace(" ", SPACE)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def _is_byte_level(tokens: list[str | None]) -> bool:
    """Whether tokens are bytes in the letters of GPT-2: then no token has a space or the mark of SentencePiece."""
    some = [token for token in tokens if token is not None]
    return any("Ġ" in token for token in some) and not any(_SPACE_MARK in token for token in some)


def _letters_of_bytes() -> dict[str, int]:
    """The letters in which GPT-2 writes bytes: printable ones stand for themselves, others for the next free ones."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES = _letters_of_bytes()
