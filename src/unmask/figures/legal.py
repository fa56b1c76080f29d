"""All figures of a sweep of the legally validated metrics."""

from __future__ import annotations

from unmask.figures.figure import Figure
from unmask.figures.legal_panel import legal_panel
from unmask.figures.legal_ranks import rank_histograms
from unmask.figures.legal_speakers import speaker_risks
from unmask.figures.theme import PALETTE, WIDE
from unmask.privacy.legal import LegalSweep, RiskCurve


def legal_figures(
    sweep: LegalSweep, *, colour: str = PALETTE[0], width: float = WIDE
) -> list[Figure]:
    """The panel, and for each length the risks of speakers and the ranks."""
    figures = [legal_panel(sweep, colour=colour, width=width)]
    for length in sweep.lengths:
        for metric in ("singling_out", "linkability"):
            shown = {
                name: sweep.shown(name, metric, length)
                for name in sweep.attackers
                if metric in sweep.metrics
            }
            curves = {n: curve for n, curve in shown.items() if isinstance(curve, RiskCurve)}
            if curves:
                figures.append(
                    speaker_risks(
                        curves,
                        original=sweep.original,
                        colour=colour,
                        width=width,
                        name=f"speaker_risks_{metric}_{length}",
                    )
                )
        ranks = {name: r for (name, size), r in sweep.ranks.items() if size == length}
        if ranks:
            figures.append(
                rank_histograms(
                    ranks,
                    original=sweep.original,
                    colour=colour,
                    width=width,
                    name=f"rank_histograms_{length}",
                )
            )
    return figures
