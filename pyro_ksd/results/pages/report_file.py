# SPDX-License-Identifier: Apache-2.0
"""The report of a result in one HTML file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pyro_ksd.common.option_checks import check_instance, found
from pyro_ksd.results.containers import alphabet_of, data_of, dataset, has_all_data, has_group, num_sequences
from pyro_ksd.results.detail_tables import edit_table, is_found, ngram_table
from pyro_ksd.results.labels import readable, readable_label
from pyro_ksd.results.pages.charts import length_chart, null_chart
from pyro_ksd.results.pages.check_page import page_of_check
from pyro_ksd.results.pages.comparison_page import page_of_comparison
from pyro_ksd.results.pages.marked_sequences import LONGEST, has_letters, shown_symbols, worst_sequences
from pyro_ksd.results.pages.monitor_page import page_of_monitor
from pyro_ksd.results.pages.rendering import render
from pyro_ksd.results.verdicts import worst_view
from pyro_ksd.results.view_choice import feature_kind, view_names

_MOST_FEATURES = 6  # of each reason
_MOST_MARKED = 200
_MOST_NGRAMS = 100  # of each view
_MOST_EDITS = 30  # of each view
_MOST_SAMPLES = 20
_CALLS = {"mmd": "mmd_check", "likelihood ratio": "likelihood_ratio_check"}
_ORIGINS = {
    "refit": "refit=...",
    "posterior predictive": "posterior=...",
    "split predictive": "posterior=..., held_out=True",
    "divided predictive": "fit=..., folds={folds}",
}
"""The arguments that say where parameters come from, by the kind of p-values."""
_OPTIONS = ("tolerance", "num_samples", "pseudocount", "num_bootstrap", "level", "seed")
_SETTINGS = {
    "edits": "edits compared",
    "num_sequences": "sequences compared",
    "ratio_error": "error of log-ratios",
    "creation_library_version": "version of pyro_ksd",
    "inference_library_version": "version of Pyro",
    "created_at": "made at",
}
"""Attributes to show, with what they are called."""


def report(result: Any, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Writes a result as a report in one HTML file, to read in a browser and to send to others.

    The report of a check says in plain words whether the model fits, how sure that is, how large the misfit is and what
    to look at first. It shows n-grams in the data beside those of the model, lengths, the sequences that fit worst with
    the wrong places marked, and sequences of the model beside the data; tables of views, n-grams and edits that can be
    sorted and filtered; and how to make the check again. The report of a comparison has the order of the models, and
    their ranks in each view. The report of a monitor has the evidence over time, and what differs most. The file needs
    no network. Neither torch nor Pyro is needed to write it.

    :param result: what :func:`~pyro_ksd.ksd_check`, :func:`~pyro_ksd.ksd_compare`, :func:`~pyro_ksd.mmd_check`,
        :func:`~pyro_ksd.likelihood_ratio_check` or :meth:`pyro_ksd.checks.Monitor.result` gave, or what was loaded
        from its file. Of a check and a comparison in
        one container, the check is reported.
    :param path: of the file to write, such as ``"report.html"``; a file of this name is replaced.
    :param title: what stands at the top; that of the command line, if the result comes from there.
    :returns: the path of the file.
    :raises ValueError: if there is nothing to report, or the folder of the file does not exist.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> check = ksd_check(random_walk(3), ["aabb", "bbccc", "caa", "abbc"] * 4, progress=False)
    >>> with TemporaryDirectory() as folder:
    ...     text = report(check, Path(folder, "report.html")).read_text()
    >>> "The model does not fit" in text
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path: expected the path of a file to write, such as 'report.html', found {found(path)}")
    if title is not None:
        check_instance("title", title, str, "words for the top of the page")
    file = Path(path)
    if not file.parent.is_dir() or file.is_dir():
        raise ValueError(
            f"path: expected the path of a file in a folder that exists, such as 'report.html', found {str(file)!r}"
        )
    file.write_text(report_text(result, title), encoding="utf-8")
    return file


def report_text(result: Any, title: str | None) -> str:
    """The HTML of a report; see :func:`report`."""
    if has_group(result, "ksd", "result"):
        return _check_report(result, title or result.attrs.get("title", "Does the model fit?"))
    if has_group(result, "ksd_compare", "result"):
        return _comparison_report(result, title or result.attrs.get("title", "Which model fits best?"))
    if has_group(result, "ksd_monitor", "result"):
        return _monitor_report(result, title or result.attrs.get("title", "Does the model still fit?"))
    raise ValueError(
        "result: expected what ksd_check, ksd_compare or Monitor.result gave, with a group 'ksd', 'ksd_compare' or "
        "'ksd_monitor', found none of these; pass the result of a check"
    )


def _check_report(check: Any, title: str) -> str:
    page = page_of_check(check, _MOST_FEATURES)
    ksd = dataset(check, "ksd")
    has_ngrams = has_group(check, "ksd_ngram") and dataset(check, "ksd_ngram").sizes["ngram"] > 0
    ngrams = ngram_table(check) if has_ngrams else pd.DataFrame({"view": []})
    edits = edit_table(check) if has_group(check, "ksd_edit") else pd.DataFrame({"view": []})
    detail = ksd.sel(view=page.detail) if page.detail else None
    worst = page.detail or worst_view(check, view_names(check))
    marked = worst_sequences(check, page.detail, _MOST_MARKED) if page.detail else []
    return render(
        "check.html.jinja",
        title=title,
        page=page,
        detail_meaning="" if detail is None else f"which looks at {detail['meaning'].item()}",
        is_detail_found=detail is not None and is_found(check, detail),
        says_weight=any("(weight ×" in reason.finding for reason in page.reasons),
        shows_lengths=any(reason.view == "length" for reason in page.reasons),
        lengths=length_chart(check),
        null=null_chart(check, worst),
        marked=marked,
        repeats=any(row.count > 1 for row in marked),
        ngrams=list(_with_readable_labels(check, _rows(ngrams, _MOST_NGRAMS))),
        ngram_views=list(dict.fromkeys(ngrams["view"])),
        ngrams_most=_MOST_NGRAMS if _is_cut(ngrams, _MOST_NGRAMS) else 0,
        edits=list(_with_symbols(check, list(_rows(edits, _MOST_EDITS)))),
        edit_views=list(dict.fromkeys(edits["view"])),
        edits_most=_MOST_EDITS if _is_cut(edits, _MOST_EDITS) else 0,
        **_common(check, "ksd"),
    )


def _comparison_report(comparison: Any, title: str) -> str:
    page = page_of_comparison(comparison)
    return render("comparison.html.jinja", title=title, page=page, **_common(comparison, "ksd_compare"))


def _monitor_report(result: Any, title: str) -> str:
    found = dataset(result, "ksd_monitor")
    options = {name: found.attrs[name] for name in ("level", "run_length", "seed") if name in found.attrs}
    return render(
        "monitor.html.jinja",
        title=title,
        page=page_of_monitor(result),
        model=str(result.attrs.get("model", "")),
        date=str(found.attrs.get("created_at", ""))[:10],
        call=f"pyro_ksd.ksd_monitor({', '.join(['model', 'alphabet', *(f'{k}={v}' for k, v in options.items())])})",
        settings=[(words, str(found.attrs[name])) for name, words in _SETTINGS.items() if name in found.attrs],
    )


def _common(result: Any, group: str) -> dict[str, Any]:
    """What all reports have: sequences, and how to make the result again."""
    attributes = dataset(result, group).attrs
    data = data_of(result)
    some = np.linspace(0, data.sizes["sequence"] - 1, min(_MOST_SAMPLES, data.sizes["sequence"])).astype(int)
    drawn = dataset(result, "ksd_draws") if has_group(result, "ksd_draws") else None
    return {
        "letters": has_letters(result),
        "observed_title": "Data" if has_all_data(result) else "Data with the largest shares",
        "observed": _samples(result, data.isel(sequence=some)),
        "drawn": [] if drawn is None else _samples(result, drawn.isel(sequence=slice(_MOST_SAMPLES))),
        "date": str(attributes.get("created_at", ""))[:10],
        "model": str(result.attrs.get("model", "")),
        "call": result.attrs.get("command") or _call(result, group),
        "settings": list(_settings(result, group)),
    }


def _rows(table: pd.DataFrame, most: int) -> Iterator[dict[str, Any]]:
    """The first rows of each view."""
    for row in table.groupby("view", sort=False).head(most).to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def _with_readable_labels(check: Any, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Features, with labels that one can see."""
    ksd = dataset(check, "ksd")
    kinds = {name: feature_kind(ksd.sel(view=name)) for name in view_names(check)}
    symbols = alphabet_of(check)
    for row in rows:
        yield row | {"label": readable_label(row["label"], kinds[row["view"]], symbols)}


