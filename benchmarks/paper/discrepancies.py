# SPDX-License-Identifier: Apache-2.0
"""The page on what the paper says, what its numbers use, and what this package does, with the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from benchmarks.paper.mrf import repeating_field
from benchmarks.paper.results import PUBLISHED, deviations, rates
from benchmarks.scenario_models import first_order, second_order
from pyro_ksd.kernels import HammingKernel
from pyro_ksd.models import LinearChainMRF, MarkovSequence
from pyro_ksd.sequences.container import Sequences

_FAR = 3  # standard errors
_TEXT_ROWS = ("binary, wrong order", "random walk II", "random walk III", "random walk IV")


@dataclass(frozen=True)
class Entry:
    """One discrepancy, in sentences."""

    title: str
    says: str
    uses: str
    ours: str
    evidence: str

    def __str__(self) -> str:
        return f"""## {self.title}

- **The paper says:** {self.says}
- **Its numbers use:** {self.uses}
- **We do:** {self.ours}
- **Evidence:** {self.evidence}"""


def discrepancies(results: dict[str, xr.Dataset]) -> str:
    """The page in Markdown, with the entries whose experiments are among the results."""
    found: list[tuple[tuple[str, ...], Callable[..., Entry]]] = [
        (("scenarios_text",), _subsequence_kernel),
        ((), _hamming_sign),
        (("scenarios_hamming", "ring_kernel"), _ring_kernel),
        ((), _ring_modulus),
        ((), _replaced_symbol),
        (("scenarios_csk", "scenarios_text"), _coin),
        (("scenarios_csk", "scenarios_text"), _walk),
        (("scenarios_csk", "scenarios_text"), _memory),
        ((), _restarts),
        (("balancing",), _balancing),
        (("perturbed_walk",), _perturbed_walk),
        (("long_sequences", "long_sequences_text"), _long_sequences),
        ((), _field_length),
        (("wild_level",), _weights),
    ]
    entries = [entry(*(results[name] for name in names)) for names, entry in found if set(names) <= set(results)]
    return "\n\n".join([_HEAD, *map(str, entries)]) + "\n"


_HEAD = """# What the paper says, what its numbers use, what we do

The text of the paper, its formulas and its printed numbers do not agree everywhere. This page lists each disagreement
with the evidence. `python -m benchmarks.paper.page` wrote this page from the results of [the experiments](results.md).
Published figures are from the paper's table of individual scenarios."""


def _subsequence_kernel(result: xr.Dataset) -> Entry:
    same = result.drop_sel(point=[point for point in _TEXT_ROWS if point in result["point"].values])
    forms = {"square roots": "CSK", "cosine": "CSK (cosine)"}
    lines = []
    for family in ("ZS", "ZS′"):
        published = same["published"].sel(test=f"CSK {family} J=∞")
        for form, kernel in forms.items():
            ours = rates(same).sel(test=f"{kernel} {family} J=∞")
            worst = abs(ours - published)
            lines.append(
                f"{family}, {form}: mean {float(ours.mean()):.3f}, farthest from the published figure "
                f"{float(worst.max()):.3f} ({worst.idxmax('point').item()})"
            )
        lines.append(f"{family}, published: mean {float(published.mean()):.3f}")
    return Entry(
        "The contiguous subsequence kernel",
        "the cosine of the vectors of n-gram counts.",
        "the inner product of the square roots of the n-gram frequencies.",
        'square roots by default, `ContiguousKernel(t, form="cosine")` for the other. The values of the authors\' own '
        "code, which `tests/golden` holds, are those of the square roots.",
        f"power in the {same.sizes['point']} scenarios whose models the text does not change, J = ∞. "
        f"{'; '.join(lines)}.",
    )


def _hamming_sign() -> Entry:
    cube = Sequences.of(torch.cartesian_prod(*[torch.arange(2)] * 3), 2)
    mismatches = HammingKernel().gram(cube, cube)
    matches = torch.exp(-(3 + 3 * mismatches.log()) / 3)
    smallest = [float(torch.linalg.eigvalsh(gram)[0]) for gram in (matches, mismatches)]
    return Entry(
        "The Hamming kernel",
        "exp(−matches / ℓ).",
        "exp(−mismatches / ℓ).",
        "mismatches. A function that grows with the number of differences is not a kernel.",
        f"the smallest eigenvalue of the matrix of all binary sequences of length 3 is {smallest[0]:.2f} with matches "
        f"and {smallest[1]:.2f} with mismatches.",
    )


