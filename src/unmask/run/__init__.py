"""Where work runs and what it leaves behind: places, jobs, files."""

from unmask.run.array_files import Arrays, read_arrays, write_arrays
from unmask.run.cuda import devices, on_devices, product_type
from unmask.run.disk import cache_directory, check_memory, check_room, memory_left
from unmask.run.executors import Lost, Place, check_place, end_with_parent, kept_open, place
from unmask.run.files import atomic_file, atomic_path, locked, write_whole
from unmask.run.job import HERE, Where, by_default, run
from unmask.run.shared import ArrayFields, narrow
from unmask.run.state import Ledger, unfinished, workplace
from unmask.run.tasks import Range, Task, _vanished, load, ranges_of
from unmask.run.tensors import code_among, tensor

__all__ = [
    "HERE",
    "ArrayFields",
    "Arrays",
    "Ledger",
    "Lost",
    "Place",
    "Range",
    "Task",
    "Where",
    "_vanished",
    "atomic_file",
    "atomic_path",
    "by_default",
    "cache_directory",
    "check_memory",
    "check_place",
    "check_room",
    "code_among",
    "devices",
    "end_with_parent",
    "kept_open",
    "load",
    "locked",
    "memory_left",
    "narrow",
    "on_devices",
    "place",
    "product_type",
    "ranges_of",
    "read_arrays",
    "run",
    "tensor",
    "unfinished",
    "workplace",
    "write_arrays",
    "write_whole",
]
