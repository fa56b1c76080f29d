"""From recordings to embeddings: encoders, anonymisation, pooling."""

from unmask.speech.audio import Audio, read_audio, write_audio
from unmask.speech.bundled import case_study, case_study_provenance, trained_case_study
from unmask.speech.corpus import Recording, recordings
from unmask.speech.embedding import Embedded, Extraction, embed, forget
from unmask.speech.encoders import Encoder, load_encoder
from unmask.speech.lpc import Transformed, mcadams
from unmask.speech.pooling import pool_voices
from unmask.speech.safeguards import (
    Anonymised,
    External,
    McAdams,
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
    "Anonymised",
    "Audio",
    "Embedded",
    "Encoder",
    "External",
    "Extraction",
    "McAdams",
    "Recipe",
    "Recording",
    "Safeguard",
    "Status",
    "Trained",
    "Transformed",
    "anonymise",
    "case_study",
    "case_study_provenance",
    "embed",
    "export_onnx",
    "forget",
    "load_encoder",
    "mcadams",
    "pool_voices",
    "read_audio",
    "read_card",
    "recordings",
    "safeguard",
    "train",
    "trained_case_study",
    "training_seconds",
    "write_audio",
]
