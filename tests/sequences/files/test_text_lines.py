# SPDX-License-Identifier: Apache-2.0
"""Text with one sequence a line."""

from __future__ import annotations

from typing import Any

import pytest

from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.text_lines import text_rows


def rows(text: str, sep: str | None = None, alphabet: Any = None) -> list[Any]:
    return list(text_rows(FileContent("f.txt", text.encode()), sep, alphabet).rows)


def test_characters_and_words() -> None:
    assert rows("anna\nbob\n") == ["anna", "bob"]
    assert rows("home  buy\nhome", " ") == [["home", "buy"], ["home"]]
    assert rows("10 9\n2", " ") == [[10, 9], [2]]
    assert rows("01\n1") == ["01", "1"]
    assert rows("01\n1", alphabet=2) == [[0, 1], [1]]
    assert rows("a b\n b", alphabet=(" ", "a", "b")) == ["a b", " b"]


@pytest.mark.parametrize("text", ["a\n\nb", "a\n  \nb", "a\n\t\n"])
@pytest.mark.parametrize("sep", [None, " "])
def test_blank_lines(text: str, sep: str | None) -> None:
    with pytest.raises(
        ValueError, match=r"^f\.txt, line 2: found a blank line, expected a sequence; remove the line, or"
    ):
        rows(text, sep)


@pytest.mark.parametrize(("text", "column"), [("ab\nabc \n", 4), ("ab\n abc\n", 1), ("ab\nabc\t\t\n", 4)])
def test_white_space_at_the_ends(text: str, column: int) -> None:
    with pytest.raises(ValueError, match=rf"^f\.txt, line 2, column {column}: found white space at the end of a line"):
        rows(text)


def test_fasta_is_recognized() -> None:
    with pytest.raises(ValueError, match=r"^f\.txt, line 1, column 1: found '>', .* pass format='fasta'"):
        rows(">1\nACG\n")


def test_separators() -> None:
    with pytest.raises(ValueError, match=r"^f\.txt, line 2, symbol 2: found no symbol before or after a separator ','"):
        rows("a,b\na,,b", ",")
    with pytest.raises(ValueError, match=r"^sep: expected what separates the symbols"):
        rows("a", "")
    with pytest.warns(UserWarning, match=r"found the separator ';' in none of 2 strings"):
        rows("a,b\nb,c", ";")
    with pytest.warns(UserWarning, match=r"found ' ' in 2 of 2 strings, .* For words, pass sep=' '"):
        rows("home buy\nbuy home")


def test_places() -> None:
    characters = text_rows(FileContent("f.txt", b"ab\nabc"), None, None)
    assert characters.place(1, 2) == "f.txt, line 2, column 3"
    assert characters.chosen([1]).place(0, 2) == "f.txt, line 2, column 3"
    assert text_rows(FileContent("f.txt", b"a b\nab c"), " ", None).place(1, 1) == "f.txt, line 2, symbol 2"