def _is_cut(table: pd.DataFrame, most: int) -> bool:
    """Whether some view has more rows than are shown."""
    return bool((table["view"].value_counts() > most).any())


def _with_symbols(check: Any, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Edits, with the symbols of their sequences."""
    sequences = _samples(check, data_of(check).sel(sequence=[row["sequence"] for row in rows]))
    for row, (pairs, is_cut) in zip(rows, sequences, strict=True):
        yield row | {"pairs": pairs, "is_cut": is_cut}


def _samples(result: Any, group: xr.Dataset) -> list[tuple[list[tuple[str, int]], bool]]:
    """Sequences symbol by symbol, without marks, and whether some symbols are not shown."""
    lengths = group["length"].values.tolist()
    symbols = shown_symbols(result, group)
    return [([(symbol, 0) for symbol in own], length > LONGEST) for own, length in zip(symbols, lengths, strict=True)]


def _call(result: Any, group: str) -> str:
    """The call that made a result, as far as its attributes say."""
    attributes = dataset(result, group).attrs
    if group == "ksd_compare":
        return f"pyro_ksd.ksd_compare(models, data, level={attributes['level']})"
    options = {name: attributes[name] for name in _OPTIONS if name in attributes}
    kind = attributes["kind"]
    folds = dataset(result, "ksd_fold").sizes["fold"] if has_group(result, "ksd_fold") else None
    own = _ORIGINS.get(kind, f'bootstrap="{kind}"').format(folds=folds)
    call = _CALLS.get(attributes.get("test", ""), "ksd_check")
    if call == "likelihood_ratio_check":
        own = ""
    shown = ", ".join(
        ["model", "data", *([own] if own else []), *(f"{name}={value}" for name, value in options.items())]
    )
    return f"pyro_ksd.{call}({shown})"


def _settings(result: Any, group: str) -> Iterator[tuple[str, str]]:
    own = dataset(result, group)
    alphabet = [readable(symbol) for symbol in alphabet_of(result)]
    yield "views", ", ".join(str(name) for name in own["view"].values if name != "overall")
    yield "sequences", f"{num_sequences(result, 'ksd_data'):,}"
    yield "alphabet", f"{len(alphabet)} symbols: {' '.join(alphabet[:100])}{' ...' if len(alphabet) > 100 else ''}"
    for name, words in _SETTINGS.items():
        if name in own.attrs:
            yield words, str(own.attrs[name])
    spent = {name.removeprefix("seconds_"): own.attrs[name] for name in own.attrs if name.startswith("seconds_")}
    if spent:
        yield "seconds spent", ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in spent.items())