def _ring_kernel(result: xr.Dataset, ring: xr.Dataset) -> Entry:
    tests = ring["test"].values
    walks = result.sel(point=ring["point"].values, test=tests)
    counts = [f"{int((deviations(one) <= _FAR).sum())}" for one in (walks, ring)]
    known = int(ring["published"].notnull().sum())
    total = [float(abs(rates(one) - one["published"]).mean()) for one in (walks, ring)]
    return Entry(
        "“Hamming” in the random walks",
        "the Hamming kernel in all scenarios.",
        "it seems, the cyclic Gaussian kernel of the ring in the four random walks.",
        "both kernels exist; the table is done with Hamming, and again with the cyclic Gaussian for the walks.",
        f"of the {known} published cells with J = 1, 3, ∞, {counts[0]} lie within {_FAR} standard errors with Hamming "
        f"and {counts[1]} with the cyclic Gaussian; mean distance {total[0]:.3f} and {total[1]:.3f}.",
    )


def _ring_modulus() -> Entry:
    symbols = 4
    errors = []
    for modulus in (symbols - 1, symbols):
        pairs = [(s, (s + step) % modulus) for s in range(symbols) for step in (-1, 1)]
        errors.append(_identity_error(partial(_substitutes, of=lambda _, s: s, pairs=pairs)))
    return Entry(
        "The ring of symbols",
        "neighbors on the ring are taken modulo S − 1.",
        "modulo S.",
        "modulo S. With S − 1 the last symbol has neighbors that do not have it in turn, and the Stein identity fails.",
        f"the largest expectation of the operator under its own model, computed exactly on all sequences of up to 3 of "
        f"{symbols} symbols: {errors[0]:.2g} modulo S − 1, {errors[1]:.1g} modulo S.",
    )


def _replaced_symbol() -> Entry:
    pairs = [(s, (s + step) % 4) for s in range(4) for step in (-1, 1)]
    last = _identity_error(partial(_substitutes, of=lambda x, _: x[-1], pairs=pairs))
    replaced = _identity_error(partial(_substitutes, of=lambda _, s: s, pairs=pairs))
    return Entry(
        "Which symbol's neighborhood",
        "a symbol anywhere is replaced by neighbors of the *last* symbol.",
        "neighbors of the symbol that is replaced.",
        "neighbors of the symbol that is replaced; otherwise edits have no way back.",
        f"exact expectation of the operator under its own model as before: {last:.2g} with the last symbol, "
        f"{replaced:.1g} with the replaced one.",
    )


def _substitutes(
    x: tuple[int, ...], of: Callable[[tuple[int, ...], int], int], pairs: list[tuple[int, int]]
) -> set[tuple[int, ...]]:
    """All substitutions of one symbol by a neighbor of the symbol that ``of`` names."""
    found = set()
    for place, symbol in enumerate(x):
        near = {there for here, there in pairs if here == of(x, symbol)} - {symbol}
        found |= {(*x[:place], other, *x[place + 1 :]) for other in near}
    return found


def _identity_error(neighbors: Callable[[tuple[int, ...]], set[tuple[int, ...]]]) -> float:
    """The largest expectation of ``A f`` over all indicators ``f``: a field on sequences of up to 3 of 4 symbols."""
    space = [tuple(row) for length in (1, 2, 3) for row in np.ndindex(*[4] * length)]
    index = {x: row for row, x in enumerate(space)}
    field = LinearChainMRF(torch.arange(16.0).view(4, 4).sin().double(), max_length=3)
    log_p = field.log_joint(Sequences.of([list(x) for x in space], 4))
    flow = torch.zeros(len(space), dtype=torch.double)
    for x in space:
        for y in neighbors(x):
            here = index[x]
            there = index[y]
            rate = log_p[here].exp() * torch.sigmoid(log_p[there] - log_p[here])
            flow[here] -= rate
            flow[there] += rate
    return float(flow.abs().max())


def _rows(result: xr.Dataset, point: str, tests: list[str]) -> str:
    return ", ".join(f"{test} {float(rates(result).sel(point=point, test=test)):.3f}" for test in tests)


def _published_row(point: str, tests: list[str]) -> str:
    return ", ".join(f"{test} {PUBLISHED['scenarios'][point][test]:.3f}" for test in tests)


_COMPARED = ["CSK ZS J=1", "CSK ZS J=3", "CSK ZS J=∞", "CSK ZS′ J=3", "CSK MMD"]


def _coin(result: xr.Dataset, text: xr.Dataset) -> Entry:
    point = "binary, wrong order"
    return Entry(
        "Binary sequences of the wrong order",
        "the model is i.i.d. with probability 0.6, the data are strictly alternating; the printed kernel of the data "
        "(it stays where it is) is a slip for the alternating one.",
        "probability 0.5.",
        "0.5 in the table, 0.6 in an extra one.",
        f"published: {_published_row(point, _COMPARED)}; with 0.5: {_rows(result, point, _COMPARED)}; with 0.6: "
        f"{_rows(text, point, _COMPARED)}.",
    )


