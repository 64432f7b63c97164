"""fio as a reader, and its logs."""

import contextlib
import json
import pathlib
import signal

from .numbers import STEP_S, Step
from .places import MIB, fill
from .programs import call, running

READS = ["fio", "--name=reads", "--rw=randread", "--bs=4k", "--direct=1", "--thread", "--ioengine=io_uring", "--iodepth=8",
         "--time_based", "--runtime=3600", "--norandommap", "--log_unix_epoch=1", "--per_job_logs=0", "--output=/dev/null"]
STEP_MS = round(STEP_S * 1e3)


class Reader:
    """4 KiB at random at depth 8 from a file, until it is stopped: `with Reader(…) as reader`.

    Its log has the reads of each step or, with `each`, the latency of each read. `drive` takes it as its foreground.
    """

    def __init__(self, file, log, *more, size=256 * MIB, drive=None, each=False):
        self.log = pathlib.Path(f"{log}_{'lat' if each else 'iops'}.log")
        if not file.exists():
            fill(file, size)
        logs = [f"--write_lat_log={log}"] if each else [f"--write_iops_log={log}", f"--log_avg_msec={STEP_MS}"]
        words = [*READS, f"--filename={file}", f"--size={size}", *logs, *more]
        self.words = drive.foreground(*words) if drive else words

    def __enter__(self):
        self.log.unlink(missing_ok=True)
        self.stack = contextlib.ExitStack()
        self.program = self.stack.enter_context(running(*self.words, stop=signal.SIGINT))
        return self

    def __exit__(self, *_):
        self.stack.close()

    def steps(self):
        return steps(self.log.read_text())

    def latencies(self):
        return latencies(self.log.read_text())


def steps(text):
    """The steps of a log of rates. fio writes a step's end, and no line for a step without a read."""
    lines = [line.split(",") for line in text.splitlines()]
    if not lines:
        return []
    first = int(lines[0][0])
    rates = {round((int(at) - first) / STEP_MS): int(per_s) for at, per_s, *_ in lines}
    return [Step(first / 1e3 + (i - 1) * STEP_S, STEP_S, rates.get(i, 0) * STEP_S) for i in range(max(rates) + 1)]


def latencies(text):
    """When each read ended, in seconds, and how long it took, in milliseconds."""
    return [(int(at) / 1e3, int(ns) / 1e6) for at, ns, *_ in (line.split(",") for line in text.splitlines())]


def job(*words):
    """The report of fio's first job."""
    text = call("fio", "--name=job", *words, "--output-format=json")
    return json.loads(text[text.index("{"):])["jobs"][0]
