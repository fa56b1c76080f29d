"""Encoders from elsewhere, for users with a network; their packages are imported only here."""

from __future__ import annotations

import numpy as np

from unmask.errors import InputError
from unmask.speech.audio import needed
from unmask.speech.encoders.loading import Encoder, OnnxEncoder, Wrapped
from unmask.speech.features import Float32Array


def speechbrain(source: str, *, device: str = "cpu") -> Encoder:
    """A SpeechBrain ``EncoderClassifier``, such as ``speechbrain/spkrec-ecapa-voxceleb``."""
    inference = needed("speechbrain.inference.speaker", "speechbrain", "speechbrain")
    torch = needed("torch", "torch", "torch")
    model = inference.EncoderClassifier.from_hparams(source=source, run_opts={"device": device})

    def encode(samples: Float32Array) -> Float32Array:
        with torch.inference_mode():
            vector = model.encode_batch(torch.from_numpy(samples)[None])
        return np.asarray(vector.reshape(-1).cpu().numpy(), dtype=np.float32)

    return Wrapped(encode, name=f"speechbrain:{source}")


def hub(location: str, *, device: str = "cpu") -> Encoder:
    """An ONNX model of the Hugging Face hub, as OWNER/REPOSITORY/FILE.onnx."""
    repository, _, file = location.rpartition("/")
    if repository.count("/") != 1 or not file.endswith(".onnx"):
        raise InputError(f"hub:{location}: expected hub:OWNER/REPOSITORY/FILE.onnx")
    client = needed("huggingface_hub", "huggingface-hub", "hub")
    return OnnxEncoder(client.hf_hub_download(repository, file), device=device)