def _walk(result: xr.Dataset, text: xr.Dataset) -> Entry:
    point = "random walk II"
    return Entry(
        "Random walk II",
        "a ring of 30 places, of which 8 may hold; 8 sequences.",
        "a ring of 8 places that may all hold; 10 sequences.",
        "a ring of 8 and 10 sequences in the table, the other in an extra one.",
        f"published: {_published_row(point, _COMPARED)}; ring of 8: {_rows(result, point, _COMPARED)}; ring of 30: "
        f"{_rows(text, point, _COMPARED)}.",
    )


def _memory(result: xr.Dataset, text: xr.Dataset) -> Entry:
    shown = [
        f"{point}: published {_published_row(point, _COMPARED)}; "
        f"steps to the right alone {_rows(result, point, _COMPARED)}; both directions {_rows(text, point, _COMPARED)}"
        for point in ("random walk III", "random walk IV")
    ]
    return Entry(
        "Random walks III and IV: which steps are remembered",
        "a step is repeated with probability δ, whatever its direction.",
        "only steps to the right are remembered; after a step to the left the walk goes either way.",
        "the memory of the numbers in the table, that of the text in an extra one.",
        "the transition probabilities of a walk with memory in the authors' own code, which `tests/golden` holds and a "
        f"test compares with ours; and the power. {'. '.join(shown)}.",
    )


def _restarts() -> Entry:
    smallest = min(float(_moves(model).min()) for model in (second_order("model", 8), first_order(8)))
    return Entry(
        "Impossible sequences",
        "every chain restarts at a random symbol with a probability of about 0.001.",
        "no transition probability below 0.001, then normalized.",
        "the same floor.",
        f"the smallest probability of a next symbol in the published tables of the random scenarios is {smallest:.5f}; "
        "with restarts over ten symbols it could be 0.0001.",
    )


def _moves(model: MarkovSequence) -> Tensor:
    """The law of the next symbol given that there is one, for all contexts inside a sequence."""
    inner = model.probs[(slice(None, -1),) * model.order]
    return inner[..., :-1] / (1 - inner[..., -1:])


def _balancing(result: xr.Dataset) -> Entry:
    tests = [str(test).removesuffix(" barker") for test in result["test"].values if str(test).endswith(" barker")]
    lines = []
    for test in tests:
        distance = {
            name: np.sqrt(
                np.mean(
                    [
                        (float(rates(result).sel(point=point, test=f"{test} {name}")) - row[name]) ** 2
                        for point, row in PUBLISHED["balancing"].items()
                    ]
                )
            )
            for name in ("barker", "mpf")
        }
        lines.append(f"{test.removeprefix('CSK ')}: {distance['barker']:.3f} and {distance['mpf']:.3f}")
    return Entry(
        "The table of balancing functions",
        "neither neighborhood nor J of this table.",
        "some J below ∞: the column of Barker is well below that of J = ∞ in the large table.",
        "J = 5, 7 and ∞ with ZS and ZS′.",
        f"root mean square distance to the published columns of Barker and MPF: {'; '.join(lines)}.",
    )


def _perturbed_walk(result: xr.Dataset) -> Entry:
    found = rates(result).sel(test=["KSD", "KSD, ZS"])
    worst = float(abs(found.diff("test")).max())
    return Entry(
        "The perturbed walk",
        "all edits (ZS).",
        "substitutions (ZS′).",
        "both; the paper gives no numbers to compare with.",
        f"the two differ by at most {worst:.3f} in power.",
    )


def _long_sequences(result: xr.Dataset, text: xr.Dataset) -> Entry:
    power = [float(rates(one).sel(test="KSD", point=20.0)) for one in (result, text)]
    return Entry(
        "Few long sequences",
        "8 symbols, all edits (ZS).",
        "4 symbols, substitutions (ZS′).",
        "4 symbols, and 8 as an extra experiment.",
        f"power of the KSD at a mean length of 20: {power[0]:.3f} with 4 symbols, {power[1]:.3f} with 8.",
    )


def _field_length() -> Entry:
    drawn = repeating_field(1.0).draw(100_000, torch.Generator().manual_seed(0)).lengths.double()
    return Entry(
        "The length in the Markov random field",
        "a mean length of 10, whatever θ.",
        "lengths uniform on 1 to 20.",
        "lengths uniform on 1 to 20.",
        f"mean of 100,000 draws: {float(drawn.mean()):.2f}.",
    )


def _weights(result: xr.Dataset) -> Entry:
    rate = rates(result)
    lines = [
        f"{test}: " + ", ".join(f"{float(rate.sel(point=n, test=test)):.3f} (n = {n:g})" for n in rate["point"].values)
        for test in map(str, rate["test"].values)
    ]
    return Entry(
        "Weights of the wild bootstrap",
        "multinomial counts minus 1.",
        "multinomial counts minus 1.",
        "random signs. Multinomial weights reject a true model too often where there are few sequences.",
        f"rejections of a true random walk at level 0.05: {'; '.join(lines)}.",
    )
