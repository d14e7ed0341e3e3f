# SPDX-License-Identifier: Apache-2.0
"""The schema of the groups that say where the misfit sits and how large it is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pyro_ksd.results.schema_entries import (
    CHECKS,
    ROWS,
    SEQUENCES,
    Attribute,
    Group,
    Variable,
    interval_ends,
    labels_along,
)

MISFIT: Mapping[str, Group] = {
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
                "by which the model would have to multiply the probability of a sequence, for each occurrence, to "
                "agree with the data; NaN unless it stands out",
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
        | interval_ends("factor", ("check",))
        | interval_ends("observed")
        | interval_ends("expected")
        | interval_ends("ratio"),
        labels_along("ngram", "integer", "features") | labels_along("place", "integer", "places in an n-gram"),
        required_in=CHECKS,
    ),
    "ksd_factor": Group(
        "with `tolerance=`: whether the most frequent n-grams are off by more than a factor",
        {
            "view_name": Variable(("ngram",), "string", "the view that counts the n-gram"),
            "label": Variable(("ngram",), "string", "the n-gram"),
            "factor": Variable(
                ("ngram",),
                "float",
                "by which the model would have to multiply the probability of a sequence, for each occurrence, to "
                "agree with the data; NaN if it cannot be estimated",
                least=0,
                most=math.inf,
                unknown=True,
            ),
            "within": Variable(("ngram",), "boolean", "whether it is demonstrably within the factor that is tolerated"),
            "outside": Variable(("ngram",), "boolean", "whether it is demonstrably outside"),
            "symbol": Variable(("ngram", "place"), "integer", "codes of the symbols, padded with -1", least=-1),
        }
        | interval_ends("factor"),
        labels_along("ngram", "integer", "n-grams") | labels_along("place", "integer", "places in an n-gram"),
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
        labels_along("edit", "integer", "edits"),
        required_in=CHECKS,
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
        labels_along("length", "integer", "lengths, from 0 on"),
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
        SEQUENCES,
        labels_along("sequence", "integer", "rows") | labels_along("position", "integer", "places in a sequence"),
    ),
    "ksd_impossible": Group(
        "the sequences to which the model gives probability 0, if there are any; of partitioned data the first 1,000",
        {"site": Variable(("sequence",), "string", "the site that makes it impossible, or empty")},
        ROWS,
        {"num_sequences": Attribute("integer", "of partitioned data: how many there are", least=1, required_in=())},
    ),
}
"""Features, edits, lengths and sequences that stand out, by group."""
