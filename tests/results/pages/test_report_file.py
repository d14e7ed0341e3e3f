# SPDX-License-Identifier: Apache-2.0
"""The report in one file: its HTML, and how it works in a browser."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic import PHONEMES, changed, check_with, made_up_check, misfit
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd import edit_table, ngram_table, report, sequence_table
from pyro_ksd.results import ResultTree
from pyro_ksd.results.labels import readable

VOID = {"rect", "circle", "line", "polyline", "br", "meta", "input", "link"}
EVIL = ["<script>alert(1)</script>", "</td>", "'\"", "&amp;", "{{ 7 * 7 }}"]


class Tables(HTMLParser):
    """The rows of all tables, as texts and as values, by the heading before the table.

    All tags must be closed, in their order.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: dict[str, list[list[str]]] = {}
        self.values: dict[str, list[list[float | None]]] = {}
        self.scripts = 0
        self.addresses: list[str] = []
        self._open: list[str] = []
        self._heading = ""
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self.scripts += tag == "script"
        self.addresses += [
            value for name in ("src", "href") if (value := own.get(name)) and not value.startswith("data:")
        ]
        if tag == "h2":
            self._heading = own.get("id") or ""
        if tag == "tr":
            self.texts.setdefault(self._heading, []).append([])
            self.values.setdefault(self._heading, []).append([])
        if tag in ("td", "th"):
            value = own.get("data-value")
            self.texts[self._heading][-1].append("")
            self.values[self._heading][-1].append(None if value is None else float(value))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self._open or "th" in self._open:
            self.texts[self._heading][-1][-1] += data.strip()


def written(result: Any, folder: Path) -> str:
    return report(result, folder / "report.html").read_text(encoding="utf-8")


def column(tables: Tables, heading: str, name: str) -> list[float | None]:
    """The values of a column."""
    place = tables.texts[heading][0].index(name)
    return [row[place] for row in tables.values[heading][1:]]


def sized_check(**options: Any) -> xr.DataTree:
    """A check that finds something, with factors and rates of random size."""
    check = misfit(made_up_check(**options))
    random = np.random.default_rng(1)
    names = ("factor", "observed", "expected", "ratio")
    sizes: dict[str, Any] = {}
    for name in names:
        value = random.gamma(2.0, size=check["ksd_ngram"].sizes["ngram"])
        value[random.random(len(value)) < 0.3] = np.nan
        sizes |= {name: value, f"{name}_low": value / 2, f"{name}_high": value * 2}
    return changed(check, "ksd_ngram", **sizes)


@pytest.mark.parametrize("symbols", [None, PHONEMES])
@pytest.mark.parametrize("overall", [0.004, 0.4])
def test_every_number_is_that_of_the_groups(symbols: list[str] | None, overall: float, tmp_path: Path) -> None:
    check = sized_check(symbols=symbols, p_value_overall=overall)
    tables = Tables(written(check, tmp_path))
    ksd = check["ksd"].to_dataset()
    for name, values in (("statistic", ksd["statistic"]), ("p-value", ksd["p_value"])):
        assert column(tables, "views", name) == values.values.tolist()
    ngrams = ngram_table(check).groupby("view", sort=False).head(100)
    headings = {"data": "observed", "model": "expected", "data : model": "ratio", "weight": "factor", "z": "z"}
    for name, own in (headings | {"p-value": "p_value"}).items():
        np.testing.assert_array_equal(np.array(column(tables, "ngrams", name), dtype=float), ngrams[own].to_numpy())
    assert [row[:3] for row in tables.texts["ngrams"][1:]] == ngrams[["view", "label", "finding"]].to_numpy().tolist()
    edits = edit_table(check).groupby("view", sort=False).head(30)
    assert column(tables, "edits", "contribution") == edits["contribution"].tolist()
    assert column(tables, "edits", "index") == edits["sequence"].tolist()
    assert [int(row[3]) for row in tables.texts["edits"][1:]] == (edits["position"] + 1).tolist()


