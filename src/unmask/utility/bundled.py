"""The bundled case study: what its safeguards leave of the words and the melody."""

from __future__ import annotations

from importlib import resources

from unmask.utility.measuring import Measurements, read_measurements


def case_study_utility() -> Measurements:
    """Measurements of the case study's recordings, original and protected, by condition.

    Utterances of the 60 AudioMNIST speakers, heard by pocketsphinx with a grammar of digits; made
    by ``scripts/make_case_study.py``.
    """
    place = resources.files("unmask.data").joinpath("case_study", "utility.csv.gz")
    with resources.as_file(place) as path:
        return read_measurements(path)
