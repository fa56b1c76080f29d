"""How time and memory grow: commands with the utterances, then with the number of trials every
workload but those of ``scale``.

python -m benchmarks growth
"""

from __future__ import annotations

from benchmarks.growth import MARK, measured, report

TRIALS = (2_000_000, 4_000_000, 8_000_000, 16_000_000)
REPLICATED = (2_000_000, 4_000_000, 8_000_000, 16_000_000)
SPEAKERS = (4_000, 8_000, 16_000, 32_000)
LISTED = (1_000, 2_000, 4_000, 8_000)
ENTRIES = (2_000, 4_000, 8_000, 16_000)
SEGMENTS = (2_000, 4_000, 8_000, 12_000)
VOICES = (5_000, 10_000, 20_000, 40_000)
EACH = 10
HEARD = (32, 128, 512)
SPOKEN = (100, 1_000, 10_000, 100_000)
MATCHED = (200, 2_000, 20_000)
ASSESSED = (240, 2_400, 24_000)
VOICE = """
from tests.helpers.populations import named_speakers
def voices(speakers, each, seed, noise=1.0):
    more = {"speaker": "s{}", "utterance": f"{seed}-{{row}}", "dtype": np.float32}
    return named_speakers(speakers, each, 192, noise=noise, means=0, draws=seed, **more)
"""

PRODUCTS = 16 * 960 * 20_480
PRODUCT = f"""
from threadpoolctl import threadpool_limits
rows = np.random.default_rng(0).normal(size=(20_480, 192))
out = np.empty((960, 4096))
{MARK}
with threadpool_limits(limits=1):
    for _ in range(16):
        for left in range(0, 20_480, 4096):
            np.matmul(rows[:960], rows[left : left + 4096].T, out=out)
"""


def run() -> None:
    """All of them."""
    commands()
    detection()
    bootstrap()
    linkability()
    verification()
    singling_out()
    similarity()
    worst_case()


