"""Formats of embeddings."""

from __future__ import annotations

from unmask.trials.registry import Format

NPZ_EMBEDDINGS = Format(
    "embeddings-npz",
    "embedding",
    "NumPy archive of embeddings",
    "embeddings (n, d), utt_ids, speaker_ids, optional session and metadata",
    "np.savez(path, embeddings=..., utt_ids=..., speaker_ids=...)",
    container="npz",
    extensions=(".npz",),
)
NPY_EMBEDDINGS = Format(
    "embeddings-npy",
    "embedding",
    "NumPy matrix with utt2spk",
    "a matrix (n, d); row i belongs to line i of utt2spk",
    "np.save(path, vectors)",
    container="npy",
    extensions=(".npy",),
)
HDF5_EMBEDDINGS = Format(
    "embeddings-hdf5",
    "embedding",
    "HDF5 embeddings",
    "one dataset per utterance; or utterance_id, speaker_id, embedding",
    "/id10270/x6uYqmx31kE/00001",
    container="hdf5",
    extensions=(".h5", ".hdf5"),
)
PARQUET_EMBEDDINGS = Format(
    "embeddings-parquet",
    "embedding",
    "parquet embeddings",
    "columns utterance_id, speaker_id, embedding, optional session and metadata",
    "pl.DataFrame(...).write_parquet(path)",
    container="parquet",
    extensions=(".parquet",),
)
KALDI_ARK = Format(
    "kaldi-ark",
    "embedding",
    "Kaldi archive of vectors",
    "utterance and vector, binary or text; speakers from utt2spk",
    "xvector.ark",
    container="ark",
    extensions=(".ark",),
)
KALDI_SCP = Format(
    "kaldi-scp",
    "embedding",
    "Kaldi script file of vectors",
    "utterance archive:offset; speakers from utt2spk",
    "1462-170142-0000 exp/xvector.1.ark:17",
    container="scp",
    extensions=(".scp",),
)
KALDI_DIR = Format(
    "kaldi-dir",
    "embedding",
    "Kaldi data directory",
    "xvector.scp or xvector.ark, utt2spk or spk2utt, optional spk2gender",
    "data/libri_test_trials_f",
    container="directory",
)
EMBEDDING_FORMATS = (
    NPZ_EMBEDDINGS,
    NPY_EMBEDDINGS,
    HDF5_EMBEDDINGS,
    PARQUET_EMBEDDINGS,
    KALDI_ARK,
    KALDI_SCP,
    KALDI_DIR,
)
