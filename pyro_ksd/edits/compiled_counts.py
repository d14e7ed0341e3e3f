# SPDX-License-Identifier: Apache-2.0
"""Loops over the edits of sequences, compiled by numba: changes of counts of windows.

A row is handled at a time. Around each place of it, what an edit destroys is found once for all edits there: destroyed
windows are really taken out of the counts. Created ones are put in one after the other and taken out again, so that
counts change by one and equal windows need no search. An inserted symbol adds one product to the code of a window.

A compiled loop calls only compiled functions of its own module: numba compiles a function again if its own file has
changed, but not if a function that it calls has changed in another file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyro_ksd.common.compilation import compiled, inlined
from pyro_ksd.edits.flat_edits import FlatEdits
from pyro_ksd.edits.window_arrays import FREE, Coefficients, Counting, Entries, Models, Scratch, Slots


@compiled
def _scratch(counting: Counting, edits: FlatEdits) -> Scratch:
    most = len(counting.digits)
    for block in range(len(edits.shapes)):
        most = max(most, len(counting.digits) + max(edits.shapes[block, 0], edits.shapes[block, 1]))
    return Scratch(
        np.empty(counting.tokens.shape[1] + 1, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.zeros(most, np.bool_),
    )


@inlined
def _outer_codes(
    tokens: np.ndarray, length: int, start: int, removed: int, arrived: int, digits: np.ndarray, codes: np.ndarray
) -> tuple[int, int]:
    """Codes of the windows that a splice creates, without what the inserted symbols add.

    :param codes: gets the code of the window that ends at ``start + j`` as its entry ``j``.
    :returns: the first and the last such ``j`` plus 1.
    """
    width = len(digits)
    growth = arrived - removed
    first = max(0, width - 1 - start)
    last = min(arrived + width - 1, length + growth - start)
    for j in range(first, last):
        code = 0
        for back in range(j - arrived + 1):  # symbols after the inserted ones
            code += digits[back] * tokens[start + j - back - growth]
        for back in range(j + 1, width):  # before them
            code += digits[back] * tokens[start + j - back]
        codes[j] = code
    return first, last


@compiled
def _first_slot(code: int, mask: int) -> int:
    """Where to look first for a code in a hash table of ``mask + 1`` slots, a power of 2."""
    return (code ^ (code >> 7) ^ (code >> 19)) * 40503 & mask


@compiled
def _slot(code: int, keys: np.ndarray, claimed: np.ndarray) -> int:
    """The slot of a code; a free one if it has none yet."""
    if len(keys) == 0:
        return code
    mask = len(keys) - 1
    slot = _first_slot(code, mask)
    while keys[slot] != code:
        if keys[slot] == FREE:
            keys[slot] = code
            claimed[0] += 1
            claimed[claimed[0]] = slot
            break
        slot = (slot + 1) & mask
    return slot


@compiled
def _scale(energy: float, divisor: float, has_windows: bool, by_energy: bool) -> float:
    if by_energy:
        return float(1 / np.sqrt(divisor * energy)) if has_windows else 0.0
    return float(1 / np.sqrt(divisor))


@compiled
def _look_up(code: int, known: np.ndarray, total: np.ndarray) -> float:
    """The coefficient of a feature that the sequence itself does not have."""
    column = np.searchsorted(known, code)
    if column < len(known) and known[column] == code:
        return float(total[column])
    return 0.0


@inlined
def _visit_row(
    row: int,
    counting: Counting,
    edits: FlatEdits,
    slots: Slots,
    scratch: Scratch,
    values: np.ndarray,
    weights: Any,
    models: Any,
    coefficients: Any,
    steps: Any,
) -> None:
    r"""All edits of one row, for one of three purposes; what the others need is ``None``.

    With weights ``[E]``, adds the Stein features to ``values [slots]``. With several models, adds those under each of
    them to ``values [slots, K]``. With coefficients, ``values`` are those of the witness, NaN where they are to be
    looked up, and ``steps [E]`` gets how far each edit moves along it.
    """
    # Numba counts references: each array is taken out of its tuple once, and none is passed on for each edit.
    tokens = counting.tokens[row]
    length = counting.lengths[row]
    size = counting.size
    digits = counting.digits
    transformed = counting.transformed
    step = counting.step
    gain = counting.gain
    divisors = counting.divisors
    by_energy = counting.by_energy
    counts = slots.counts
    keys = slots.keys
    claimed = slots.claimed
    starts = edits.start
    firsts = edits.first
    inserted = edits.inserted
    if coefficients is not None:
        known = coefficients.codes
        total = coefficients.total
    if models is not None:
        each = models.weights
        here = models.here
        shared = models.common
        num_models = each.shape[1]
        shared[:] = 0.0
    mask = len(keys) - 1
    by_counts = by_energy and gain[1] != gain[0]  # else the scale depends on the length alone
    width = len(digits)
    own = scratch.own
    codes = scratch.codes
    created = scratch.created
    stays = scratch.stays
    energy = 0.0
    for end in range(width - 1, length):
        code = 0
        for back in range(width):
            code += digits[back] * tokens[end - back]
        slot = code if mask < 0 else _slot(code, keys, claimed)
        if coefficients is not None:  # noqa: SIM102  # by this test alone numba leaves the branch out
            if np.isnan(values[slot]):
                values[slot] = _look_up(code, known, total)
        own[end] = slot
        energy += gain[counts[slot]]
        counts[slot] += 1
    old_scale = _scale(energy, divisors[length], length >= width, by_energy)
    common = 0.0
    if coefficients is not None:
        for end in range(width - 1, length):
            common += values[own[end]] * transformed[counts[own[end]]] / counts[own[end]]
    for block in range(len(edits.shapes)):
        removed = edits.shapes[block, 0]
        arrived = edits.shapes[block, 1]
        first_symbol = edits.symbols[block]
        new_length = length + arrived - removed
        divisor = divisors[max(new_length, 0)]
        num_windows = max(new_length - width + 1, 0)
        scale = _scale(num_windows * gain[0], divisor, num_windows > 0, by_energy)
        is_swap = removed == 1 and arrived == 1
        for j in range(width):
            stays[j] = is_swap and digits[j] == 0  # the other symbols of the window count
        for place in range(edits.places[block, row], edits.places[block, row + 1]):
            start = starts[place]
            edit = firsts[place]
            stop = firsts[place + 1]
            first_end = max(start, width - 1)
            last_end = min(start + removed + width - 1, length)
            rest = energy
            lost = 0.0
            for end in range(first_end, last_end):
                if stays[end - start]:
                    continue
                slot = own[end]
                counts[slot] -= 1
                rest -= gain[counts[slot]]
                if coefficients is not None:
                    lost += step[counts[slot]] * values[slot]
            first, last = _outer_codes(tokens, length, start, removed, arrived, digits, codes)
            all_weights = 0.0
            if models is not None:
                here[:] = 0.0
            # With one inserted symbol and a known scale nothing need be put in: window by window, each symbol adds one
            # product, if no edit creates a window twice.
            is_simple = arrived == 1 and mask < 0 and not by_counts
            if is_simple:
                repeated = 0
                for j in range(first + 1, last):
                    for i in range(first, j):
                        difference = codes[i] - codes[j]
                        digit = digits[j] - digits[i]
                        if stays[i] or stays[j] or abs(difference) > abs(digit) * size:
                            continue
                        for other in range(edit, stop):
                            repeated += difference == digit * inserted[first_symbol + other]
                is_simple = repeated == 0
            if is_simple:
                if weights is not None:
                    for other in range(edit, stop):
                        all_weights += weights[other]
                    common += all_weights * (scale - old_scale)
                    all_weights *= scale
                if models is not None:
                    for other in range(edit, stop):
                        for model in range(num_models):
                            here[model] += each[other, model]
                    for model in range(num_models):
                        shared[model] += here[model] * (scale - old_scale)
                        here[model] *= scale
                if coefficients is not None:
                    for other in range(edit, stop):
                        steps[other] = common * (scale - old_scale) - scale * lost
                for j in range(first, last):
                    if stays[j]:
                        continue
                    code = codes[j]
                    digit = digits[j]
                    for other in range(edit, stop):
                        # Most of the time goes here. For an unsigned index numba does not ask whether it is negative.
                        target = np.uintp(code + digit * inserted[np.uintp(first_symbol + other)])
                        if weights is not None:
                            values[target] += scale * weights[np.uintp(other)] * step[np.uintp(counts[target])]
                        if models is not None:
                            growth = step[np.uintp(counts[target])]
                            for model in range(num_models):
                                values[target, model] += scale * each[np.uintp(other), model] * growth
                        if coefficients is not None:
                            steps[np.uintp(other)] += scale * step[np.uintp(counts[target])] * values[target]
                edit = stop
            while edit < stop:
                symbols = first_symbol + edit * arrived
                new_energy = rest
                moved = -lost
                for j in range(first, last):
                    if stays[j]:
                        continue
                    code = codes[j]
                    if arrived == 1:
                        code += digits[j] * inserted[symbols]
                    else:
                        for number in range(max(0, j - width + 1), min(arrived, j + 1)):
                            code += digits[j - number] * inserted[symbols + number]
                    slot = code
                    if mask >= 0:
                        slot = _first_slot(code, mask)
                        if keys[slot] != code:
                            slot = _slot(code, keys, claimed)
                    created[j] = slot
                    count = counts[slot]
                    new_energy += gain[count]
                    if coefficients is not None:
                        if np.isnan(values[slot]):
                            values[slot] = _look_up(code, known, total)
                        moved += step[count] * values[slot]
                    counts[slot] = count + 1
                if by_counts:
                    scale = _scale(new_energy, divisor, num_windows > 0, by_energy)
                if coefficients is not None:
                    steps[edit] = scale * moved + common * (scale - old_scale)
                    for j in range(first, last):
                        if not stays[j]:
                            counts[created[j]] -= 1
                if weights is not None:
                    weight = weights[edit] * scale
                    for j in range(first, last):
                        if stays[j]:
                            continue
                        slot = created[j]
                        count = counts[slot] - 1
                        counts[slot] = count
                        values[slot] += weight * step[count]
                    all_weights += weight
                    common += weights[edit] * (scale - old_scale)
                if models is not None:
                    for j in range(first, last):
                        if stays[j]:
                            continue
                        slot = created[j]
                        count = counts[slot] - 1
                        counts[slot] = count
                        growth = step[count]
                        for model in range(num_models):
                            values[slot, model] += each[edit, model] * scale * growth
                    for model in range(num_models):
                        here[model] += each[edit, model] * scale
                        shared[model] += each[edit, model] * (scale - old_scale)
                edit += 1
            for end in range(first_end, last_end):
                if stays[end - start]:
                    continue
                slot = own[end]
                if weights is not None:
                    values[slot] -= all_weights * step[counts[slot]]
                if models is not None:
                    for model in range(num_models):
                        values[slot, model] -= here[model] * step[counts[slot]]
                counts[slot] += 1
    for end in range(width - 1, length):
        slot = own[end]
        if weights is not None:
            values[slot] += common * transformed[counts[slot]]
        if models is not None:
            for model in range(num_models):
                values[slot, model] += shared[model] * transformed[counts[slot]]
        counts[slot] = 0


@compiled
def dense_features(
    first: int,
    last: int,
    counting: Counting,
    edits: FlatEdits,
    weights: np.ndarray,
    slots: Slots,
    matrix: np.ndarray,
    used: np.ndarray,
) -> None:
    """Writes the Stein features of some rows into a matrix ``[N, D]`` with a column for every code.

    :param used: long ``[N]``, gets how many of the features of each row are not 0.
    """
    scratch = _scratch(counting, edits)
    for row in range(first, last):
        values = matrix[row]
        values[:] = 0.0
        _visit_row(row, counting, edits, slots, scratch, values, weights, None, None, None)
        count = 0
        for code in range(len(values)):
            count += values[code] != 0
        used[row] = count


@compiled
def dense_features_each(
    first: int,
    last: int,
    counting: Counting,
    edits: FlatEdits,
    weights: np.ndarray,
    slots: Slots,
    matrices: np.ndarray,
    used: np.ndarray,
) -> None:
    """As :func:`dense_features` under ``K`` models, for which all that is not weights is found once.

    :param weights: ``[E, K]``.
    :param matrices: ``[K, N, D]``.
    :param used: long ``[K, N]``.
    """
    scratch = _scratch(counting, edits)
    num_models = weights.shape[1]
    models = Models(weights, np.empty(num_models), np.empty(num_models))
    values = np.empty((matrices.shape[2], num_models))
    for row in range(first, last):
        values[:] = 0.0
        _visit_row(row, counting, edits, slots, scratch, values, None, models, None, None)
        used[:, row] = 0
        for code in range(len(values)):
            for model in range(num_models):
                matrices[model, row, code] = values[code, model]
                used[model, row] += values[code, model] != 0


@compiled
def sparse_features(
    first: int,
    last: int,
    counting: Counting,
    edits: FlatEdits,
    weights: np.ndarray,
    slots: Slots,
    entries: Entries,
    used: np.ndarray,
) -> None:
    """The Stein features of some rows as entries; marks their codes in ``used``, unless that is empty."""
    keys = slots.keys
    claimed = slots.claimed
    values = np.zeros(len(slots.counts))
    scratch = _scratch(counting, edits)
    for row in range(first, last):
        _visit_row(row, counting, edits, slots, scratch, values, weights, None, None, None)
        begin = entries.begin[row]
        codes = entries.code[begin : entries.begin[row + 1]]
        room = entries.value[begin : entries.begin[row + 1]]
        count = 0
        if len(keys) == 0:
            for code in range(len(values)):
                if values[code] != 0:
                    codes[count] = code
                    room[count] = values[code]
                    values[code] = 0.0
                    count += 1
        else:
            count = claimed[0]
            for index in range(count):
                codes[index] = keys[claimed[1 + index]]
            codes[:count].sort()
            for index in range(count):
                slot = _slot(codes[index], keys, claimed)
                room[index] = values[slot]
                values[slot] = 0.0
            _free(keys, claimed)
        entries.found[row] = count
        if len(used) > 0:
            for index in range(count):
                used[codes[index]] = True


@compiled
def _free(keys: np.ndarray, claimed: np.ndarray) -> None:
    """Empties the hash table."""
    for index in range(claimed[0]):
        keys[claimed[1 + index]] = FREE
    claimed[0] = 0


@compiled
def window_steps(
    first: int,
    last: int,
    counting: Counting,
    edits: FlatEdits,
    coefficients: Coefficients,
    slots: Slots,
    steps: np.ndarray,
) -> None:
    """How far each edit of some rows moves along the witness, ``steps [E]``."""
    keys = slots.keys
    claimed = slots.claimed
    codes = coefficients.codes
    total = coefficients.total
    columns = coefficients.column
    own = coefficients.value
    is_direct = len(keys) == 0
    values = np.zeros(len(slots.counts)) if is_direct else np.full(len(keys), np.nan)
    scratch = _scratch(counting, edits)
    for row in range(first, last):
        begin = coefficients.begin[row]
        end = coefficients.begin[row + 1]
        if is_direct and len(columns) == 0 and end - begin == len(values):  # all in their slots
            here = own[begin:end]
            for code in range(len(values)):
                values[code] = total[code] - here[code]
        else:
            if is_direct:
                for column in range(len(codes)):
                    values[codes[column]] = total[column]
            for entry in range(begin, end):
                column = columns[entry] if len(columns) > 0 else entry - begin
                slot = codes[column] if is_direct else _slot(codes[column], keys, claimed)
                values[slot] = total[column] - own[entry]
        _visit_row(row, counting, edits, slots, scratch, values, None, None, coefficients, steps)
        if not is_direct:
            for index in range(claimed[0]):
                values[claimed[1 + index]] = np.nan
            _free(keys, claimed)
