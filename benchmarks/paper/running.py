# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of an experiment in parallel processes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from zlib import crc32

import numpy as np
import torch
import xarray as xr
from tqdm import tqdm

from benchmarks.paper.experiment import Cell, Experiment, Job
from benchmarks.paper.results import as_dataset


def run(
    experiment: Experiment, *, quick: bool = False, seed: int = 0, workers: int = 2, progress: bool = True
) -> xr.Dataset:
    """The result of an experiment, which depends on the seed but not on the number of processes.

    :param workers: the number of processes; for 1, the jobs are done in this one.
    """
    jobs = list(experiment.jobs(quick))
    seeds = [seed_of(experiment.name, seed, job) for job in jobs]
    found: dict[int, list[Cell]] = {}
    with tqdm(total=len(jobs), desc=experiment.name, unit="job", disable=not progress) as bar:
        if workers == 1:
            for index, job in enumerate(jobs):
                found[index] = _measure(job, seeds[index])
                bar.update()
        else:
            with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as executor:
                waiting = {executor.submit(_measure, job, seeds[index]): index for index, job in enumerate(jobs)}
                for done in as_completed(waiting):
                    found[waiting[done]] = done.result()
                    bar.update()
    cells = [cell for index in range(len(jobs)) for cell in found[index]]
    return as_dataset(cells, experiment, quick=quick, seed=seed)


def seed_of(name: str, seed: int, job: Job) -> int:
    """The seed of a job."""
    state = np.random.SeedSequence([seed, crc32(name.encode())], spawn_key=job.key).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def _measure(job: Job, seed: int) -> list[Cell]:
    return job.measure(torch.Generator().manual_seed(seed))
