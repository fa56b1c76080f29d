"""All file formats, in one table: what they are called and what they look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unmask.errors import InputError

Kind = Literal["score", "key", "embedding"]


@dataclass(frozen=True)
class Format:
    """A file format, an entry of ``FORMATS``; readers, writers and ``unmask formats`` take it.

    ``kind`` says what the file holds, ``source`` who writes it, ``layout`` what is in it,
    ``example`` shows it, ``container`` is the kind of file and ``extensions`` its usual endings.
    ``roles`` gives the columns of a text layout without header, in order: ``enrol``, ``test``,
    ``score``, ``number`` (read past), ``label`` (any vocabulary), ``digit`` (labels 0 and 1) or
    ``word`` (labels in words).
    """

    name: str
    kind: Kind
    source: str
    layout: str
    example: str
    container: str = "text"
    roles: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """What is said of a file that was read as this."""
        return f"{self.name}: {self.layout if self.roles else self.source}"


def _plain(
    name: str, kind: Kind, source: str, layout: str, example: str, roles: str, endings: str
) -> Format:
    """A text layout without a header; roles and endings are divided by blanks and commas."""
    extensions = tuple(endings.split(","))
    return Format(name, kind, source, layout, example, "text", tuple(roles.split()), extensions)


# fmt: off
LAYOUTS = (
    _plain("kaldi-trials", "key", "Kaldi, VoicePrivacy trials",
           "enrol test target|nontarget (enrol may be a speaker)",
           "1462 1462-170142-0000 target", "enrol test label", ",.txt,.trials"),
    _plain("kaldi-scores", "score", "Kaldi, VoicePrivacy scores", "enrol test score",
           "p11_1 p11_47 0.9891459", "enrol test score", ",.txt,.scores"),
    _plain("kaldi-eer", "score", "Kaldi compute-eer input", "score label", "-3.21 nontarget",
           "score label", ",.txt"),
    _plain("voxceleb", "key", "VoxCeleb list", "0|1 enrol test",
           "1 id10270/x6uYqmx31kE/00001.wav id10270/8jEAjG6SegY/00008.wav",
           "digit enrol test", ".txt"),
    _plain("speechbrain", "score", "SpeechBrain scores.txt", "enrol test 0|1 score",
           "a b 1 0.712345", "enrol test digit score", ".txt"),
    _plain("wespeaker", "score", "WeSpeaker .score", "enrol test score label",
           "a b 0.71234 target", "enrol test score label", ".score"),
    _plain("wespeaker-norm", "score", "WeSpeaker .score after score normalisation",
           "enrol test score label and four numbers", "a b 1.71234 target 0.1 0.2 0.1 0.3",
           "enrol test score label number number number number", ".score"),
    _plain("3d-speaker", "score", "3D-Speaker .score", "enrol test target|nontarget score",
           "a.wav b.wav target 0.71234", "enrol test word score", ".score"),
    _plain("sunine", "score", "sunine (C-P map code)", "0|1 enrol test score",
           "1 a.wav b.wav 0.71", "digit enrol test score", ".txt"),
)
LONG = Format(
    "long", "score", "long CSV or TSV with header",
    "header with any of enrol, test, label, enrol_spk, test_spk, metadata, one column per system",
    "enrol test enrol_spk test_spk label plda cosine", extensions=(".tsv", ".csv", ".txt"))
LONG_KEY = Format(
    "long-key", "key", "long CSV or TSV with header, no scores",
    "header with enrol, test, label, optionally enrol_spk, test_spk, metadata",
    "enrol test label enrol_spk test_spk", extensions=(".tsv", ".csv", ".txt"))
NIST_SCORES = Format(
    "nist-scores", "score", "NIST SRE scores", "header modelid segmentid [side] LLR",
    "1001_sre16 dev_1.sph a -2.25", extensions=(".tsv", ".txt"))
NIST_KEY = Format(
    "nist-key", "key", "NIST SRE key", "header modelid segmentid [side] targettype and metadata",
    "1001_sre16 dev_1.sph a nontarget 1 N male", extensions=(".tsv", ".txt"))
ASVSPOOF_SCORES = Format(
    "asvspoof5-scores", "score", "ASVspoof 5 SASV scores",
    "header spk filename cm-score asv-score sasv-score, - where absent",
    "E_0101 E_000001 - - 0.04", extensions=(".tsv", ".txt"))
ASVSPOOF_KEY = Format(
    "asvspoof5-key", "key", "ASVspoof 5 SASV key", "header spk filename cm-label asv-label",
    "E_0101 E_000001 bonafide target", extensions=(".tsv", ".txt"))
PARQUET = Format(
    "parquet", "score", "long parquet table",
    "columns as in a long table: enrol, test, label, speakers, metadata, one per system",
    "pl.DataFrame(...).write_parquet(path)", "parquet", extensions=(".parquet",))
NPZ = Format(
    "npz", "score", "NumPy archive of scores",
    "arrays tar, non; or scores, labels; or a matrix scores with enrol, test names; or one array "
    "per column of a long table",
    "np.savez(path, tar=..., non=...)", "npz", extensions=(".npz",))
BOSARIS = Format(
    "bosaris", "score", "BOSARIS HDF5 scores",
    "ID/row_ids, ID/column_ids, score_mask, scores; or modelset, segset; or model_names, "
    "test_names, score_mat; or enroll_ids, test_ids, scores, mask",
    "/ID/row_ids /ID/column_ids /score_mask /scores", "hdf5", extensions=(".h5", ".hdf5"))
BOSARIS_KEY = Format(
    "bosaris-key", "key", "BOSARIS HDF5 key",
    "the same names with trial_mask (1 target, -1 nontarget, 0 no trial) or tar_mask, non_mask",
    "/ID/row_ids /ID/column_ids /trial_mask", "hdf5", extensions=(".h5", ".hdf5"))
NPZ_EMBEDDINGS = Format(
    "embeddings-npz", "embedding", "NumPy archive of embeddings",
    "embeddings (n, d), utt_ids, speaker_ids, optional session and metadata",
    "np.savez(path, embeddings=..., utt_ids=..., speaker_ids=...)", "npz", extensions=(".npz",))
NPY_EMBEDDINGS = Format(
    "embeddings-npy", "embedding", "NumPy matrix with utt2spk",
    "a matrix (n, d); row i belongs to line i of utt2spk", "np.save(path, vectors)", "npy",
    extensions=(".npy",))
HDF5_EMBEDDINGS = Format(
    "embeddings-hdf5", "embedding", "HDF5 embeddings",
    "one dataset per utterance; or utterance_id, speaker_id, embedding",
    "/id10270/x6uYqmx31kE/00001", "hdf5", extensions=(".h5", ".hdf5"))
PARQUET_EMBEDDINGS = Format(
    "embeddings-parquet", "embedding", "parquet embeddings",
    "columns utterance_id, speaker_id, embedding, optional session and metadata",
    "pl.DataFrame(...).write_parquet(path)", "parquet", extensions=(".parquet",))
KALDI_ARK = Format(
    "kaldi-ark", "embedding", "Kaldi archive of vectors",
    "utterance and vector, binary or text; speakers from utt2spk", "xvector.ark", "ark",
    extensions=(".ark",))
KALDI_SCP = Format(
    "kaldi-scp", "embedding", "Kaldi script file of vectors",
    "utterance archive:offset; speakers from utt2spk", "1462-170142-0000 exp/xvector.1.ark:17",
    "scp", extensions=(".scp",))
KALDI_DIR = Format(
    "kaldi-dir", "embedding", "Kaldi data directory",
    "xvector.scp or xvector.ark, utt2spk or spk2utt, optional spk2gender",
    "data/libri_test_trials_f", "directory")
FORMATS = (
    *LAYOUTS, LONG, LONG_KEY, NIST_SCORES, NIST_KEY, ASVSPOOF_SCORES, ASVSPOOF_KEY, PARQUET, NPZ,
    BOSARIS, BOSARIS_KEY, NPZ_EMBEDDINGS, NPY_EMBEDDINGS, HDF5_EMBEDDINGS, PARQUET_EMBEDDINGS,
    KALDI_ARK, KALDI_SCP, KALDI_DIR,
)
# fmt: on


def format_named(name: str) -> Format:
    """Return the format of that name."""
    for entry in FORMATS:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in FORMATS)
    raise InputError(f"expected a format among {known}, found {name!r}")
