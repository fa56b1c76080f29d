"""Where work runs and what it leaves behind: places, jobs, progress, files."""

from unmask.run.files import (
    atomic_file,
    atomic_path,
    cache_directory,
    check_memory,
    check_room,
    locked,
    memory_left,
    text_lines,
    write_whole,
)
from unmask.run.job import Range, accumulate, ranges_of, run
from unmask.run.leftovers import scratch_folder
from unmask.run.places import (
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
from unmask.run.state import is_own, workplace
from unmask.run.store import Arrays, load_arrays, npy_array, read_arrays, write_arrays
from unmask.run.xp import NUMPY, Numpy, Torch, Xp, narrow

__all__ = [
    "NUMPY",
    "Arrays",
    "Numpy",
    "Place",
    "Progress",
    "Range",
    "Torch",
    "Xp",
    "accumulate",
    "advance",
    "atomic_file",
    "atomic_path",
    "cache_directory",
    "check_memory",
    "check_place",
    "check_room",
    "current_place",
    "devices",
    "end_with_parent",
    "is_own",
    "keeping",
    "load_arrays",
    "locked",
    "memory_left",
    "narrow",
    "npy_array",
    "part",
    "place",
    "ranges_of",
    "read_arrays",
    "reporting",
    "run",
    "scratch_folder",
    "text_lines",
    "within",
    "workplace",
    "write_arrays",
    "write_whole",
]
