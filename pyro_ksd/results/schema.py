# SPDX-License-Identifier: Apache-2.0
"""The schema of results: which groups, variables and attributes they have, of which type, shape and range.

``GROUPS`` and ``POWER`` are the one place where this is stated. Files are validated against it, tests compare it with
what the calls return, and ``python docs/schema_page.py`` writes it out as a page.

A new variable or group that older readers can ignore gets an entry here and leaves the version as it is; if older files
lack it, its ``required_in`` is ``()``. Whatever changes the meaning of something that exists, or removes it, raises
:data:`SCHEMA_VERSION`; then :func:`pyro_ksd.load` has to go on reading the files of all earlier versions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

SCHEMA_VERSION = 2
"""Kept in the attribute ``schema_version`` at the root of a result."""

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

_HELD_OUT: tuple[Result, ...] = ("split predictive", "divided predictive")
POSTERIOR_KINDS: tuple[Result, ...] = ("posterior predictive", *_HELD_OUT)
"""The results of checks after an inference, and the kinds of their p-values."""

_CHECKS: tuple[Result, ...] = ("check", *POSTERIOR_KINDS)
_TESTS: tuple[Result, ...] = (*_CHECKS, "p-values", "mmd", "likelihood ratio")


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


def _labels(dim: str, type_: Type, meaning: str, **options: tuple[Result, ...]) -> dict[str, Variable]:
    """The coordinate along a dimension."""
    least = 0 if type_ == "integer" else None
    return {dim: Variable((dim,), type_, meaning, least=least, required_in=options.get("required_in"))}


def _ends(name: str, required_in: tuple[Result, ...] = ()) -> dict[str, Variable]:
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


_VIEW = _labels("view", "string", "the names of the views")
_DRAWS = _labels("chain", "integer", "chains, for ArviZ") | _labels("draw", "integer", "draws of a chain")
_ROWS = _labels("sequence", "integer", "rows of the data")
_SEQUENCES = {
    "token": Variable(
        ("sequence", "position"),
        "integer",
        "codes of the symbols, -1 after the end; the attribute `alphabet` is the JSON list of the symbols",
        least=-1,
    ),
    "length": Variable(("sequence",), "integer", "the number of symbols", least=0),
}
_BESIDE = (
    _labels("sequence", "integer", "rows of the data", required_in=())
    | _labels("position", "integer", "places in a sequence", required_in=())
    | _labels("symbol", "string", "the 30 most frequent symbols of the data, or all", required_in=())
)


def _beside(words: str, *dims: str) -> dict[str, Variable]:
    """The numbers of the data and of replicated data, which have the same names."""
    per_sequence = (*dims, "sequence")
    return {
        "length": Variable(per_sequence, "integer", f"the number of symbols {words}", least=0, required_in=()),
        "distinct_symbols": Variable(
            per_sequence, "integer", f"the number of distinct symbols {words}", least=0, required_in=()
        ),
        "symbol_count": Variable(
            (*per_sequence, "symbol"), "integer", f"how often each symbol occurs {words}", least=0, required_in=()
        ),
        "token": Variable(
            (*per_sequence, "position"),
            "integer",
            f"with `replicates=True`: the codes of the symbols {words}, -1 after the end",
            least=-1,
            required_in=(),
        ),
    }


_KIND = Attribute(
    "string",
    "where the null draws came from",
    choices=("parametric", "wild", "refit", *POSTERIOR_KINDS),
)
_SAME_KIND = replace(_KIND, required_in=())
_PER_VIEW = ("chain", "draw", "view")
_OF_MODEL = ("model", "view")
_OF_PAIR = ("model", "model_bis", "view")

GROUPS: Mapping[str, Group] = {
    "ksd": Group(
        "the test of each view and of all views together",
        {
            "statistic": Variable(("view",), "float", "the test statistic; of a posterior, the mean over its draws"),
            "p_value": Variable(("view",), "float", "the p-value of the view alone", least=0, most=1),
            "p_value_overall": Variable(
                (),
                "float",
                "the p-value of all views together; 0 if the model gives probability 0 to some sequences",
                least=0,
                most=1,
            ),
            "p_value_possible": Variable(
                (),
                "float",
                "if the model gives probability 0 to some sequences: the p-value of all views together for the others",
                least=0,
                most=1,
                required_in=(),
            ),
            "meaning": Variable(("view",), "string", "what the view looks at"),
            "feature_kind": Variable(
                ("view",), "string", "what the features of the view are, empty if it has none", required_in=_CHECKS
            ),
            "weight": Variable(
                ("view",), "float", "how much the view counts", least=0, required_in=(*_CHECKS, "p-values")
            ),
            "contribution": Variable(
                ("view", "sequence"),
                "float",
                "the share of each sequence in the statistic; NaN for a sequence of partitioned data that is not among "
                "those of the view with the largest shares",
                unknown=True,
                required_in=_CHECKS,
            ),
            "shown_sequence": Variable(
                ("view", "shown"),
                "integer",
                "the sequences with the largest shares, in descending order",
                least=0,
                required_in=_CHECKS,
            ),
            "attribution": Variable(
                ("view", "shown", "position"),
                "float",
                "the share of each of their positions in the statistic, NaN after the end of the sequence",
                unknown=True,
                required_in=_CHECKS,
            ),
            "foreign_share": Variable(
                ("view",),
                "float",
                "a lower bound of the share of sequences that do not come from the model; NaN without features",
                least=0,
                most=1,
                unknown=True,
                required_in=("check",),
            ),
            "foreign_share_overall": Variable(
                (),
                "float",
                "the same by all views together; NaN if none has features",
                least=0,
                most=1,
                unknown=True,
                required_in=("check",),
            ),
            "tolerance_p_value": Variable(
                ("view",),
                "float",
                "with `tolerance=`: the p-value of the hypothesis that this share is at most the tolerance, or NaN",
                least=0,
                most=1,
                unknown=True,
                required_in=(),
            ),
            "tolerance_p_value_overall": Variable(
                (), "float", "the same by all views together", least=0, most=1, unknown=True, required_in=()
            ),
            "discrepancy": Variable(
                ("view",),
                "float",
                "with `tolerance=`: the relative discrepancy; NaN if too few sequences say anything",
                least=0,
                unknown=True,
                required_in=(),
            ),
            "discrepancy_upper": Variable(
                ("view",), "float", "its upper confidence bound", least=0, most=1, unknown=True, required_in=()
            ),
            "gram": Variable(
                ("view", "sequence", "sequence_bis"),
                "float",
                "with `gram=True`: the Stein kernel matrices",
                required_in=(),
            ),
        },
        _VIEW
        | _labels(
            "sequence",
            "integer",
            "rows of the data, without impossible ones; of partitioned data those in `ksd_data`",
            required_in=_CHECKS,
        )
        | _labels("shown", "integer", "ranks of sequences by their shares", required_in=_CHECKS)
        | _labels("position", "integer", "places in a sequence, and the one after its end", required_in=_CHECKS)
        | _labels("sequence_bis", "integer", "with `gram=True`: the same rows again", required_in=()),
        {
            "kind": _KIND,
            "kind_overall": Attribute(
                "string",
                "`impossible` if the model gives probability 0 to some sequences, else the same as `kind`",
                choices=(*_KIND.choices, "impossible"),
                required_in=(),
            ),
            "num_bootstrap": Attribute("integer", "the number of null draws", least=1),
            "level": Attribute("float", "the p-value up to which the verdict rejects the model", least=0, most=1),
            "seed": Attribute("integer", "of all random numbers", least=0, required_in=()),
            "edits": Attribute("string", "the edits that were compared", required_in=()),
            "localized": Attribute(
                "integer",
                "0 if the check did not look where the misfit sits",
                least=0,
                most=1,
                required_in=("p-values",),
            ),
            "tolerance": Attribute("float", "what was passed as `tolerance=`", least=0, most=1, required_in=()),
            "test": Attribute(
                "string",
                "which test it is, if no kernel Stein discrepancy",
                choices=("mmd", "likelihood ratio"),
                required_in=("mmd", "likelihood ratio"),
            ),
            "num_samples": Attribute("integer", "sequences drawn from the model", least=2, required_in=("mmd",)),
            "pseudocount": Attribute("float", "of the fitted alternative", least=0, required_in=("likelihood ratio",)),
            "ratio_error": Attribute(
                "float", "how far log-ratios change with other integration points", least=0, required_in=()
            ),
            "verified_order": Attribute(
                "integer",
                'with `order="auto"`, the order of the tables that gave the log-ratios of drawn data sets',
                least=1,
                required_in=(),
            ),
            "verified_share": Attribute(
                "float",
                "the share of these log-ratios that was compared with the model",
                least=0,
                most=1,
                required_in=(),
            ),
            "num_sequences": Attribute(
                "integer", "of partitioned data: how many sequences were tested", least=2, required_in=()
            ),
            "seconds_model": Attribute("float", "spent in the model", least=0, required_in=()),
            "seconds_kernels": Attribute("float", "spent on Stein features", least=0, required_in=()),
            "seconds_bootstrap": Attribute("float", "spent on null draws", least=0, required_in=()),
            "seconds_posterior": Attribute("float", "spent on posterior draws", least=0, required_in=()),
            "seconds_localization": Attribute("float", "spent on where the misfit sits", least=0, required_in=()),
        },
        required_in=_TESTS,
    ),
    "ksd_null": Group(
        "what the statistics are under a true model",
        {
            "ksd": Variable(_PER_VIEW, "float", "null draws of the statistics; of a posterior, replicated data"),
            "extreme": Variable(
                _PER_VIEW,
                "float",
                "null draws of the largest absolute score of a feature; NaN if the view has none",
                least=0,
                unknown=True,
                required_in=_CHECKS,
            ),
        },
        _DRAWS | _VIEW,
        {"kind": _SAME_KIND},
        required_in=_TESTS,
    ),
    "ksd_ngram": Group(
        "the features of all views that report them one by one",
        {
            "view_name": Variable(("ngram",), "string", "the view that the feature belongs to"),
            "label": Variable(
                ("ngram",), "string", "the feature; `^` is the start of a sequence, `$` its end, `_` any symbol"
            ),
            "mean": Variable(
                ("ngram",),
                "float",
                "the mean Stein feature: above 0, too frequent under the model; below, too rare",
            ),
            "share": Variable(("ngram",), "float", "its share in the statistic"),
            "z": Variable(("ngram",), "float", "its score"),
            "p_value": Variable(
                ("ngram",), "float", "its p-value, adjusted for the number of features", least=0, most=1
            ),
            "symbol": Variable(
                ("ngram", "place"), "integer", "codes of the symbols of an n-gram, padded with -1", least=-1
            ),
            "factor": Variable(
                ("ngram",),
                "float",
                "by which every occurrence must be weighted to agree with the data; NaN unless it stands out",
                least=0,
                most=math.inf,
                unknown=True,
                required_in=("check",),
            ),
            "observed": Variable(
                ("ngram",),
                "float",
                "the mean number in a sequence of the data",
                least=0,
                unknown=True,
                required_in=("check",),
            ),
            "expected": Variable(
                ("ngram",),
                "float",
                "the mean number in a sequence of the model, if it was sampled",
                least=0,
                unknown=True,
                required_in=("check",),
            ),
            "ratio": Variable(
                ("ngram",),
                "float",
                "`observed` by `expected`",
                least=0,
                most=math.inf,
                unknown=True,
                required_in=(),
            ),
        }
        | _ends("factor", ("check",))
        | _ends("observed")
        | _ends("expected")
        | _ends("ratio"),
        _labels("ngram", "integer", "features") | _labels("place", "integer", "places in an n-gram"),
        required_in=_CHECKS,
    ),
    "ksd_factor": Group(
        "with `tolerance=`: whether the most frequent n-grams are off by more than a factor",
        {
            "view_name": Variable(("ngram",), "string", "the view that counts the n-gram"),
            "label": Variable(("ngram",), "string", "the n-gram"),
            "factor": Variable(
                ("ngram",),
                "float",
                "by which every occurrence must be weighted to agree with the data; NaN if it cannot be estimated",
                least=0,
                most=math.inf,
                unknown=True,
            ),
            "within": Variable(("ngram",), "boolean", "whether it is demonstrably within the factor that is tolerated"),
            "outside": Variable(("ngram",), "boolean", "whether it is demonstrably outside"),
            "symbol": Variable(("ngram", "place"), "integer", "codes of the symbols, padded with -1", least=-1),
        }
        | _ends("factor"),
        _labels("ngram", "integer", "n-grams") | _labels("place", "integer", "places in an n-gram"),
        {"tolerance": Attribute("float", "the factor that is tolerated, and its inverse", least=1)},
    ),
    "ksd_edit": Group(
        "the edits with the largest share in the statistics",
        {
            "view_name": Variable(("edit",), "string", "the view"),
            "sequence_index": Variable(("edit",), "integer", "the row of the sequence in the data", least=0),
            "position_index": Variable(("edit",), "integer", "where the edit is", least=0),
            "operation": Variable(("edit",), "string", "the edit in words"),
            "share": Variable(("edit",), "float", "its share in the statistic"),
        },
        _labels("edit", "integer", "edits"),
        required_in=_CHECKS,
    ),
    "ksd_ppc": Group(
        "the statistics for each posterior draw",
        {
            "realized": Variable(_PER_VIEW, "float", "of the data"),
            "replicated": Variable(_PER_VIEW, "float", "of data that the draw's model made"),
            "difference": Variable(_PER_VIEW, "float", "the first minus the second"),
        },
        _DRAWS | _VIEW,
        {"kind": _SAME_KIND},
        required_in=("posterior predictive",),
    ),
    "ksd_fold": Group(
        "the folds of held-out sequences, one by one; a single one for sequences that were put aside",
        {
            "statistic": Variable(
                ("fold", "view"),
                "float",
                "of the fold's sequences; weighted by their number, the mean is that of `ksd`",
            ),
            "p_value": Variable(("fold", "view"), "float", "the p-value of the view in the fold", least=0, most=1),
            "p_value_overall": Variable(
                ("fold",), "float", "the p-value of all views together in the fold", least=0, most=1
            ),
            "num_sequences": Variable(("fold",), "integer", "how many sequences were checked", least=2),
            "fold_index": Variable(("sequence",), "integer", "the fold that the sequence belongs to", least=0),
        },
        _labels("fold", "integer", "folds")
        | _VIEW
        | _labels("sequence", "integer", "rows of the data, without impossible ones"),
        {"kind": _SAME_KIND},
        required_in=_HELD_OUT,
    ),
    "ksd_length": Group(
        "the distribution of the length, if the check looked at it",
        {
            "observed": Variable(("length",), "float", "the share of the data of each length", least=0, most=1),
            "expected": Variable(("length",), "float", "the probability of each length", least=0, most=1),
            "expected_low": Variable(
                ("length",),
                "float",
                "the same, if growth is less probable than estimated by one standard deviation of the sequences' "
                "ratios; without draws",
                least=0,
                most=1,
                required_in=(),
            ),
            "expected_high": Variable(
                ("length",),
                "float",
                "the same, if growth is more probable than estimated by one standard deviation; without draws",
                least=0,
                most=1,
                required_in=(),
            ),
        },
        _labels("length", "integer", "lengths, from 0 on"),
        {
            "num_drawn": Attribute(
                "integer",
                "how many draws from the model its probabilities come from; 0 if they come from its ratios at the data "
                "and, beyond their lengths, at sequences that walks from the data reach, and from a geometric tail",
                least=0,
                required_in=(),
            ),
            "unseen": Attribute(
                "float",
                "the probability of lengths beyond those of the data, on both sides",
                required_in=(),
            ),
            "complete": Attribute(
                "integer",
                "0 if the walks had to end where longer lengths are still not less probable, so that some are missing",
                least=0,
                required_in=(),
            ),
        },
    ),
    "ksd_draws": Group(
        "up to 20 sequences of the model, if it can be sampled",
        _SEQUENCES,
        _labels("sequence", "integer", "rows") | _labels("position", "integer", "places in a sequence"),
    ),
    "ksd_impossible": Group(
        "the sequences to which the model gives probability 0, if there are any; of partitioned data the first 1,000",
        {"site": Variable(("sequence",), "string", "the site that makes it impossible, or empty")},
        _ROWS,
        {"num_sequences": Attribute("integer", "of partitioned data: how many there are", least=1, required_in=())},
    ),
    "ksd_compare": Group(
        "how well each model fits; the last view, `overall`, is all of them together",
        {
            "statistic": Variable(_OF_MODEL, "float", "the statistic of each model, the smaller the better"),
            "standard_error": Variable(_OF_MODEL, "float", "its standard error", least=0),
            "rank": Variable(_OF_MODEL, "integer", "the number of better models, 0 for the best one", least=0),
            "difference": Variable(_OF_PAIR, "float", "statistic of `model` minus that of `model_bis`"),
            "difference_error": Variable(_OF_PAIR, "float", "its standard error", least=0),
            "z": Variable(
                _OF_PAIR,
                "float",
                "difference by standard error, 0 where the difference does not vary; infinite in `overall` if one of "
                "the models gives probability 0 to some sequences, the other to none",
                least=-math.inf,
                most=math.inf,
            ),
            "p_value": Variable(_OF_PAIR, "float", "two-sided p-value of one difference", least=0, most=1),
            "meaning": Variable(("view",), "string", "what the view looks at"),
        },
        _labels("model", "string", "the names of the models")
        | _labels("model_bis", "string", "the same names again")
        | _VIEW,
        {
            "kind": Attribute("string", "the kind of the test", choices=("relative",)),
            "level": Attribute("float", "the p-value up to which a model is called worse", least=0, most=1),
            "num_sequences": Attribute("integer", "the sequences that all models can make", least=3),
            "edits": Attribute("string", "the edits that were compared", required_in=()),
            "without_lengths": Attribute(
                "string",
                "the JSON list of the models that give no probability to lengths, for which all models were compared "
                "given the lengths",
                required_in=(),
            ),
        },
        required_in=("comparison",),
    ),
    "ksd_compare_impossible": Group(
        "the sequences to which some model gives probability 0, if there are any",
        {
            "impossible": Variable(("model", "sequence"), "boolean", "whether the model does"),
            "site": Variable(("model", "sequence"), "string", "the site that makes it impossible, or empty"),
        },
        _labels("model", "string", "the names of the models") | _ROWS,
    ),
    "ksd_monitor": Group(
        "the evidence against a model that a stream of sequences has given",
        {
            "num_sequences": Variable(("look",), "integer", "how many sequences there had been", least=0),
            "log_evidence": Variable(("look", "view"), "float", "the natural log of the evidence of each view"),
            "log_evidence_overall": Variable(("look",), "float", "that of all views together"),
            "p_value": Variable(
                ("view",),
                "float",
                "of each view by itself, one over its largest evidence; not of changes",
                least=0,
                most=1,
            ),
        },
        _labels("look", "integer", "the times at which the evidence was kept") | _VIEW,
        {
            "kind": Attribute("string", "the kind of the result", choices=("monitor",)),
            "level": Attribute("float", "the largest probability of ever rejecting a true model", least=0, most=1),
            "run_length": Attribute(
                "integer",
                "the smallest mean number of sequences until a false alarm, where changes are looked for",
                least=1,
                required_in=(),
            ),
            "first_clear": Attribute(
                "integer", "after how many sequences the evidence was first large enough; -1 if never", least=-1
            ),
            "num_impossible": Attribute("integer", "to how many sequences the model gives probability 0", least=0),
            "most_evidence": Attribute(
                "float",
                "the largest log of the evidence until now; infinite after an impossible sequence",
                least=0,
                most=math.inf,
            ),
            "seed": Attribute("integer", "of all random numbers", least=0),
        },
        required_in=("monitor",),
    ),
    "ksd_monitor_feature": Group(
        "the features of each view of a monitor with the largest scores",
        {
            "view_name": Variable(("feature",), "string", "the view"),
            "label": Variable(("feature",), "string", "the feature, in words"),
            "z": Variable(
                ("feature",),
                "float",
                "the sum of the feature over its spread; above 0 if it is too frequent, or too large, under the model",
            ),
            "num_compared": Variable(("feature",), "integer", "how many features the view has", least=1),
        },
        _labels("feature", "integer", "the features"),
        required_in=("monitor",),
    ),
    "ksd_data": Group(
        "all sequences, also those that are impossible; of partitioned data those that other groups refer to",
        _SEQUENCES,
        _ROWS | _labels("position", "integer", "places in a sequence"),
        {"num_sequences": Attribute("integer", "of partitioned data: how many there are", least=2, required_in=())},
        required_in=(*_TESTS, "comparison"),
    ),
    "posterior_predictive": Group(
        "data sets that the model made, in numbers; with `posterior=` one for each draw, else all with the same "
        "parameters",
        _beside("in each sequence of the replicated data", "chain", "draw"),
        _labels("chain", "integer", "chains", required_in=())
        | _labels("draw", "integer", "data sets", required_in=())
        | _BESIDE,
        {
            "parameters": Attribute(
                "string", "what the data sets were made with", choices=("given", "posterior"), required_in=()
            )
        },
    ),
    "posterior": Group(
        "with `posterior=`: the draws that the check took, one variable for each site of the program",
        {},
        {},
        {"source": Attribute("string", "says that the check has brought them", required_in=())},
    ),
    "observed_data": Group(
        "the same numbers of the data without impossible sequences, for ArviZ to draw beside them; your own variables "
        "may stand beside them",
        _beside("in each sequence of the data"),
        _BESIDE,
    ),
    "log_likelihood": Group(
        "with `posterior=`, if the program is normalized",
        {
            "token": Variable(
                ("chain", "draw", "sequence"),
                "float",
                "the log-probability of each sequence under each draw; given its length, if the program gives no "
                "probabilities to lengths",
                required_in=(),
            )
        },
        _labels("chain", "integer", "chains", required_in=())
        | _labels("draw", "integer", "draws of a chain", required_in=())
        | _labels("sequence", "integer", "rows of the data", required_in=()),
    ),
}
"""The groups of all results that are kept in files."""

POWER: Mapping[str, Variable] = {
    "power": Variable(("view", "n"), "float", "the share of simulated checks that saw the fault", least=0, most=1),
    "lower": Variable(("view", "n"), "float", "the lower end of its 95 % interval", least=0, most=1),
    "upper": Variable(("view", "n"), "float", "the upper end", least=0, most=1),
}
"""The columns of the table that ``power`` gives, by the first level of their names; the second is the sample size."""

POWER_ATTRIBUTES: Mapping[str, str] = {
    "verdict": "from which sample size on the fault is visible",
    "runs": "the number of simulated checks at each sample size",
    "level": "the p-value up to which a check rejects",
    "seed": "of all random numbers",
    "kinds": "by sample size, where the null draws came from",
    "meaning": "by view, what it looks at",
}
"""The attributes of that table, ``table.attrs``."""


def is_required(own: Variable | Attribute, results: Collection[Result]) -> bool:
    """Whether a group that is there must have a variable or attribute, in a container with these results.

    >>> variables = GROUPS["ksd"].variables
    >>> is_required(variables["weight"], ["mmd"]), is_required(variables["p_value"], ["mmd"])
    (False, True)
    """
    return own.required_in is None or any(result in own.required_in for result in results)
