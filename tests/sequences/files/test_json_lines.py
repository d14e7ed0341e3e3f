# SPDX-License-Identifier: Apache-2.0
"""JSON lines: strings, lists and objects."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.json_lines import json_rows, json_table


def rows(text: str, sep: str | None = None, alphabet: Any = None) -> list[Any]:
    return list(json_rows(FileContent("f.jsonl", text.encode()), sep, alphabet).rows)


def test_strings_and_lists() -> None:
    assert rows('"anna"\n""\n') == ["anna", ""]
    assert rows('"a b"\n"b"', " ") == [["a", "b"], ["b"]]
    assert rows('["a", "b"]\n[]') == [["a", "b"], []]
    assert rows("[1, 10]\n[9]") == [[1, 10], [9]]
    assert rows('["1", "10"]') == [["1", "10"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a"\n["a"]', "f.jsonl, line 2: found ['a'], expected a string, as in f.jsonl, line 1"),
        ('["a"]\n3', "f.jsonl, line 2: found 3, expected a string or a list of symbols"),
        ('["a"]\nnull', "f.jsonl, line 2: found None, expected a string or a list of symbols"),
        ('["a"]\n\n["b"]', "f.jsonl, line 2: found a blank line, expected a value of JSON"),
        ('["a"]\n["a", null]', "f.jsonl, line 2, symbol 2: found None, expected a text or a whole number"),
        ('["a"]\n["a", 1]', "f.jsonl, line 2, symbol 2: found 1, expected a symbol of the same kind as 'a'"),
        ("[0.5]", "f.jsonl, line 1, symbol 1: found 0.5, expected a text or a whole number"),
        ("[NaN]", "f.jsonl, line 1, symbol 1: found nan, expected a text or a whole number"),
        ('["a"]\n["a" "b"]', "f.jsonl, line 2, column 6: expected one whole value of JSON in each line"),
        ('[\n"a"\n]', "f.jsonl, line 1, column 2: expected one whole value of JSON in each line"),
        (
            '{"a": "x"}',
            "f.jsonl, line 1: found an object with the fields ['a'], expected a string or a list; pass column=",
        ),
        ('{"a": 1, "a": 2}', "f.jsonl, line 1: found the field 'a' twice, expected it once"),
    ],
)
def test_wrong_lines(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        rows(text)


def test_objects() -> None:
    text = '{"a": 1, "b": "x"}\n{"b": "y", "c": null, "a": 0}\n'
    table = json_table(FileContent("f.jsonl", text.encode()), ["b", "a"])
    assert table.columns == {"b": ["x", "y"], "a": [1, 0]}
    assert table.place(1, "a") == "f.jsonl, line 2, column 'a'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"b": 1}', "f.jsonl, line 2, column 'a': found only the fields ['b'], expected a value"),
        ('{"a": null}', "f.jsonl, line 2, column 'a': found a missing value, expected a value"),
        ('{"a": NaN}', "f.jsonl, line 2, column 'a': found a missing value, expected a value"),
        ("[1]", "f.jsonl, line 2: found [1], expected an object with the fields ['a']"),
    ],
)
def test_wrong_objects(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        json_table(FileContent("f.jsonl", f'{{"a": 1}}\n{line}'.encode()), ["a"])
