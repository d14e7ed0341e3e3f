# SPDX-License-Identifier: Apache-2.0
"""All experiments by name."""

from __future__ import annotations

from benchmarks.paper.experiment import Experiment
from benchmarks.paper.language_model import LANGUAGE_MODEL
from benchmarks.paper.mrf import MRF_CONCENTRATION, MRF_SIZE
from benchmarks.paper.perturbed import LENGTH, LONG_SEQUENCES, LONG_SEQUENCES_TEXT, PERTURBED_WALK
from benchmarks.paper.scenarios import (
    BALANCING,
    MMD_ONE_SAMPLE,
    REDRAWN,
    RING_KERNEL,
    SCENARIOS_CSK,
    SCENARIOS_HAMMING,
    SCENARIOS_TEXT,
    SHARED_NULL,
    SYMBOLS,
)
from benchmarks.paper.wild_level import WILD_LEVEL

_ALL = (
    SCENARIOS_CSK,
    SCENARIOS_HAMMING,
    SCENARIOS_TEXT,
    RING_KERNEL,
    REDRAWN,
    MMD_ONE_SAMPLE,
    SHARED_NULL,
    SYMBOLS,
    BALANCING,
    PERTURBED_WALK,
    LONG_SEQUENCES,
    LONG_SEQUENCES_TEXT,
    LENGTH,
    MRF_CONCENTRATION,
    MRF_SIZE,
    LANGUAGE_MODEL,
    WILD_LEVEL,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
