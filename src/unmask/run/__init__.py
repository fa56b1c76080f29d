"""Where work runs and what it leaves behind: places, jobs, progress, files."""

from unmask.run.files import atomic_file, atomic_path, cache_directory, check_memory, check_room
from unmask.run.files import check_writable, content_digest, locked, make_folder, memory_left
from unmask.run.files import private_files, private_folder, scratch_folder, text_lines, workplace
from unmask.run.files import LINE_ENDS, Busy, files_below, folders_below, write_whole
from unmask.run.outputs import MARK, check_output, check_output_folder, command_files
from unmask.run.outputs import identity, is_input, is_written_by_unmask, marked, overwriting
from unmask.run.outputs import is_pipe, read_once, refuse_input, remember_input
from unmask.run.job import Range, accumulate, kept, ranges_of, run
from unmask.run.executors import Place, available, beside, current_place, devices
from unmask.run.executors import end_with_parent, in_parts, keeping, one_blas_thread, run_on
from unmask.run.executors import within
from unmask.run.steps import Progress, advance, part, progress
from unmask.run.store import Arrays, load_arrays, npy_array, npy_header, read_arrays, write_arrays
from unmask.run.xp import NUMPY, Numpy, Torch, Xp, narrow