def commands() -> None:
    """What commands cost: ``embed`` with utterances of 3.3 s; the others with four utterances of
    each person (twenty where matrices are asked for), one attacker, 20 replicates.
    """
    files = (
        "import tempfile\nfrom pathlib import Path\nfrom benchmarks.bench_speech import noise\n"
        "from unmask.speech import embed, recordings\nfolder = tempfile.TemporaryDirectory()\n"
        "files = recordings(noise(Path(folder.name), PEOPLE), speakers='folder')\n"
        "embed(files[:2])\n"
    )
    heard = f"{files}{MARK}with um.run_on(workers=1):\n    embed(files)"
    both = (
        f"{VOICE}original, other = voices(PEOPLE, EACH, 1), voices(PEOPLE, EACH, 2, 3)\n"
        "protected = um.Embeddings(other.vectors, original.speakers, original.utterances)\n"
        "first = np.arange(len(original)) % 4 < 2\n"
        "attacker = um.Attacker(original.select(first), protected.select(~first))\n" + MARK
    )
    legal = "um.assess_attackers({'a': attacker}, lengths=[1], replicates=20)"
    privacy = "um.pseudonymisation(original, protected, replicates=20)"
    assess = "um.assess(original, {'P': protected}, quick=True)"
    for what, each, sizes, code in (
        ("embed: CAM++, utterances of 3.3 s", 1, HEARD, heard),
        ("legal: Singling Out, Linkability and 1 - EER", 4, SPOKEN, both + legal),
        ("privacy: three matrices, 20 replicates", 20, MATCHED, both + privacy),
        ("assess --quick", 4, ASSESSED, both + assess),
    ):
        text = code.replace("EACH", str(each))
        codes = [text.replace("PEOPLE", str(size // each)) for size in sizes]
        report(what, "utterances", list(sizes), codes)


def detection() -> None:
    """All metrics of scores in memory."""
    made = (
        "rng = np.random.default_rng(0)\ntarget = rng.normal(2, 1, {few})\n"
        "nontarget = rng.normal(0, 1, {size})\n" + MARK
    )
    code = [
        made.format(few=size // 100, size=size) + "um.detection(target, nontarget)"
        for size in TRIALS
    ]
    report("um.detection, 1 % targets", "trials", list(TRIALS), code)


def bootstrap() -> None:
    """20 replicates of the whole table over 500 speakers."""
    code = [
        "from unmask.engine.bootstrap import SortedTrials, Units, bootstrap\n"
        f"rng = np.random.default_rng(0)\nsize = {size}\nfew = size // 100\n"
        "codes = rng.integers(0, 500, few), *rng.integers(0, 500, (2, size))\n"
        "battery = um.Battery()\nunits = Units.speakers(*codes)\n"
        "sample = SortedTrials.of(rng.normal(2, 1, few), rng.normal(0, 1, size), units,"
        " thresholds=battery.thresholds)\n"
        f"{MARK}bootstrap([sample], battery.values, replicates=20)"
        for size in REPLICATED
    ]
    report("bootstrap, 20 replicates of the table", "trials", list(REPLICATED), code)


def linkability() -> None:
    """Linkability of everyone among everyone."""
    code = [
        f"{VOICE}enrol, test = voices({size}, 1, 1), voices({size}, 1, 2)\n"
        f"{MARK}um.linkability(enrol, test, counts=[{size}], replicates=0)"
        for size in SPEAKERS
    ]
    report("Linkability, every speaker among all", "pairs", [n * n for n in SPEAKERS], code)


def verification() -> None:
    """1 − EER of everyone among everyone, at nine list sizes."""
    code = [
        f"{VOICE}enrol, test = voices({size}, 1, 1), voices({size}, 1, 2)\n"
        f"counts = np.linspace(20, {size}, 9).astype(int)\n"
        f"{MARK}um.privacy.one_minus_eer(enrol, test, counts=counts, replicates=0)"
        for size in LISTED
    ]
    report("1 - EER, nine list sizes", "pairs", [n * n for n in LISTED], code)


def singling_out() -> None:
    """Singling Out with a predicate for every twentieth speaker, ten conversations each."""
    code = [
        f"{VOICE}enrol, test = voices({size}, 1, 1), voices({size}, {EACH}, 2)\n"
        f"{MARK}um.singling_out(enrol, test, counts=[100, {size}], max_enrol={size // 20},"
        " replicates=0)"
        for size in ENTRIES
    ]
    report("Singling Out", "pairs", [EACH * n * n // 20 for n in ENTRIES], code)


def similarity() -> None:
    """The three similarity matrices of 100 speakers from embeddings."""
    code = [
        f"{VOICE}each = {size} // 100\n"
        "original, other = voices(100, each, 1), voices(100, each, 2, 3)\n"
        "protected = um.Embeddings(other.vectors, original.speakers, original.utterances)\n"
        f"{MARK}um.pseudonymisation(original, protected, replicates=0)"
        for size in SEGMENTS
    ]
    report("similarity matrices OO, OP, PP", "pairs", [3 * n * n for n in SEGMENTS], code)


def worst_case() -> None:
    """Worst-case surface of three thresholds and 24 counts from embeddings."""
    code = [
        f"{VOICE}everyone = voices({size} // {EACH}, {EACH}, 1, 2.5)\n"
        f"counts = np.unique(np.geomspace(1, {size} // {EACH} - 1, 24).astype(int))\n"
        f"{MARK}um.worst_case(everyone, [0.1, 0.15, 0.2], counts=counts)"
        for size in VOICES
    ]
    sizes = [n * n for n in VOICES]
    seconds = report("worst-case surfaces, 3 thresholds", "trials", sizes, code)
    floor = min(measured(PRODUCT)[0] for _ in range(2)) / PRODUCTS
    print(
        f"    floor: {1e9 * floor:.1f} ns per trial for the bare product in double precision; "
        f"the largest set took {seconds[-1] / sizes[-1] / floor:.2f} x that"
    )
