"""From recordings to embeddings: encoders, anonymisation, pooling, attackers."""

from unmask.speech.anonymise import Anonymised, anonymise
from unmask.speech.attackers import Attack, AttackModel, attack_models
from unmask.speech.audio import Audio, read_audio, write_audio
from unmask.speech.case_study import case_study, case_study_provenance
from unmask.speech.corpus import Recording, recordings
from unmask.speech.embed import Embedded, Extraction, embed
from unmask.speech.encoders import Encoder, load_encoder
from unmask.speech.mcadams import Transformed, mcadams
from unmask.speech.pooling import pool_voices
from unmask.speech.safeguards import External, McAdams, Safeguard, safeguard
from unmask.speech.weights import install
from unmask.speech.writing import write_embeddings

__all__ = [
    "Anonymised",
    "Attack",
    "AttackModel",
    "Audio",
    "Embedded",
    "Encoder",
    "External",
    "Extraction",
    "McAdams",
    "Recording",
    "Safeguard",
    "Transformed",
    "anonymise",
    "attack_models",
    "case_study",
    "case_study_provenance",
    "embed",
    "install",
    "load_encoder",
    "mcadams",
    "pool_voices",
    "read_audio",
    "recordings",
    "safeguard",
    "write_audio",
    "write_embeddings",
]
