"""Trees of results with the names of folders and files that the VoicePrivacy challenges use."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

ENROLLED, PEOPLE, UTTERANCES = 5, 7, 4
LIBRI = ("libri_dev_f", "libri_dev_m", "libri_test_f", "libri_test_m")
VCTK = tuple(f"vctk_{split}_{sex}{end}" for split in ("dev", "test") for sex in "fm"
             for end in ("", "_common"))  # fmt: skip
LANGUAGES = ("en", "de", "es", "fr", "cn", "ja")


@dataclass(frozen=True)
class Tree:
    """One year's layout: sets, folders of pre-trained and retrained verification, of utility."""

    sets: tuple[str, ...]
    given: str
    trained: str
    prefix: str = ""
    recogniser: str = "exp/asr"
    emotion: str = "IEMOCAP"


YEARS = {
    "2020": Tree((*LIBRI, *VCTK), "exp/results-2020-05-01-10-00-00", "", "ASV-"),
    "2022": Tree((*LIBRI, *VCTK), "exp/results-2022-05-01-10-00-00.orig",
                 "exp/results-2022-05-01-10-00-00", "ASV-"),
    "2024": Tree(LIBRI, "exp/asv_orig/cosine_out", "exp/asv_anon_{tag}/cosine_out"),
    "2026-1": Tree(tuple(f"libri_{split}_{end}" for split in ("dev", "test")
                         for end in ("f", "m", "mixed")),
                   "exp/asv_ssl/cosine_out", "exp/asv_anon_{tag}/cosine_out"),
    "2026-2": Tree(tuple(f"{lang}_{split}_mixed" for lang in LANGUAGES
                         for split in ("dev", "test")),
                   "exp/asv_ssl/cosine_out", "exp/asv_anon_track2_10_{lang}_{tag}/cosine_out",
                   recogniser="exp/openai/whisper-large-v3", emotion="emodata"),
}  # fmt: skip


def strength(tag: str, part: str, *, trained: bool) -> float:
    """How far targets lie above nontargets."""
    order = sum(map(ord, tag)) % 3
    return 4.0 if part == "oo" else (0.5 if part == "op" else 1.2 + 0.8 * trained) + 0.3 * order


def write_tree(
    folder: Path,
    year: str = "2024",
    tags: tuple[str, ...] = ("mcadams",),
    *,
    people: int = PEOPLE,
    enrolled: int = ENROLLED,
    utterances: int = UTTERANCES,
    sets: tuple[str, ...] | None = None,
    trained: bool = True,
    seed: int = 3,
) -> dict[tuple[str, str, str, bool], np.ndarray]:
    """Write a tree; more people are tested than enrolled.

    Returned are the scores (enrolled × recordings) by tag, set, list (oo, op, pp) and whether the
    verification was retrained.
    """
    rng, tree, made = np.random.default_rng(seed), YEARS[year], {}
    rates: dict[tuple[str, bool], list[str]] = {}
    for name in sets or tree.sets:
        corpus, split, sex, *common = name.split("_")
        whose = [f"{corpus}{split}{sex}{i}" for i in range(people)]
        sexes = {who: sex if sex in "fm" else "fm"[i % 2] for i, who in enumerate(whose)}
        said = [f"{who}-12-{u:04d}" for who in whose for u in range(utterances)]
        owner = np.repeat(np.arange(people), utterances)
        target = np.arange(enrolled)[:, None] == owner
        end = "_".join(["", sex, *common])
        for tag in ("", *(f"_{tag}" for tag in tags)):
            enrols = folder / "data" / f"{corpus}_{split}_enrolls{tag}"
            trials = folder / "data" / f"{corpus}_{split}_trials{end}{tag}"
            _lists(enrols, [f"{who}-1-0000" for who in whose[:enrolled]], sexes)
            _lists(trials, said, sexes)
            text = "".join(f"{u} the words of {u[-4:]} are these\n" for u in said)
            (trials / "text").write_text(text)
            kind = np.where(target, "target", "nontarget")
            lines = (f"{whose[i]} {u} {kind[i, j]}\n" for i in range(enrolled)
                     for j, u in enumerate(said))  # fmt: skip
            (trials / "trials").write_text("".join(lines))
        for tag in tags:
            for retrained in (False, True) if trained and tree.trained else (False,):
                root = (tree.trained if retrained else tree.given).format(tag=tag, lang=corpus)
                for part in ("oo", "op", "pp"):
                    key = ("" if part == "oo" else tag, name, part, retrained)
                    if key not in made or retrained:
                        far = strength(tag, part, trained=retrained)
                        made[key] = np.round(far * target + rng.normal(size=target.shape), 4)
                    one, two = (f"_{tag}" if letter == "p" else "" for letter in part)
                    pair = f"{corpus}_{split}_enrolls{one}-{corpus}_{split}_trials{end}{two}"
                    place = folder / root / f"{tree.prefix}{pair}"
                    place.mkdir(parents=True, exist_ok=True)
                    lines = (f"{whose[i]} {u} {made[key][i, j]}\n" for i in range(enrolled)
                             for j, u in enumerate(said))  # fmt: skip
                    (place / "scores").write_text("".join(lines))
                    rate = 0.25 if part == "pp" else 0.1
                    old = tree.prefix == "ASV-"
                    (place / "EER").write_text(f"EER: {100 * rate:g}%\n" if old else f"{rate}")
                    rows = rates.setdefault((tag, retrained), [])
                    kinds = ["original" if letter == "o" else "anon" for letter in part]
                    cells = [corpus, split, "_".join([sex, *common]), *kinds, f"{100 * rate:g}"]
                    rows.append(",".join([str(len(rows)), *cells]))
    for tag in tags:
        _utility(folder, tree, tag, dict.fromkeys(n.rsplit("_", 1)[0] for n in sets or tree.sets))
    return made


