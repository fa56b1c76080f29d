"""Worst-case false alarms beyond the impostors at hand: models, their choice, their comparison."""