def test_shown_intervals_are_those_of_the_groups(tmp_path: Path) -> None:
    check = sized_check()
    rows = Tables(written(check, tmp_path)).texts["ngrams"][1:]
    for text, (_, own) in zip(rows, ngram_table(check).iterrows(), strict=True):
        for cell, name in ((text[5], "ratio"), (text[6], "factor")):
            if math.isnan(own[name]):
                assert cell == ""
            else:
                value, low, high = (float(part.replace(",", "")) for part in re.findall(r"[\d.,]+", cell))
                assert (value, low, high) == pytest.approx(
                    (own[name], own[f"{name}_low"], own[f"{name}_high"]), rel=0.05
                )


@pytest.mark.parametrize("overall", [0.004, 0.4])
def test_sequences_that_fit_worst(overall: float, tmp_path: Path) -> None:
    check = sized_check(p_value_overall=overall)
    tables = Tables(written(check, tmp_path))
    own: pd.DataFrame = sequence_table(check, view="content-2").set_index("sequence")
    indices = [int(index or 0) for index in column(tables, "sequences", "index")]
    assert [row[0] for row in tables.texts["sequences"][1:]] == own.loc[indices, "text"].tolist()
    assert column(tables, "sequences", "share of the misfit") == own.loc[indices, "share"].tolist()
    assert column(tables, "sequences", "length") == own.loc[indices, "length"].tolist()


def test_the_file_needs_no_network_and_has_one_script(tmp_path: Path) -> None:
    html = written(sized_check(), tmp_path)
    tables = Tables(html)
    assert (tables.addresses, tables.scripts) == ([], 1)
    assert "http" not in re.sub(r"http-equiv", "", html)
    assert "@import" not in html
    assert "url(" not in html


def test_symbols_cannot_break_out(tmp_path: Path) -> None:
    check = sized_check(symbols=EVIL)
    meaning = np.array([f"{EVIL[0]} {place}" for place in range(5)], dtype=object)
    check = check.assign({"ksd": xr.DataTree(check["ksd"].to_dataset().assign(meaning=("view", meaning)))})
    tables = Tables(written(check, tmp_path))
    assert tables.scripts == 1
    sequences = "".join(row[0] for row in tables.texts["sequences"])
    assert all(readable(symbol).strip() in sequences for symbol in EVIL)
    assert tables.texts["views"][1][1] == f"{EVIL[0]} 0"
    html = report(check, tmp_path / "other.html", title=EVIL[0]).read_text()
    assert Tables(html).scripts == 1


def test_it_says_how_to_make_it_again(tmp_path: Path) -> None:
    check = made_up_check(tolerance=0.05)
    html = written(check, tmp_path)
    call = (
        'pyro_ksd.ksd_check(model, data, bootstrap="parametric", tolerance=0.05, num_bootstrap=200, level=0.05, seed=0)'
    )
    assert call in html.replace("&#34;", '"')
    check["ksd"].attrs |= {"kind": "refit"}
    assert "refit=..." in written(check, tmp_path)
    check["ksd"].attrs |= {"kind": "split predictive"}
    assert "(model, data, posterior=..., held_out=True, tolerance" in written(check, tmp_path)
    check["ksd"].attrs |= {"kind": "wild", "test": "mmd", "num_samples": 70}
    assert "pyro_ksd.mmd_check(model, data, bootstrap=&#34;wild&#34;, tolerance=0.05, num_samples=70" in written(
        check, tmp_path
    )
    check["ksd"].attrs |= {"test": "likelihood ratio", "kind": "parametric"}
    assert "pyro_ksd.likelihood_ratio_check(model, data, tolerance" in written(check, tmp_path)
    assert "pyro_ksd.ksd_compare(models, data, level=0.05)" in written(made_up_comparison(THREE), tmp_path)


def test_data_and_draws_stand_side_by_side(tmp_path: Path) -> None:
    html = written(made_up_check(["cart", "home"]), tmp_path)
    assert "Drawn from the model" in html
    check = made_up_check(["cart", "home"])
    del check["ksd_draws"]
    html = written(check, tmp_path)
    assert "Drawn from the model" not in html
    assert "Some of the data" in html


def test_results_with_few_groups_have_a_report(tmp_path: Path) -> None:
    check = made_up_check()
    ksd = check["ksd"].to_dataset()[["statistic", "p_value", "p_value_overall", "meaning"]]
    groups = {"ksd": ksd.drop_dims("sequence", errors="ignore"), "ksd_null": check["ksd_null"].to_dataset()[["ksd"]]}
    other = xr.DataTree.from_dict({**groups, "ksd_data": check["ksd_data"].to_dataset()})
    tables = Tables(written(other, tmp_path))
    assert "views" in tables.texts
    assert "ngrams" not in tables.texts
    assert "sequences" not in tables.texts


