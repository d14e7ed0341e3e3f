# SPDX-License-Identifier: Apache-2.0
"""The end symbols, from what the user passes and from the data."""

from __future__ import annotations

from typing import Any

from pyro_ksd.edits.neighborhoods import BeforeEnd
from pyro_ksd.models.wrappers.ended import common_ends, end_codes
from pyro_ksd.sequences.container import Sequences


def chosen_ends(end: Any, neighborhood: Any, sequences: Sequences) -> tuple[int, ...]:
    """The codes of the symbols with one of which every sequence ends; none if the user names none.

    :param end: the symbol that the user names, several of them, or ``None``.
    :param neighborhood: edits in front of the last symbol say that it is the end, if it stands nowhere else.
    :raises ValueError: if the alphabet does not have the symbol.
    """
    if end is None:
        return common_ends(sequences) if isinstance(neighborhood, BeforeEnd) else ()
    return end_codes(end, sequences)


def unnamed_ends(sequences: Sequences) -> str:
    """What to say of sequences with common last symbols, where nothing says how long they are; ``""`` for others."""
    ends = common_ends(sequences)
    if not ends:
        return ""
    symbols = [sequences.symbols[code] for code in ends]
    named = repr(symbols[0]) if len(symbols) == 1 else repr(symbols)
    which = f"with {named}, which stands" if len(symbols) == 1 else f"with one of {named}, which stand"
    return (
        f"all {len(sequences)} sequences end {which} nowhere else, and the model gives no probability to lengths, so "
        "that it would be checked as if a sequence could go on after that symbol; if it marks the end, pass "
        f"end={named}, or, if it is a symbol like the others, neighborhood=Substitutions()"
    )
