"""Runs programs, and ends them when the bench ends."""

import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The binary. Shells of a bench know it as `$TRIMBENCH`.
TRIMBENCH = os.environ["TRIMBENCH"] = os.path.abspath(os.environ.get("TRIMBENCH", ROOT / "target/release/trimbench"))


class Failed(SystemExit):
    """A program failed: the bench ends with what it printed."""


def call(*words, good=(0,), **more):
    """What a program prints."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", **more)
    except FileNotFoundError as missing:
        raise Failed(f"{missing.filename} is missing; install it") from None
    if done.returncode not in good:
        raise Failed(f"{shlex.join(words)}: exit code {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def trimbench(*words, good=(0, 3), **more):
    """What trimbench prints. Exit code 3, a goal that was missed, is a result."""
    return call(TRIMBENCH, *words, good=good, **more)


def report(*words, **more):
    """The JSON that trimbench prints."""
    return json.loads(trimbench(*words, **more))


@contextlib.contextmanager
def running(*words, stop=signal.SIGTERM, log=os.devnull, **more):
    """A program that runs meanwhile, and is stopped at the end."""
    with open(log, "w") as output:
        program = subprocess.Popen([str(word) for word in words], stdout=output, stderr=output, **more)
    try:
        yield program
    finally:
        program.send_signal(stop)
        try:
            program.wait(60)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def until(works, *words, server, seconds=60):
    """Waits until a program works, which asks a server."""
    end = time.monotonic() + seconds
    while subprocess.run([str(word) for word in words], capture_output=True, **works).returncode:
        if server.poll() is not None or time.monotonic() > end:
            raise Failed(f"{shlex.join(map(str, server.args))}: the server does not answer")
        time.sleep(0.1)
