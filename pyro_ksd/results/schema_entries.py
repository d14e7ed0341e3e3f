# SPDX-License-Identifier: Apache-2.0
"""What the schema of results says of a variable, an attribute and a group, and the kinds of results that have them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Result = Literal[
    "check",
    "p-values",
    "posterior predictive",
    "split predictive",
    "divided predictive",
    "mmd",
    "likelihood ratio",
    "comparison",
    "monitor",
]
Type = Literal["float", "integer", "boolean", "string"]

SOURCES: Mapping[Result, str] = {
    "check": "ksd_check(model, data)",
    "p-values": "ksd_check(model, data, localize=False)",
    "posterior predictive": "ksd_check(model, data, posterior=...)",
    "split predictive": "ksd_check(model, data, posterior=..., held_out=True)",
    "divided predictive": "ksd_check(model, data, fit=...)",
    "mmd": "mmd_check(model, data)",
    "likelihood ratio": "likelihood_ratio_check(model, data)",
    "comparison": "ksd_compare(models, data)",
    "monitor": "ksd_monitor(model, alphabet).result()",
}
"""What gives a kind of result."""

HELD_OUT: tuple[Result, ...] = ("split predictive", "divided predictive")
POSTERIOR_KINDS: tuple[Result, ...] = ("posterior predictive", *HELD_OUT)
"""The results of checks after an inference, and the kinds of their p-values."""

CHECKS: tuple[Result, ...] = ("check", *POSTERIOR_KINDS)
TESTS: tuple[Result, ...] = (*CHECKS, "p-values", "mmd", "likelihood ratio")


@dataclass(frozen=True)
class Variable:
    """An array of a group, or a coordinate.

    :ivar dims: the names of its dimensions, in this order.
    :ivar type: of its values.
    :ivar meaning: in words.
    :ivar least: the smallest value; without it, any finite one.
    :ivar most: the largest value; without it, any finite one.
    :ivar unknown: whether NaN may stand for what is not known.
    :ivar required_in: the results that always have it; ``None`` if it is there wherever its group is.
    """

    dims: tuple[str, ...]
    type: Type
    meaning: str
    least: float | None = None
    most: float | None = None
    unknown: bool = False
    required_in: tuple[Result, ...] | None = None


@dataclass(frozen=True)
class Attribute:
    """An attribute of a group.

    :ivar type: of its value.
    :ivar meaning: in words.
    :ivar least: the smallest value.
    :ivar most: the largest value.
    :ivar choices: all values that it can have; none are listed if it can have any.
    :ivar required_in: as for a :class:`Variable`.
    """

    type: Type
    meaning: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    required_in: tuple[Result, ...] | None = None


@dataclass(frozen=True)
class Group:
    """A group of a result.

    :ivar meaning: in words.
    :ivar variables: by name.
    :ivar coordinates: by name.
    :ivar attributes: by name, besides those that say when and by what the group was made.
    :ivar required_in: the results that always have it.
    """

    meaning: str
    variables: Mapping[str, Variable]
    coordinates: Mapping[str, Variable]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    required_in: tuple[Result, ...] = ()


def labels_along(dim: str, type_: Type, meaning: str, **options: tuple[Result, ...]) -> dict[str, Variable]:
    """The coordinate along a dimension."""
    least = 0 if type_ == "integer" else None
    return {dim: Variable((dim,), type_, meaning, least=least, required_in=options.get("required_in"))}


def interval_ends(name: str, required_in: tuple[Result, ...] = ()) -> dict[str, Variable]:
    """The ends of the 95 % interval of a number of the features."""
    low = Variable(
        ("ngram",),
        "float",
        f"the lower end of the 95 % interval of `{name}`",
        least=0,
        most=math.inf,
        unknown=True,
        required_in=required_in,
    )
    return {f"{name}_low": low, f"{name}_high": replace(low, meaning="the upper end")}


VIEW = labels_along("view", "string", "the names of the views")
DRAWS = labels_along("chain", "integer", "chains, for ArviZ") | labels_along("draw", "integer", "draws of a chain")
ROWS = labels_along("sequence", "integer", "rows of the data")
SEQUENCES = {
    "token": Variable(
        ("sequence", "position"),
        "integer",
        "codes of the symbols, -1 after the end; the attribute `alphabet` is the JSON list of the symbols",
        least=-1,
    ),
    "length": Variable(("sequence",), "integer", "the number of symbols", least=0),
}
KIND = Attribute(
    "string",
    "where the null draws came from",
    choices=("parametric", "wild", "refit", *POSTERIOR_KINDS),
)
SAME_KIND = replace(KIND, required_in=())
PER_VIEW = ("chain", "draw", "view")


def is_required(own: Variable | Attribute, results: Collection[Result]) -> bool:
    """Whether a group that is there must have a variable or attribute, in a container with these results.

    >>> own = Variable((), "float", "how much the view counts", required_in=("check",))
    >>> is_required(own, ["mmd"]), is_required(own, ["mmd", "check"])
    (False, True)
    """
    return own.required_in is None or any(result in own.required_in for result in results)
