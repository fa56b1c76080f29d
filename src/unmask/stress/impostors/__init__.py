"""Worst-case false alarms of the closest of N impostors (Sholokhov 2020), measured."""
