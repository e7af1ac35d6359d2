"""Whether this kernel lets programs use io_uring."""
import ctypes
import os

SYS_IO_URING_SETUP = 425  # on every architecture


def refused():
    """None, or the reason."""
    parameters = ctypes.create_string_buffer(120)
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(SYS_IO_URING_SETUP, 1, parameters)
    if ring < 0:
        return f"this machine refuses io_uring: {os.strerror(ctypes.get_errno())}"
    os.close(ring)
    return None
