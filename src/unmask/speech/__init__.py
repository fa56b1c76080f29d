"""From recordings to embeddings: encoders, anonymisation, pooling."""

from unmask.speech.audio import (
    SAMPLE_RATE,
    Audio,
    file_workers,
    needed,
    read_audio,
    unexpected,
    write_audio,
)
from unmask.speech.bundled import (
    case_study,
    case_study_provenance,
    case_study_subset,
    trained_case_study,
)
from unmask.speech.commands import command_words, run_command
from unmask.speech.corpus import Recording, recordings
from unmask.speech.embedding import Embedded, Extraction, embed, forget
from unmask.speech.encoders import Encoder, load_encoder
from unmask.speech.lpc import Transformed, mcadams
from unmask.speech.pooled import PooledVoices, pooled_voices, read_gender
from unmask.speech.pooling import pool_voices
from unmask.speech.safeguards import (
    Anonymised,
    Drawn,
    External,
    McAdams,
    Pitch,
    Safeguard,
    anonymise,
    safeguard,
)
from unmask.speech.training import (
    Recipe,
    Status,
    Trained,
    export_onnx,
    read_card,
    train,
    training_seconds,
)

__all__ = [
    "SAMPLE_RATE",
    "Anonymised",
    "Audio",
    "Drawn",
    "Embedded",
    "Encoder",
    "External",
    "Extraction",
    "McAdams",
    "Pitch",
    "PooledVoices",
    "Recipe",
    "Recording",
    "Safeguard",
    "Status",
    "Trained",
    "Transformed",
    "anonymise",
    "case_study",
    "case_study_provenance",
    "case_study_subset",
    "command_words",
    "embed",
    "export_onnx",
    "file_workers",
    "forget",
    "load_encoder",
    "mcadams",
    "needed",
    "pool_voices",
    "pooled_voices",
    "read_audio",
    "read_card",
    "read_gender",
    "recordings",
    "run_command",
    "safeguard",
    "train",
    "trained_case_study",
    "training_seconds",
    "unexpected",
    "write_audio",
]
