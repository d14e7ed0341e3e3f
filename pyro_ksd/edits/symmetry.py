# SPDX-License-Identifier: Apache-2.0
"""What the Stein identity asks of a neighborhood: a way back from every neighbor, and ways to everywhere."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pyro_ksd.edits.neighborhoods import Neighborhood, check_neighborhood
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences


def check_symmetric(neighborhood: Neighborhood, sequences: Sequences) -> None:
    """Checks that every neighbor of the given sequences has them as neighbors in turn.

    :raises ValueError: with a pair of sequences for which it does not hold.

    >>> from pyro_ksd.edits import CustomNeighborhood, zs
    >>> check_symmetric(zs(locations=2), Sequences.of(["aab", "b"]))
    >>> check_symmetric(CustomNeighborhood(lambda x: [x + ("a",)]), Sequences.of(["aab", "b"]))
    Traceback (most recent call last):
    ValueError: the neighborhood is not symmetric: ['a', 'a', 'b', 'a'] is a neighbor of ['a', 'a', 'b'], but not ...
    """
    check_neighborhood("neighborhood", neighborhood)
    check_sequences("sequences", sequences)
    edits = neighborhood.edits(sequences)
    neighbors = edits.apply(sequences)
    back = neighborhood.edits(neighbors)
    origins = sequences[edits.owner]
    returned = back.apply(neighbors)
    width = max(origins.width, returned.width)
    there, here = (torch.nn.functional.pad(part.tokens, (0, width - part.width)) for part in (origins, returned))
    home = (here == there[back.owner]).all(1) & (returned.lengths == origins.lengths[back.owner])
    found = torch.zeros(len(neighbors), dtype=torch.bool)
    found[back.owner[home]] = True
    if not found.all():
        edit = int((~found).nonzero()[0])
        x = origins[edit : edit + 1].to_lists()[0]
        y = neighbors[edit : edit + 1].to_lists()[0]
        raise ValueError(
            f"the neighborhood is not symmetric: {y} is a neighbor of {x}, but not the other way round; "
            "add the way back, or leave out the way there"
        )


def is_connected(neighborhood: Neighborhood, space: Sequences) -> bool:
    """Whether edits lead from every sequence of a small space to every other one without leaving it.

    Where they do not, the discrepancy cannot see how the model shares its mass between the unconnected parts.

    >>> from pyro_ksd.edits import Substitutions, zs
    >>> space = Sequences.of(["a", "b", "aa", "ab", "ba", "bb"])
    >>> is_connected(zs(), space), is_connected(Substitutions(), space)
    (True, False)
    """
    check_neighborhood("neighborhood", neighborhood)
    check_sequences("space", space)
    index = {tuple(sequence): row for row, sequence in enumerate(space.to_lists())}
    edits = neighborhood.edits(space)
    targets = [index.get(tuple(sequence), -1) for sequence in edits.apply(space).to_lists()]
    inside = [(row, target) for row, target in zip(edits.owner.tolist(), targets, strict=True) if target >= 0]
    # Of wider integers, SciPy 1.11 finds any number of components.
    rows, columns = np.array(inside, dtype=np.int32).reshape(-1, 2).T
    graph = coo_array((np.ones(len(inside), dtype=bool), (rows, columns)), shape=(len(space), len(space)))
    return int(connected_components(graph, directed=True, connection="strong", return_labels=False)) == 1
