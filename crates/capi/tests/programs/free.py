"""The same interface from Python: the library, a directory, and what is to be printed."""
import ctypes
import os
import sys

library, directory = sys.argv[1:]
trim = ctypes.CDLL(library)
trim.trimbench_error.restype = ctypes.c_char_p
trim.trimbench_throttle_open.restype = ctypes.c_void_p
trim.trimbench_throttle_backlog.restype = ctypes.c_uint64
for name in ["wait", "try"]:
    function = getattr(trim, "trimbench_throttle_" + name)
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
for name in ["done", "backlog", "close"]:
    getattr(trim, "trimbench_throttle_" + name).argtypes = [ctypes.c_void_p, ctypes.c_uint64][: 2 if name == "done" else 1]
trim.trimbench_throttle_set_goal.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

assert trim.trimbench_abi() == 1
assert trim.trimbench_throttle_open(b"/nonexistent", None) is None
assert b"/nonexistent" in trim.trimbench_error(), trim.trimbench_error()
assert trim.trimbench_throttle_open(None, None) is None
assert trim.trimbench_throttle_wait(None, 1) == -1
assert trim.trimbench_error() == b"the throttle is NULL"

throttle = trim.trimbench_throttle_open(directory.encode(), b"slowdown=20%")
assert throttle, trim.trimbench_error()
path = os.path.join(directory, "file")
with open(path, "wb") as file:
    file.write(os.urandom(16 << 20))
    os.fsync(file.fileno())
left = 16 << 20
assert trim.trimbench_throttle_wait(throttle, 0) == 0
while left:
    may = trim.trimbench_throttle_wait(throttle, left)
    assert 1 <= may <= left, (may, left, trim.trimbench_error())
    left -= may
    os.truncate(path, left)
    assert trim.trimbench_throttle_done(throttle, may) == 0, trim.trimbench_error()
    assert trim.trimbench_throttle_set_goal(throttle, b"slowdown=30%") == 0
assert trim.trimbench_throttle_backlog(throttle) <= 16 << 20
trim.trimbench_throttle_close(throttle)
os.unlink(path)
print("freed")
