# SPDX-License-Identifier: Apache-2.0
"""The schema of the groups that hold statistics, their null draws and p-values."""

from __future__ import annotations

from collections.abc import Mapping

from pyro_ksd.results.schema_entries import (
    CHECKS,
    DRAWS,
    HELD_OUT,
    KIND,
    PER_VIEW,
    SAME_KIND,
    TESTS,
    VIEW,
    Attribute,
    Group,
    Variable,
    labels_along,
)

STATISTICS: Mapping[str, Group] = {
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
                ("view",), "string", "what the features of the view are, empty if it has none", required_in=CHECKS
            ),
            "weight": Variable(
                ("view",), "float", "how much the view counts", least=0, required_in=(*CHECKS, "p-values")
            ),
            "contribution": Variable(
                ("view", "sequence"),
                "float",
                "the share of each sequence in the statistic; NaN for a sequence of partitioned data that is not among "
                "those of the view with the largest shares",
                unknown=True,
                required_in=CHECKS,
            ),
            "shown_sequence": Variable(
                ("view", "shown"),
                "integer",
                "the sequences with the largest shares, in descending order",
                least=0,
                required_in=CHECKS,
            ),
            "attribution": Variable(
                ("view", "shown", "position"),
                "float",
                "the share of each of their positions in the statistic, NaN after the end of the sequence",
                unknown=True,
                required_in=CHECKS,
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
        VIEW
        | labels_along(
            "sequence",
            "integer",
            "rows of the data, without impossible ones; of partitioned data those in `ksd_data`",
            required_in=CHECKS,
        )
        | labels_along("shown", "integer", "ranks of sequences by their shares", required_in=CHECKS)
        | labels_along("position", "integer", "places in a sequence, and the one after its end", required_in=CHECKS)
        | labels_along("sequence_bis", "integer", "with `gram=True`: the same rows again", required_in=()),
        {
            "kind": KIND,
            "kind_overall": Attribute(
                "string",
                "`impossible` if the model gives probability 0 to some sequences, else the same as `kind`",
                choices=(*KIND.choices, "impossible"),
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
            "verified_states": Attribute(
                "integer",
                'with `order="auto"`, the number of states of the automata that gave the log-ratios of drawn data sets',
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
        required_in=TESTS,
    ),
    "ksd_null": Group(
        "what the statistics are under a true model",
        {
            "ksd": Variable(PER_VIEW, "float", "null draws of the statistics; of a posterior, replicated data"),
            "extreme": Variable(
                PER_VIEW,
                "float",
                "null draws of the largest absolute score of a feature; NaN if the view has none",
                least=0,
                unknown=True,
                required_in=CHECKS,
            ),
        },
        DRAWS | VIEW,
        {"kind": SAME_KIND},
        required_in=TESTS,
    ),
    "ksd_ppc": Group(
        "the statistics for each posterior draw",
        {
            "realized": Variable(PER_VIEW, "float", "of the data"),
            "replicated": Variable(PER_VIEW, "float", "of data that the draw's model made"),
            "difference": Variable(PER_VIEW, "float", "the first minus the second"),
        },
        DRAWS | VIEW,
        {"kind": SAME_KIND},
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
        labels_along("fold", "integer", "folds")
        | VIEW
        | labels_along("sequence", "integer", "rows of the data, without impossible ones"),
        {"kind": SAME_KIND},
        required_in=HELD_OUT,
    ),
}
"""The test itself, by group."""
