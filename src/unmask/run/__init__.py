"""Where work runs and what it leaves behind: places, jobs, progress, files."""

from unmask.run.cuda import on_devices, product_type
from unmask.run.disk import cache_directory, check_memory, check_room, memory_left
from unmask.run.files import atomic_file, atomic_path, locked, write_whole
from unmask.run.job import Range, accumulate, ranges_of
from unmask.run.places import (
    Lost,
    Place,
    check_place,
    current_place,
    devices,
    end_with_parent,
    keeping,
    place,
    within,
)
from unmask.run.progress import Progress, advance, part, reporting
from unmask.run.shared import ArrayFields
from unmask.run.state import workplace
from unmask.run.store import Arrays, read_arrays, write_arrays
from unmask.run.where import HERE, Where, by_default, code_among, kept_open, run, tensor
from unmask.run.xp import NUMPY, Numpy, Torch, Xp, narrow

__all__ = [
    "HERE",
    "NUMPY",
    "ArrayFields",
    "Arrays",
    "Lost",
    "Numpy",
    "Place",
    "Progress",
    "Range",
    "Torch",
    "Where",
    "Xp",
    "accumulate",
    "advance",
    "atomic_file",
    "atomic_path",
    "by_default",
    "cache_directory",
    "check_memory",
    "check_place",
    "check_room",
    "code_among",
    "current_place",
    "devices",
    "end_with_parent",
    "keeping",
    "kept_open",
    "locked",
    "memory_left",
    "narrow",
    "on_devices",
    "part",
    "place",
    "product_type",
    "ranges_of",
    "read_arrays",
    "reporting",
    "run",
    "tensor",
    "within",
    "workplace",
    "write_arrays",
    "write_whole",
]