def test_the_picture_of_the_null_draws_is_that_of_the_worst_view(tmp_path: Path) -> None:
    """Also in a check of p-values alone, which has no view in detail."""
    check = made_up_check()  # content-2 and length reject
    ksd = check["ksd"].to_dataset()[["statistic", "p_value", "p_value_overall", "meaning", "weight"]]
    groups = {
        "ksd": ksd.drop_dims("sequence", errors="ignore"),
        "ksd_null": check["ksd_null"].to_dataset(),
        "ksd_data": check["ksd_data"].to_dataset(),
    }
    assert "Statistic of <code>content-2</code>" in written(xr.DataTree.from_dict(groups), tmp_path)
    assert "Statistic of <code>content-2</code>" in written(check, tmp_path)


def test_the_report_of_a_comparison(tmp_path: Path) -> None:
    comparison = made_up_comparison(THREE)
    tables = Tables(written(comparison, tmp_path))
    assert [row[0] for row in tables.texts["models"][1:]] == ["order 2", "order 1", "order 0"]
    assert column(tables, "models", "ksd") == [0.25, 1.0, 3.0]
    assert len(tables.texts["views"]) == comparison["ksd_compare"].sizes["view"] + 1


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    check = made_up_check()
    with pytest.raises(ValueError, match=r"path: expected the path of a file to write, .* found 3"):
        report(check, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="path: expected the path of a file in a folder that exists"):
        report(check, tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match="path: expected the path of a file in a folder that exists"):
        report(check, tmp_path)
    with pytest.raises(ValueError, match="title: expected words"):
        report(check, tmp_path / "report.html", title=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"result: expected an xarray\.DataTree"):
        report("check.nc", tmp_path / "report.html")
    with pytest.raises(ValueError, match=r"result: expected what ksd_check, ksd_compare or Monitor\.result gave"):
        report(xr.DataTree.from_dict({"posterior": xr.Dataset()}), tmp_path / "report.html")


@pytest.fixture(scope="module")
def page() -> Iterator[browser.Page]:
    if browser.MISSING:
        pytest.skip(browser.MISSING)
    with browser.browser() as opened:
        yield opened


COLUMN = """
const [id, column] = arguments;
const rows = Array.from(document.querySelector(`#${id} ~ [data-table] tbody`).rows);
const cells = rows.filter(row => !row.hidden).map(row => row.cells[column]);
return cells.map(cell => cell.dataset.value ?? cell.textContent);
"""
CLICK = """
const headings = document.querySelector(`#${arguments[0]} ~ [data-table] thead tr`).cells;
headings[arguments[1]].querySelector("button").click();
"""
FILTER = """
const box = document.querySelector(`#${arguments[0]} ~ [data-table]`);
const own = box.querySelector(arguments[1]);
own.value = arguments[2];
own.dispatchEvent(new Event(arguments[1] === "select" ? "change" : "input"));
return box.querySelector(".count").textContent;
"""


CONTRASTS = """
const parsed = color => {
  const [r, g, b, a] = color.match(/[\\d.]+/g).map(Number);
  return [r, g, b, a ?? 1];
};
const over = ([r, g, b, a], below) => [r, g, b].map((value, place) => a * value + (1 - a) * below[place]);
const behind = element => {
  const base = getComputedStyle(document.documentElement).colorScheme.includes("dark") && arguments[0] ? 18 : 255;
  const below = element.parentElement ? behind(element.parentElement) : [base, base, base];
  return over(parsed(getComputedStyle(element).backgroundColor), below);
};
const light = color => {
  const [r, g, b] = color.map(value => value / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const found = [];
for (const element of document.body.querySelectorAll("*")) {
  const has_text = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
  if (!has_text || !element.checkVisibility() || element.closest("script, style")) continue;
  const style = getComputedStyle(element);
  const below = behind(element);
  const [r, g, b, alpha] = parsed(element.closest("svg") ? style.fill : style.color);
  let opacity = alpha;
  for (let each = element; each; each = each.parentElement) opacity *= Number(getComputedStyle(each).opacity);
  const [one, other] = [light(over([r, g, b, opacity], below)), light(below)];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) found.push(`${element.tagName} ${element.className} ${element.textContent}: ${contrast}`);
}
return found;
"""


