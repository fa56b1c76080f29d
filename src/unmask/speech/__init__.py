"""From recordings to embeddings: encoders, anonymisation, pooling."""

from unmask.speech.audio import (
    SAMPLE_RATE as SAMPLE_RATE,
    Audio as Audio,
    failure as failure,
    file_workers as file_workers,
    needed as needed,
    read_audio as read_audio,
    write_audio as write_audio,
)
from unmask.speech.corpus import (
    Recording as Recording,
    first_of_each as first_of_each,
    recordings as recordings,
)
from unmask.speech.embedding import (
    Embedded as Embedded,
    Extraction as Extraction,
    case_study as case_study,
    case_study_provenance as case_study_provenance,
    case_study_subset as case_study_subset,
    embed as embed,
    forget as forget,
    trained_case_study as trained_case_study,
)
from unmask.speech.encoders import Encoder as Encoder, load_encoder as load_encoder
from unmask.speech.pooling import (
    PooledVoices as PooledVoices,
    pool_voices as pool_voices,
    pooled_voices as pooled_voices,
    read_gender as read_gender,
)
from unmask.speech.safeguards import (
    Anonymised as Anonymised,
    Drawn as Drawn,
    External as External,
    Safeguard as Safeguard,
    anonymise as anonymise,
    command_words as command_words,
    run_command as run_command,
    safeguard as safeguard,
)
from unmask.speech.training.card import (
    Recipe as Recipe,
    Status as Status,
    export_onnx as export_onnx,
    read_card as read_card,
)
from unmask.speech.training.fit import (
    Trained as Trained,
    train as train,
    training_seconds as training_seconds,
)
from unmask.speech.vocoding import Transformed as Transformed, mcadams as mcadams
