# SPDX-License-Identifier: Apache-2.0
"""Goodness-of-fit checks for Pyro models of variable-length discrete sequences, by kernel Stein discrepancies."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyro_ksd.baselines import likelihood_ratio_check, mmd_check
    from pyro_ksd.check import ksd_check
    from pyro_ksd.comparison import ksd_compare
    from pyro_ksd.containers import extend, to_inference_data
    from pyro_ksd.models import (
        AutoregressiveModel,
        HiddenMarkovSequence,
        IndependentSequence,
        LinearChainMRF,
        MarkovSequence,
    )
    from pyro_ksd.plots import (
        plot_check,
        plot_compare,
        plot_gram,
        plot_ngrams,
        plot_null,
        plot_ppc,
        plot_sequences,
        plot_views,
    )
    from pyro_ksd.posterior import from_pyro
    from pyro_ksd.ranking import compare_table
    from pyro_ksd.sequences import Sequences, split
    from pyro_ksd.tables import summary, verdict
    from pyro_ksd.views import View, default_views
else:
    from importlib import import_module, util

    _MODULES = {
        "baselines": ["likelihood_ratio_check", "mmd_check"],
        "check": ["ksd_check"],
        "comparison": ["ksd_compare"],
        "containers": ["extend", "to_inference_data"],
        "models": [
            *["AutoregressiveModel", "HiddenMarkovSequence", "IndependentSequence", "LinearChainMRF"],
            "MarkovSequence",
        ],
        "plots": [
            *["plot_check", "plot_compare", "plot_gram", "plot_ngrams"],
            *["plot_null", "plot_ppc", "plot_sequences", "plot_views"],
        ],
        "posterior": ["from_pyro"],
        "ranking": ["compare_table"],
        "sequences": ["Sequences", "split"],
        "tables": ["summary", "verdict"],
        "views": ["View", "default_views"],
    }
    _HOME = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name):
        """Imports what is asked for, so that saved checks can be read and drawn without torch and Pyro."""
        if name in _HOME:
            return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        if not name.startswith("_") and util.find_spec(f"{__name__}.{name}"):
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})


__all__ = [
    "AutoregressiveModel",
    "HiddenMarkovSequence",
    "IndependentSequence",
    "LinearChainMRF",
    "MarkovSequence",
    "Sequences",
    "View",
    "compare_table",
    "default_views",
    "extend",
    "from_pyro",
    "ksd_check",
    "ksd_compare",
    "likelihood_ratio_check",
    "mmd_check",
    "plot_check",
    "plot_compare",
    "plot_gram",
    "plot_ngrams",
    "plot_null",
    "plot_ppc",
    "plot_sequences",
    "plot_views",
    "split",
    "summary",
    "to_inference_data",
    "verdict",
]