@pytest.mark.parametrize("dark", [False, True])
def test_all_words_can_be_read(dark: bool, page: browser.Page, tmp_path: Path) -> None:
    """Words have 4.5 times the luminance of what is behind them, or the reverse, as WCAG 2 (AA) demands."""
    check = sized_check()
    written(check, tmp_path)
    page.open(tmp_path / "report.html", dark=dark)
    assert page.run(CONTRASTS, dark) == []
    card = ResultTree.of(check)._repr_html_().split("<details><summary>All groups")[0]  # the rest is xarray's
    head = '<!doctype html><meta charset="utf-8"><style>:root { color-scheme: light dark }</style>'
    (tmp_path / "card.html").write_text(head + card)
    page.open(tmp_path / "card.html", dark=dark)
    assert page.run(CONTRASTS, dark) == []


@pytest.mark.parametrize("made", [sized_check, lambda: made_up_comparison(THREE), lambda: made_up_check(impossible=2)])
def test_the_console_stays_empty_and_nothing_is_wider_than_a_phone(
    made: Any, page: browser.Page, tmp_path: Path
) -> None:
    written(made(), tmp_path)
    for dark in (False, True):
        page.open(tmp_path / "report.html", 390, dark=dark)
        assert page.console() == []
        assert page.run("return document.documentElement.scrollWidth") == 390
        brightness = page.run("return getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", brightness)[0]) < 60) == dark
    assert page.run("return performance.getEntriesByType('resource').length") == 0


def test_tables_are_sorted_by_a_click(page: browser.Page, tmp_path: Path) -> None:
    check = sized_check()
    written(check, tmp_path)
    page.open(tmp_path / "report.html")
    ngrams = ngram_table(check)
    for place, name in ((7, "z"), (6, "factor"), (1, "label")):
        page.run(CLICK, "ngrams", place)
        shown = page.run(COLUMN, "ngrams", place)
        if name == "label":
            assert shown == page.run("return arguments[0].sort((a, b) => a.localeCompare(b))", ngrams["label"].tolist())
            continue
        up = np.array([float(value) for value in shown])
        np.testing.assert_array_equal(up, np.sort(ngrams[name]))  # what is not known comes last
        page.run(CLICK, "ngrams", place)
        down = np.array([float(value) for value in page.run(COLUMN, "ngrams", place)])
        known = np.sort(ngrams[name].dropna())[::-1]
        np.testing.assert_array_equal(down[: len(known)], known)
        assert np.isnan(down[len(known) :]).all()
    assert page.console() == []


def test_tables_are_filtered_by_view_and_by_words(page: browser.Page, tmp_path: Path) -> None:
    check = sized_check()
    written(check, tmp_path)
    page.open(tmp_path / "report.html")
    ngrams = ngram_table(check)
    pairs = ngrams[ngrams["view"] == "content-2"]
    assert page.run(FILTER, "ngrams", "select", "content-2") == f"{len(pairs)} of {len(ngrams)} rows"
    assert set(page.run(COLUMN, "ngrams", 0)) == {"content-2"}
    found = (pairs["finding"] == "too rare").sum()
    assert page.run(FILTER, "ngrams", "input", " TOO rare") == f"{found} of {len(ngrams)} rows"
    page.run(FILTER, "ngrams", "select", "")
    assert page.run(FILTER, "ngrams", "input", "") == f"{len(ngrams)} of {len(ngrams)} rows"
    page.run(FILTER, "edits", "input", "nothing like this")
    assert page.run(COLUMN, "edits", 0) == []
    assert page.console() == []


def test_the_card_runs_in_a_browser(page: browser.Page, tmp_path: Path) -> None:
    check = ResultTree.of(check_with([("content-2", "aa", -4.0, 0.01, 3.0, 2.0, 4.0)], {"content-2": 0.001}))
    (tmp_path / "card.html").write_text(f"<!doctype html><meta charset=utf-8>{check._repr_html_()}")
    page.open(tmp_path / "card.html", 390)
    assert page.console() == []
    assert page.run("return document.querySelector('.ksd-card').scrollWidth") <= 390
