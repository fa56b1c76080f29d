"""Where work runs and what it leaves behind: places, jobs, progress, files."""

from unmask.run.files import (
    atomic_file as atomic_file,
    atomic_path as atomic_path,
    cache_directory as cache_directory,
    check_memory as check_memory,
    check_room as check_room,
    locked as locked,
    memory_left as memory_left,
    text_lines as text_lines,
    write_whole as write_whole,
)
from unmask.run.job import (
    Range as Range,
    accumulate as accumulate,
    ranges_of as ranges_of,
    run as run,
)
from unmask.run.leftovers import (
    is_own as is_own,
    scratch_folder as scratch_folder,
    workplace as workplace,
)
from unmask.run.places import (
    Place as Place,
    current_place as current_place,
    devices as devices,
    end_with_parent as end_with_parent,
    keeping as keeping,
    place as place,
    within as within,
)
from unmask.run.progress import (
    Progress as Progress,
    advance as advance,
    part as part,
    reporting as reporting,
)
from unmask.run.store import (
    Arrays as Arrays,
    load_arrays as load_arrays,
    npy_array as npy_array,
    npy_header as npy_header,
    read_arrays as read_arrays,
    write_arrays as write_arrays,
)
from unmask.run.xp import NUMPY as NUMPY, Numpy as Numpy, Torch as Torch, Xp as Xp, narrow as narrow
