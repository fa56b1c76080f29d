"""From recordings to embeddings: encoders, anonymisation, pooling."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.speech.audio import SAMPLE_RATE, SUFFIXES, Audio, clipped, failure, file_workers
    from unmask.speech.audio import level, needed, read_audio, write_audio
    from unmask.speech.corpus import Recording, first_of_each, recordings
    from unmask.speech.embedding import Embedded, Extraction, case_study, case_study_provenance
    from unmask.speech.embedding import case_study_subset, embed, forget, trained_case_study
    from unmask.speech.encoders import Encoder, load_encoder
    from unmask.speech.pooling import PooledVoices, pool_voices, pooled_voices, read_gender
    from unmask.speech.recognisers import Recogniser, normalised, recogniser, runs_code
    from unmask.speech.restating import Restated
    from unmask.speech.safeguards import METADATA, Anonymised, DrawnChange, External, Safeguard
    from unmask.speech.safeguards import anonymise, command_content, command_words, run_command
    from unmask.speech.safeguards import safeguard
    from unmask.speech.encoders.card import Recipe, Status, export_onnx, is_encoder, read_card
    from unmask.speech.training.fit import Trained, run_name, train, training_seconds
    from unmask.speech.vocoding import Transformed, mcadams

open_door(__name__)
