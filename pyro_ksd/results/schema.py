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
from collections.abc import Mapping

from pyro_ksd.results.schema_entries import (
    ROWS,
    SEQUENCES,
    TESTS,
    VIEW,
    Attribute,
    Group,
    Variable,
    labels_along,
)
from pyro_ksd.results.schema_of_misfit import MISFIT
from pyro_ksd.results.schema_of_statistics import STATISTICS

SCHEMA_VERSION = 2
"""Kept in the attribute ``schema_version`` at the root of a result."""

_BESIDE = (
    labels_along("sequence", "integer", "rows of the data", required_in=())
    | labels_along("position", "integer", "places in a sequence", required_in=())
    | labels_along("symbol", "string", "the 30 most frequent symbols of the data, or all", required_in=())
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


_OF_MODEL = ("model", "view")
_OF_PAIR = ("model", "model_bis", "view")

GROUPS: Mapping[str, Group] = {
    **STATISTICS,
    **MISFIT,
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
        labels_along("model", "string", "the names of the models")
        | labels_along("model_bis", "string", "the same names again")
        | VIEW,
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
        labels_along("model", "string", "the names of the models") | ROWS,
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
        labels_along("look", "integer", "the times at which the evidence was kept") | VIEW,
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
        labels_along("feature", "integer", "the features"),
        required_in=("monitor",),
    ),
    "ksd_data": Group(
        "all sequences, also those that are impossible; of partitioned data those that other groups refer to",
        SEQUENCES,
        ROWS | labels_along("position", "integer", "places in a sequence"),
        {"num_sequences": Attribute("integer", "of partitioned data: how many there are", least=2, required_in=())},
        required_in=(*TESTS, "comparison"),
    ),
    "posterior_predictive": Group(
        "data sets that the model made, in numbers; with `posterior=` one for each draw, else all with the same "
        "parameters",
        _beside("in each sequence of the replicated data", "chain", "draw"),
        labels_along("chain", "integer", "chains", required_in=())
        | labels_along("draw", "integer", "data sets", required_in=())
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
        "can be in the same group",
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
        labels_along("chain", "integer", "chains", required_in=())
        | labels_along("draw", "integer", "draws of a chain", required_in=())
        | labels_along("sequence", "integer", "rows of the data", required_in=()),
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
