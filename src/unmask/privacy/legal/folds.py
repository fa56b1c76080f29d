"""Which conversation of each speaker is the test entry in each fold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray

Slots = npt.NDArray[np.int16]


def test_slots(per_speaker: IntArray, folds: int, seed: np.random.SeedSequence) -> Slots:
    """Number of the conversation a speaker is tested with, folds × speakers.

    Every K folds a speaker's K conversations each serve once, in an order drawn anew, so folds
    differ for everyone however unequal the numbers of conversations are.
    """
    rounds = -(-folds // int(per_speaker.min()))
    most = int(per_speaker.max())
    absent = np.arange(most) >= per_speaker[:, None]
    orders = np.empty((rounds, len(per_speaker), most), dtype=np.int16)
    for turn, child in enumerate(seed.spawn(rounds)):
        keys = np.random.default_rng(child).random((len(per_speaker), most))
        keys[absent] = 2.0
        orders[turn] = np.argsort(keys, axis=1)
    speakers = np.arange(len(per_speaker))
    slots = np.empty((folds, len(per_speaker)), dtype=np.int16)
    for fold in range(folds):
        slots[fold] = orders[fold // per_speaker, speakers, fold % per_speaker]
    return slots
