"""Two-covariance probabilistic linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from unmask.base import FloatArray, IntArray, length_normalised
from unmask.errors import InputError
from unmask.run import read_arrays, write_arrays
from unmask.scoring import cosine
from unmask.scoring.cosine import Codes, SpeakerMoments
from unmask.scoring.sides import Sides
from unmask.trials import Embeddings

_FORMAT = "unmask-plda-1"
_NEGLIGIBLE = 1e-9


class Models(NamedTuple):
    """Speakers enrolled with one or more utterances: mean latent vector and how many it holds."""

    means: FloatArray
    counts: IntArray


@dataclass(frozen=True, eq=False)
class Plda:
    r"""A vector is mean + speaker + residual, with speaker ~ N(0, B) and residual ~ N(0, W).

    Vectors are length-normalised, centred, projected by LDA where asked for, and length-normalised
    again before the model applies. With W = I and B = diag(ψ) in the basis that diagonalises both,
    the LLR of one enrolment vector u against a test vector v is

    .. math:: Σ_d \frac{ψ u v}{1 + 2ψ} − \frac{ψ² (u² + v²)}{2 (1 + ψ)(1 + 2ψ)}
        + \log(1 + ψ) − ½ \log(1 + 2ψ),

    a product of low rank plus a term per row and per column. Directions with ψ = 0 carry nothing
    and are dropped. :meth:`fit` makes it, :meth:`load` reads what :meth:`save` wrote.

    Parameters
    ----------
    centre, mean : array
        Means that are taken off, before and after the projection.
    lda : array or None
        Projection on discriminant directions.
    between, within : array
        B and W.
    iterations : int
        Steps of expectation maximisation that made them.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> who = np.repeat(np.arange(100), 8)
    >>> vectors = rng.normal(size=(100, 6))[who] + 0.1 * rng.normal(size=(800, 6))
    >>> voices = um.Embeddings(vectors, who)
    >>> result = um.evaluate(voices, backend=um.Plda.fit(voices), replicates=0)
    >>> result["eer"].value < 0.01
    True
    """

    centre: FloatArray
    lda: FloatArray | None
    mean: FloatArray
    between: FloatArray
    within: FloatArray
    iterations: int = 0

    @classmethod
    def fit(
        cls,
        embeddings: Embeddings,
        *,
        lda: int | None = None,
        shrinkage: float = 0.1,
        iterations: int = 10,
    ) -> Plda:
        """Estimate from labelled embeddings.

        ``iterations=0`` is the closed form (moments); more refine it by expectation maximisation.
        ``lda`` keeps that many discriminant directions. ``shrinkage`` pulls the within-speaker
        covariance towards a multiple of the identity, before LDA and in the model.
        """
        vectors = cosine.unit_rows(embeddings.vectors)
        codes = embeddings.speakers.codes
        centre = vectors.mean(axis=0)
        rows = vectors - centre
        projection = None
        if lda is not None:
            projection = cosine.discriminants(SpeakerMoments.of(rows, codes), lda, shrinkage)
            rows = rows @ projection
        rows = length_normalised(rows)
        mean = rows.mean(axis=0)
        moments = SpeakerMoments.of(rows - mean, codes)
        cosine.refuse_equal_recordings(moments, "plda")
        between, within = moments.between, cosine.shrunk(moments.within, shrinkage)
        for _ in range(iterations):
            between, within = em_step(moments, between, within)
            within = cosine.shrunk(within, shrinkage)
        return cls(centre, projection, mean, between, within, iterations)

    @property
    def name(self) -> str:
        return "plda" if self.lda is None else "lda-plda"

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray]:
        """ψ > 0 and the columns V with VᵀWV = I, VᵀBV = diag(ψ)."""
        variance, basis = eigh(self.between, self.within)
        kept = variance > _NEGLIGIBLE * max(float(variance[-1]), 1.0)
        if not kept.any():
            raise InputError("PLDA: the training speakers do not differ, so nothing can be scored")
        return variance[kept], basis[:, kept]

    @property
    def rank(self) -> int:
        """Number of directions in which speakers differ."""
        return int(self._basis[0].size)

    def transform(self, vectors: npt.ArrayLike) -> FloatArray:
        """Vectors as the model sees them, its mean taken off."""
        rows = cosine.unit_rows(vectors, dimension=self.centre.size) - self.centre
        if self.lda is not None:
            rows = rows @ self.lda
        return length_normalised(rows) - self.mean

    def latent(self, vectors: npt.ArrayLike) -> FloatArray:
        """Coordinates in which W = I and B = diag(ψ)."""
        return self.transform(vectors) @ self._basis[1]

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """Latent coordinates scaled so that their product is the cross term; then a row's own term
        with half of the constant, and a 1 for the other's.
        """
        psi, _ = self._basis
        latent = self.latent(vectors)
        own = (latent * latent) @ (psi * psi / (2 * (1 + psi) * (1 + 2 * psi)))
        constant = (np.log1p(psi) - np.log1p(2 * psi) / 2).sum()
        rows, one = latent * np.sqrt(psi / (1 + 2 * psi)), np.ones(len(latent))
        both = constant / 2 - own, one
        return Sides(np.column_stack([rows, *both]), np.column_stack([rows, *both[::-1]]))

    def enrol(self, vectors: npt.ArrayLike, models: Codes) -> Models:
        """Enrol each model with all its vectors; models in order of their code."""
        counts, means, _ = cosine.group_means(self.latent(vectors), models)
        return Models(means, counts)

    def score_models(self, models: Models, test: npt.ArrayLike) -> FloatArray:
        """LLRs of models of n utterances against single test vectors, by the exact formula.

        Given the mean m of n enrolment vectors a test vector of the speaker is Gaussian with mean
        g·m, g = nψ/(1 + nψ), and variance s = 1 + ψ/(1 + nψ), any other one N(0, 1 + ψ):
        log N(v; g·m, s) − log N(v; 0, 1 + ψ), summed over directions.
        """
        psi, _ = self._basis
        n = models.counts[:, None].astype(np.float64)
        gain = n * psi / (1 + n * psi)
        spread = 1 + psi / (1 + n * psi)
        latent = self.latent(test)
        own = (np.log((1 + psi) / spread) - (gain * models.means) ** 2 / spread).sum(axis=1) / 2
        enrol = np.hstack([gain * models.means / spread, (1 / (1 + psi) - 1 / spread) / 2])
        return np.asarray(enrol @ np.hstack([latent, latent * latent]).T + own[:, None])

    def save(self, path: str | Path) -> None:
        """Write as npz, without pickle."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: np.asarray(part) for name, part in parts.items() if part is not None}
        write_arrays(path, _FORMAT, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Plda:
        """Read what :meth:`save` wrote."""
        arrays = read_arrays(path, _FORMAT, ("centre", "mean", "between", "within", "iterations"))
        width = arrays["mean"].size
        shapes = {"centre": arrays["centre"].shape, "mean": (width,)}
        shapes |= dict.fromkeys(("between", "within"), (width, width))
        shapes |= {"lda": (*shapes["centre"], width)} if "lda" in arrays else {}
        for name, shape in shapes.items():
            one = arrays[name]
            if one.dtype.kind != "f" or one.shape != shape or not np.isfinite(one).all():
                wanted = f"finite numbers of shape {shape} in {name}"
                raise InputError(path, wanted, f"{one.dtype} {one.shape}")
        steps = arrays.pop("iterations")
        if steps.shape or steps.dtype.kind not in "iu":
            raise InputError(path, "a whole number of iterations", steps.dtype)
        lda = arrays.pop("lda", None)
        return cls(lda=lda, iterations=int(steps), **{k: arrays[k] for k in shapes if k != "lda"})


def em_step(
    moments: SpeakerMoments, between: FloatArray, within: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """One step of expectation maximisation for B and W; never lowers the likelihood.

    A speaker with n vectors of mean m has posterior mean G·m and covariance G·W/n with
    G = B(B + W/n)⁻¹; speakers with equal n share G.
    """
    speakers, size = moments.counts.size, moments.size
    new_between = np.zeros_like(between)
    new_within = moments.scatter.copy()
    for n in np.unique(moments.counts):
        means = moments.means[moments.counts == n]
        gain = np.linalg.solve(between + within / n, between).T
        covariance = gain @ within / n
        speaker = means @ gain.T
        rest = means - speaker
        new_between += means.shape[0] * covariance + speaker.T @ speaker
        new_within += n * (means.shape[0] * covariance + rest.T @ rest)
    both = new_between / speakers, new_within / size
    return (both[0] + both[0].T) / 2, (both[1] + both[1].T) / 2
