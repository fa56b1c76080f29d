"""Text layouts without a header, as the toolkits write them."""

from __future__ import annotations

from unmask.trials.registry import Format

KALDI_TRIALS = Format(
    "kaldi-trials",
    "key",
    "Kaldi, VoicePrivacy trials",
    "enrol test target|nontarget (enrol may be a speaker)",
    "1462 1462-170142-0000 target",
    roles=("enrol", "test", "label"),
    extensions=("", ".txt", ".trials"),
)
KALDI_SCORES = Format(
    "kaldi-scores",
    "score",
    "Kaldi, VoicePrivacy scores",
    "enrol test score",
    "p11_1 p11_47 0.9891459",
    roles=("enrol", "test", "score"),
    extensions=("", ".txt", ".scores"),
)
KALDI_EER = Format(
    "kaldi-eer",
    "score",
    "Kaldi compute-eer input",
    "score label",
    "-3.21 nontarget",
    roles=("score", "label"),
    extensions=("", ".txt"),
)
VOXCELEB = Format(
    "voxceleb",
    "key",
    "VoxCeleb list",
    "0|1 enrol test",
    "1 id10270/x6uYqmx31kE/00001.wav id10270/8jEAjG6SegY/00008.wav",
    roles=("digit", "enrol", "test"),
    extensions=(".txt",),
)
SPEECHBRAIN = Format(
    "speechbrain",
    "score",
    "SpeechBrain scores.txt",
    "enrol test 0|1 score",
    "a b 1 0.712345",
    roles=("enrol", "test", "digit", "score"),
    extensions=(".txt",),
)
WESPEAKER = Format(
    "wespeaker",
    "score",
    "WeSpeaker .score",
    "enrol test score label",
    "a b 0.71234 target",
    roles=("enrol", "test", "score", "label"),
    extensions=(".score",),
)
WESPEAKER_NORM = Format(
    "wespeaker-norm",
    "score",
    "WeSpeaker .score after score normalisation",
    "enrol test score label and four numbers",
    "a b 1.71234 target 0.1 0.2 0.1 0.3",
    roles=("enrol", "test", "score", "label", "number", "number", "number", "number"),
    extensions=(".score",),
)
THREE_D_SPEAKER = Format(
    "3d-speaker",
    "score",
    "3D-Speaker .score",
    "enrol test target|nontarget score",
    "a.wav b.wav target 0.71234",
    roles=("enrol", "test", "word", "score"),
    extensions=(".score",),
)
SUNINE = Format(
    "sunine",
    "score",
    "sunine (C-P map code)",
    "0|1 enrol test score",
    "1 a.wav b.wav 0.71",
    roles=("digit", "enrol", "test", "score"),
    extensions=(".txt",),
)
LAYOUTS = (
    KALDI_TRIALS,
    KALDI_SCORES,
    KALDI_EER,
    VOXCELEB,
    SPEECHBRAIN,
    WESPEAKER,
    WESPEAKER_NORM,
    THREE_D_SPEAKER,
    SUNINE,
)
