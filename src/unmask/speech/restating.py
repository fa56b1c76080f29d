"""Restate: what a recogniser hears is spoken again by one synthetic voice, eSpeak NG.

Nothing but words passes from input to output: no voice, no melody, no timing, no level. What can
still tell people apart is what they say, and what the recogniser makes of it.
"""

from __future__ import annotations

import _ctypes
import ctypes
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.speech.audio import SAMPLE_RATE, needed, read_audio, write_audio
from unmask.speech.corpus import Recording
from unmask.speech.recognisers import Recogniser, normalised
from unmask.speech.safeguards import RESTATE, Protected

VOICE = "en-us+f2"
"""American English in a female variant: of those tried, pocketsphinx understands it best."""
PAUSE = 0.5
"""Seconds of silence that stand for a recording without words."""
_RETRIEVAL, _UTF8, _DO_NOT_EXIT = 2, 1, 0x8000
_HEARD = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)
_ALONE = Lock()


def spoken(text: str) -> npt.NDArray[np.float32]:
    """Words in the voice of eSpeak NG (extra ``restate``), 16 kHz, the same bits for the same
    words.

    The library is loaded anew each time: its flutter and phases go on from one text to the next.
    """
    espeak = needed("espeakng_loader", "espeakng-loader", RESTATE)
    parts: list[npt.NDArray[np.int16]] = []

    def heard(wave: Any, count: int, events: Any) -> int:
        if wave and count:
            parts.append(np.ctypeslib.as_array(wave, (count,)).copy())
        return 0

    listener, words = _HEARD(heard), text.encode() + b"\0"
    with _ALONE:
        library = ctypes.CDLL(espeak.get_library_path())
        data = espeak.get_data_path().encode()
        try:
            rate = library.espeak_Initialize(_RETRIEVAL, 0, data, _DO_NOT_EXIT)
            if rate <= 0 or library.espeak_SetVoiceByName(VOICE.encode()):
                raise InputError(f"espeakng-loader: expected the voice {VOICE}, found none")
            library.espeak_ng_SetRandSeed(ctypes.c_long(1))
            library.espeak_SetSynthCallback(listener)
            library.espeak_Synth(words, ctypes.c_size_t(len(words)), 0, 1, 0, _UTF8, None, None)
            library.espeak_Terminate()
        finally:
            _ctypes.dlclose(library._handle)
    if not parts:
        raise InputError(f"espeakng-loader: expected speech of {text!r}, found none")
    resampled = needed("soxr", "soxr", "audio").resample(np.concatenate(parts), rate, SAMPLE_RATE)
    return np.asarray(resampled / np.float32(32768), np.float32)


@dataclass(frozen=True)
class Restated:
    """Speaks the words of a recording again, as ``recogniser`` hears them, in one voice for all.

    Without a key: the same words give the same bits, whoever said them.
    """

    recogniser: Recogniser
    name: str = field(default=RESTATE, init=False)

    def __post_init__(self) -> None:
        needed("espeakng_loader", "espeakng-loader", RESTATE)

    def protect(self, recording: Recording, output: Path) -> Protected:
        """Write the words of a ``recording``, spoken again; silence where none was heard."""
        audio = read_audio(recording.path)
        words = normalised(self.recogniser.hear(str(recording.path)))
        silence = np.zeros(round(PAUSE * SAMPLE_RATE), np.float32)
        write_audio(output, spoken(words) if words else silence)
        unheard = (f"no words heard: {PAUSE:g} s of silence in its place",) * (not words)
        return Protected(audio.seconds, None, audio.remarks + unheard, silenced=not words)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        """Who listened and who spoke; there is no ``key``."""
        listener = hashlib.sha256(repr(self.recogniser).encode()).hexdigest()
        heard = {"recogniser": self.recogniser.name, "sha256": listener}
        return {"method": self.name, **heard, "voice": f"eSpeak NG, {VOICE}"}
