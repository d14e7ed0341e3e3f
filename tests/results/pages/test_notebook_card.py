# SPDX-License-Identifier: Apache-2.0
"""The card of a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
import xarray as xr
from synthetic import check_with, length_group, made_up_check
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd.results.pages.notebook_card import card

VOID = {"rect", "circle", "line", "polyline", "br", "meta", "input", "link"}


class Outline(HTMLParser):
    """The text of HTML whose tags are all closed, in their order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def test_the_card_of_a_misfit() -> None:
    found = Outline(card(made_up_check(), "<p>all groups</p>"))
    for words in ("The model does not fit", "p = 0.004, 30 sequences", "too rare under the model", "all groups"):
        assert words in found.text
    assert all(view in found.text for view in ("content-1", "start", "length"))


def test_the_card_of_a_model_that_fits_says_no_more() -> None:
    found = Outline(card(made_up_check(p_value_overall=0.4), ""))
    assert "No misfit was found" in found.text
    assert "The model may fit: the check found nothing wrong (p = 0.400)." in found.text
    assert "too rare" not in found.text
    assert "svg" not in found.tags


def test_lengths_are_drawn_if_they_are_a_reason() -> None:
    lengths = ({5: 0.5, 6: 0.5}, {1: 0.5, 2: 0.5})
    features = [("length", "length", -4.0, 0.01)]
    check = check_with(features, {"length": 0.001}, lengths=lengths)
    assert "mean length 5.5" in Outline(card(check, "")).text
    other = check_with([("content-2", "aa", -4.0, 0.01)], {"content-2": 0.001}, lengths=lengths)
    assert "mean length" not in Outline(card(other, "")).text
    assert length_group(*lengths)["observed"].sum() == 1


def test_the_card_of_a_comparison() -> None:
    found = Outline(card(made_up_comparison(THREE), ""))
    assert all(name in found.text for name in THREE)
    assert "comes closest to all 30 sequences" in found.text


@pytest.mark.parametrize("bad", ["<script>alert(1)</script>", "</td>", '"', "&amp;"])
def test_symbols_cannot_break_out(bad: str) -> None:
    check = check_with([("content-2", "aa", -4.0, 0.01)], {"content-2": 0.001})
    ngrams = check["ksd_ngram"].to_dataset().assign(label=("ngram", [bad]))
    html = card(check.assign({"ksd_ngram": xr.DataTree(ngrams)}), "")
    assert "<script" not in html
    assert bad in Outline(html).text
