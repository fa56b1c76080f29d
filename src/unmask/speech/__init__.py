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
from unmask.speech.bundled import case_study, case_study_provenance
from unmask.speech.commands import command_words, run_command
from unmask.speech.corpus import Recording, recordings
from unmask.speech.embedding import Embedded, Extraction, embed, forget
from unmask.speech.encoders import Encoder, load_encoder
from unmask.speech.lpc import Transformed, mcadams
from unmask.speech.pooled import PooledVoices, pooled_voices, read_gender
from unmask.speech.pooling import pool_voices
from unmask.speech.safeguards import (
    Anonymised,
    External,
    Drawn,
    McAdams,
    Pitch,
    Safeguard,
    anonymise,
    safeguard,
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
    "Recording",
    "Safeguard",
    "Transformed",
    "anonymise",
    "case_study",
    "case_study_provenance",
    "command_words",
    "embed",
    "file_workers",
    "forget",
    "load_encoder",
    "mcadams",
    "needed",
    "pool_voices",
    "pooled_voices",
    "read_audio",
    "read_gender",
    "recordings",
    "run_command",
    "safeguard",
    "unexpected",
    "write_audio",
]
