"""How much of an identity survives a safeguard."""

from unmask.privacy.similarity import (
    pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
)
from unmask.privacy.similarity_matrix import SimilaritySet
from unmask.privacy.similarity_result import Pseudonymisation, SpeakerProtection

__all__ = [
    "Pseudonymisation",
    "SimilaritySet",
    "SpeakerProtection",
    "pseudonymisation",
    "pseudonymisation_from_embeddings",
    "pseudonymisation_from_scores",
]
