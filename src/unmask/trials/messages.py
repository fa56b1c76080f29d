"""What is said of trials that do not fit together, wherever they are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unmask.errors import InputError


def no_score(place: str, count: int) -> InputError:
    """A trial has no score; ``count`` have none."""
    return InputError(
        f"{place}: expected a score, found none ({count} trials lack one); missing='skip' goes on "
        "without them"
    )


def repeated(place: str, trial: str, earlier: str, count: int) -> InputError:
    """A trial stands in a file again; ``earlier`` is the place of the first."""
    return InputError(
        f"{place}: expected each trial once, found {trial} again, first in "
        f"{earlier.rsplit(', ', 1)[-1]} ({count} duplicates in all); duplicates='skip' keeps the "
        "first"
    )


def mismatch(
    name: str, key: str, unlabelled: tuple[int, int, str], unscored: tuple[int, int, str]
) -> InputError:
    """Trials that only scores or only key have: how many, of how many, and the first of them."""
    told = []
    if unlabelled[0]:
        count, total, first = unlabelled
        told.append(f"{count} of its {total} trials are not in {key} (first: {first})")
    if unscored[0]:
        count, total, first = unscored
        told.append(f"{count} of the {total} trials of {key} have no score (first: {first})")
    return InputError(f"{name}: {'; '.join(told)}; missing='skip' goes on without them")


def nothing_in_common(name: str, total: int, key: str) -> InputError:
    """No trial of the scores is in the key."""
    return InputError(f"{name}: none of its {total} trials is in {key}")


def other_labels(name: str, reference: str, count: int) -> InputError:
    """Two files label trials differently."""
    return InputError(
        f"{name}: expected the labels of {reference}, found {count} trials labelled otherwise"
    )


def other_trials(first: str, other: str, lacking: int, surplus: int) -> InputError:
    """Two score files do not have the same trials."""
    told = []
    if lacking:
        told.append(f"{lacking} trials of {first} are not in {other}")
    if surplus:
        told.append(f"{surplus} trials of {other} are not in {first}")
    return InputError(f"expected the same trials, found that {' and '.join(told)}")


def side_in_one(name: str) -> InputError:
    """Only one of two files tells the side of segments, and its trials need it."""
    return InputError(
        f"{name}: expected the side of segments in both files, found it in one, where trials "
        "differ by it alone"
    )


def no_identifiers(name: str, purpose: str = "join by") -> InputError:
    """Trials without names cannot be joined."""
    return InputError(f"{name}: expected enrol and test identifiers to {purpose}, found none")


def unknown_systems(place: str, known: Sequence[str], unknown: Sequence[str]) -> InputError:
    """Systems were asked for that a file does not have."""
    return InputError(
        f"{place}: expected systems among {', '.join(known) or 'none'}, found {', '.join(unknown)}"
    )


def no_class(name: str, counts: Mapping[str, int]) -> InputError:
    """A list of trials lacks one of the two classes."""
    return InputError(
        f"{name}: expected trials of both classes, found {counts['target']} target and "
        f"{counts['nontarget']} nontarget"
    )


def two_speakers(name: str, count: int, enrol: str, test: str) -> InputError:
    """Target trials do not have one speaker on both sides."""
    return InputError(
        f"{name}: {count} target trials have two speakers, the first {enrol} and {test}: labels or "
        "speaker ids are wrong"
    )