def _lists(place: Path, utterances: list[str], sexes: dict[str, str]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    owners = [name.split("-")[0] for name in utterances]
    pairs = zip(utterances, owners, strict=True)
    (place / "utt2spk").write_text("".join(f"{name} {who}\n" for name, who in pairs))
    lines = (f"{who} {sexes[who]}\n" for who in dict.fromkeys(owners))
    (place / "spk2gender").write_text("".join(lines))


def misheard(line: str, number: int, end: str) -> str:
    """One word of every tenth utterance is wrong, of a safeguard's output one of two in seven or
    more.
    """
    wrong = number * 11 % 7 < 2 + sum(map(ord, end)) % 3 if end else number % 10 == 0
    return line.replace(" words ", " birds ") if wrong else line


def _utility(folder: Path, tree: Tree, tag: str, sets: dict[str, None]) -> None:
    """Word error rates and recalls of emotion, as each year writes them."""
    splits = list(dict.fromkeys("_".join(name.split("_")[:2]) for name in sets))
    if tree.prefix == "ASV-":
        for name in splits:
            for end, rate in (("", 4.0), (f"_{tag}", 8.0)):
                line = f"%WER {rate:.2f} [ 1522 / 39783, 187 ins, 139 del, 1196 sub ] exp/x\n"
                (folder / (tree.trained or tree.given) / f"ASR-{name}_asr{end}").write_text(line)
        return
    place = folder / tree.recogniser
    place.mkdir(parents=True, exist_ok=True)
    for name in splits:
        said = [line for data in sorted((folder / "data").glob(f"{name}_trials_*[fmd]"))
                for line in (data / "text").read_text().splitlines()]  # fmt: skip
        for end in ("", f"_{tag}"):
            heard = place / f"{name}_asr{end}"
            heard.mkdir(exist_ok=True)
            lines = [misheard(line, n, end) for n, line in enumerate(said)]
            (heard / "text").write_text("\n".join(lines) + "\n")
    lines = [",dataset,split,asr,WER"]
    for name in splits:
        corpus, split = name.split("_")
        for kind, rate in (("original", 2.0), ("anon", 6.0 if split == "dev" else 7.0)):
            lines.append(f"{len(lines) - 1},{corpus},{split},{kind},{rate}")
    (place / f"results_{tag}.csv").write_text("\n".join(lines) + "\n")
    place = folder / "exp/ser"
    place.mkdir(parents=True, exist_ok=True)
    lines = [",dataset,split,ser,UAR,ACC_sad", ",,,,mean,mean"]
    for split in ("dev", "test"):
        for kind, rate in (("anon", 55.5 if split == "dev" else 53.5), ("original", 70.0)):
            lines.append(f"{len(lines) - 2},{tree.emotion},{split},{kind},{rate},30.0")
    (place / f"results_{tag}.csv").write_text("\n".join(lines) + "\n")
