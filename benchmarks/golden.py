# SPDX-License-Identifier: Apache-2.0
"""Compares the engine with reference values: ``python -m benchmarks.golden FILE``.

The file is a JSON list of cases. A case has a small model, sequences, a neighborhood, a balancing function and a
kernel, and the values of another implementation: the base kernel matrix, the Stein kernel matrix, the U-statistic and,
in some cases, the coefficients of the operator at the first sequence.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyro.distributions as dist
import torch
from torch import Tensor
from tqdm import tqdm

from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, InsertionsDeletions, Neighborhood, Substitutions
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.kernels import ContiguousKernel, CyclicGaussianKernel, DiracKernel, HammingKernel, Kernel
from pyro_ksd.models import IndependentSequence, LinearChainMRF, MarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted_edits

TOLERANCE = 1e-9
BALANCING = {"barker": "barker", "mpf": "mpf", "mh": "metropolis"}


def model_of(case: dict[str, Any]) -> SequenceModel:
    """The model of a case."""
    spec = case["model"]
    if spec["kind"] == "markov":
        table = torch.tensor(spec["table"], dtype=torch.double)
        # Reference tables have the boundary first, ours have it last; some have starts that do not sum to 1.
        last = table.roll([-1] * table.ndim, list(range(table.ndim)))
        return MarkovSequence(last, order=spec["order"], validate_args=False)
    if spec["kind"] == "poisson_bernoulli":
        p = torch.tensor(spec["p"], dtype=torch.double)
        return IndependentSequence(
            torch.stack([1 - p, p]), dist.Poisson(torch.tensor(spec["mean_length"], dtype=torch.double))
        )
    if spec["kind"] == "mrf":
        same = spec["theta"] * torch.eye(case["alphabet_size"], dtype=torch.double)
        unary = torch.full((case["alphabet_size"],), spec["length_potential"], dtype=torch.double)
        return LinearChainMRF(same, unary, max_length=spec["max_length"])
    raise ValueError(f"model: expected markov, poisson_bernoulli or mrf, found {spec['kind']!r}")


def neighborhood_of(case: dict[str, Any]) -> Neighborhood:
    """The neighborhood of a case."""
    spec = case["neighborhood"]
    edits = set(spec["edits"])
    locations = spec["locations"]
    symbols = spec["cyclic_range"]
    parts: list[Neighborhood] = []
    if "sub" in edits:
        parts.append(Substitutions(locations, symbols))
    if {"ins", "del"} <= edits:
        parts.append(InsertionsDeletions(locations))
    if "sub2" in edits:
        parts.append(DoubleSubstitutions(locations, symbols))
    if not parts or edits - {"sub", "ins", "del", "sub2"} or len(edits & {"ins", "del"}) == 1:
        raise ValueError(f"edits: expected sub, ins and del (together), sub2, found {sorted(edits)}")
    return parts[0] if len(parts) == 1 else parts[0] | parts[1] if len(parts) == 2 else parts[0] | parts[1] | parts[2]


def kernel_of(case: dict[str, Any]) -> Kernel:
    """The kernel of a case."""
    spec = case["kernel"]
    if spec["kind"] == "contiguous":
        return ContiguousKernel(spec["min_length"], spec["max_length"])
    kernels: dict[str, Kernel] = {
        "hamming": HammingKernel(),
        "cyclic_gaussian": CyclicGaussianKernel(),
        "length_dirac": DiracKernel(on="length"),
    }
    if spec["kind"] not in kernels:
        raise ValueError(f"kernel: expected contiguous or one of {sorted(kernels)}, found {spec['kind']!r}")
    return kernels[spec["kind"]]


def relative_error(found: Tensor, expected: Tensor, scale: float) -> float:
    """The largest difference, relative to the expected value or, where terms cancel, to ``1e-6`` of their scale."""
    if found.shape != expected.shape:
        raise ValueError(f"expected shape {list(expected.shape)}, found {list(found.shape)}")
    floor = max(1e-6 * scale, torch.finfo(torch.double).tiny)
    return float(((found - expected).abs() / expected.abs().clamp(min=floor)).max()) if found.numel() else 0.0


def errors(case: dict[str, Any]) -> dict[str, float]:
    """The relative errors of the quantities of a case."""
    model = model_of(case)
    kernel = kernel_of(case)
    operator = ZanellaOperator(neighborhood_of(case), BALANCING[case["balancing"]])
    sequences = Sequences.of(case["sequences"], case["alphabet_size"])
    matrix = stein_matrices(model, sequences, [View(case["name"], operator, kernel)])[0]
    base = torch.tensor(case["base_kernel_matrix"], dtype=torch.double)
    stein = torch.tensor(case["stein_kernel_matrix"], dtype=torch.double)
    scale = float(stein.abs().max())
    found = {
        "base kernel": relative_error(kernel.gram(sequences, sequences), base, 1.0),
        "Stein matrix": relative_error(matrix.dense(), stein, scale),
        "U": relative_error(u_statistic(matrix), torch.tensor(case["u_statistic"], dtype=torch.double), scale),
    }
    if "operator_on_first_sequence" in case:
        found["operator"] = operator_error(model, operator, sequences, case["operator_on_first_sequence"])
    return found


def operator_error(
    model: SequenceModel, operator: ZanellaOperator, sequences: Sequences, coefficients: list[dict[str, Any]]
) -> float:
    """The relative error of the operator's coefficients at the first sequence; infinite if it meets other sequences."""
    first = sequences[:1]
    around = weighted_edits(model, operator, first)
    weights = around.weights
    neighbors = map(tuple, around.edits.apply(first).to_lists())
    found = dict(zip(neighbors, weights.tolist(), strict=True)) | {tuple(first.to_lists()[0]): -float(weights.sum())}
    expected = {tuple(entry["sequence"]): entry["coefficient"] for entry in coefficients}
    if any(found.get(x, 0.0) != 0.0 for x in found.keys() - expected.keys()):
        return float("inf")
    pairs = torch.tensor([[found.get(x, 0.0), value] for x, value in expected.items()], dtype=torch.double)
    return relative_error(pairs[:, 0], pairs[:, 1], 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.golden", description=__doc__)
    parser.add_argument("file", type=Path)
    cases = json.loads(parser.parse_args().file.read_text())
    worst: dict[str, tuple[float, str]] = {}
    for case in tqdm(cases, unit="case"):
        for quantity, error in errors(case).items():
            worst[quantity] = max(worst.get(quantity, (-1.0, "")), (error, case["name"]))
    for quantity, (error, name) in worst.items():
        print(f"{quantity:>12}: largest relative error {error:.2e} ({name})")
    largest = max((error for error, _ in worst.values()), default=float("inf"))
    verdict = "within" if largest <= TOLERANCE else "above"
    print(f"{len(cases)} cases, largest relative error {largest:.2e}, {verdict} {TOLERANCE:g}")
    return int(not largest <= TOLERANCE)


if __name__ == "__main__":
    raise SystemExit(main())
