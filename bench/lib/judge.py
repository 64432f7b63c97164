"""`trimbench run` as the judge of a deletion: readers of its own that know nothing of what the deleter sees."""

import json
import os
import statistics
import sys
import threading
import time

from .numbers import STEP_S, Step, losses, merged, percentile, rate, spread, windows
from .programs import Failed, report, trimbench

# A run is made so often until the machine didn't stand still, and readers read as much after the deletion as before, within DRIFT.
ATTEMPTS, DRIFT = 4, 0.15


def event(place, command, *more):
    """The verdict of `trimbench run` on a command of others, with the time that readers lost."""
    verdict = report("run", place, "--event", command, "--set", "foreground.size=256M", "--settle", "3s", "--quiet", "--json", "-", *more)
    reader = next(one for one in verdict["foreground"] if one["actor"] == "reader")
    lost = reader["lost_s"]
    return verdict, lost if lost is not None else (reader["stall"] or {}).get("lost_s")


def judge(record, path, *more, foreground=("--depth", "8")):
    """Runs the judge, whose record becomes this file; the record's Run."""
    trimbench("run", path, *foreground, "--set", "canary=0", "--set", f"interval={STEP_S * 1e3:g}ms", "--quiet", "--output", record, *more)
    return Run(record)


class Machine:
    """When this machine stood still, as a virtual one does that has used up its share: a thread that has a processor
    before all others woke too late."""

    LATE_S = 0.02

    def __init__(self):
        self.stood = []
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        last = time.time()
        while True:
            time.sleep(0.005)
            now = time.time()
            if now - last > self.LATE_S:
                self.stood.append((last, now))
            last = now

    def undisturbed(self, measure):
        """The first run that neither a pause of the machine nor a drift of the readers disturbed; else the least disturbed."""
        runs = []
        for _ in range(ATTEMPTS):
            runs.append(run := measure())
            run.stood = sum(to - since for since, to in self.stood if run.overlaps(since, to))
            if not run.stood and abs(run.drift) < DRIFT:
                return run
            print(f"    again: the machine stood still for {run.stood * 1e3:.0f} ms, readers drifted by {run.drift:.0%}", file=sys.stderr, flush=True)
        return min(runs, key=lambda run: (run.stood, abs(run.drift)))


class Run:
    """What the readers of a record lost. The clock runs from the deletion's first moment to its last discard."""

    def __init__(self, record):
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        of = lambda kind: [line for line in lines if line["line"] == kind]
        # What wasn't deleted cost nothing.
        for line in of("event"):
            if line.get("detail", "").startswith("the deletion had errors"):
                raise Failed(f"{record}: {line['detail']}")
        head = of("head")[0]
        leaves = [i for i, device in enumerate(head["devices"]) if device["leaf"]]
        steps = []
        for line in of("interval"):
            count, size, ms = (sum(line["devices"][i][key] for i in leaves) for key in ("discards", "discard_bytes", "discard_ms"))
            actor = line["actors"][0]
            steps.append(Step(line["at_s"], line["seconds"], actor and actor["ops"], count, size, ms / 1e3))
        phases = {line["name"]: line["at_s"] for line in of("phase")}
        self.record, self.began, self.stood = record, head["started_unix_s"], 0
        # Where nothing is deleted, what lies between the first three seconds and the last two is looked at alike.
        deleted = [line["at_s"] for line in of("event") if line["kind"] == "deletion-began"]
        self.start = deleted[0] if deleted else phases["baseline"] + 3
        after = [s for s in steps if s.end > self.start and s.ops is not None]
        total = sum(s.discard_bytes for s in after)
        self.end = ([s for s in after if s.discard_bytes > total / 1000] or after)[-1].end - (0 if deleted else 2)
        before = rate([s for s in steps if phases["baseline"] <= s.at < self.start - STEP_S and s.ops])
        later = rate([s for s in after if s.at > self.end + 4 * STEP_S and s.ops] or [Step(0, 1, before)])
        # Readers of a shared disk drift: what they do without the deletion is the mean of before and after.
        self.base, self.drift = (before + later) / 2, later / before - 1
        self.time = self.end - self.start
        self.discards = sum(s.discards for s in after)
        self.service = sum(s.discard_s for s in after) / max(self.discards, 1)
        self.look_at(after, self.time)

    def look_at(self, steps, seconds):
        """Looks at what is lost in these."""
        self.steps = steps
        self.during = [s for s in steps if s.at < self.end]
        counted = [s for s in steps if s.at < self.end + STEP_S]
        self.lost = sum(s.seconds - s.ops / self.base for s in counted)
        self.mean = self.lost / max(seconds, 1e-9)
        self.held = sum(s.held_s for s in steps) / max(seconds, 1e-9)

    def beside_discards(self):
        """Looks at the seconds with discards alone, where these come minutes after the deletion."""
        came = [s.at for s in self.steps if s.discards]
        near = [s for s in self.steps if any(abs(s.at - at) <= 1 for at in came)]
        self.look_at(near, sum(s.seconds for s in near))
        return self

    def overlaps(self, since, to):
        """Whether anything that is looked at was between two times of the clock."""
        return any(self.began + s.at < to and self.began + s.end > since for s in self.during)

    def losses(self, length):
        """The loss of every window that begins within the deletion."""
        return losses(self.steps, length, self.base, self.end)

    def held_window(self, length):
        """The largest share of a window in which discards kept the device: chance does nothing to it."""
        return max((w.held_s / w.seconds for w in windows(self.steps, length, self.end)), default=0.0)

    def figures(self):
        return {"time_s": self.time, "lost_s": self.lost, "mean": self.mean, "discards": self.discards, "held": self.held,
                "service_ms": self.service * 1e3, "base_per_s": self.base, "drift": self.drift, "machine_stood_s": self.stood}


def rows(cell, runs, phi=1.0, nearly_free=False):
    """The rows of a cell's runs, as (case, run). A case that is a number is a goal in percent; `plain` and `none` are
    deletion without a goal and no deletion. `phi` is the share of the drive that a discard keeps."""
    of = lambda case: [run for name, run in runs if name == case]
    lost, took, service = (statistics.median(getattr(run, key) for run in of("plain")) for key in ("lost", "time", "service"))
    out = []
    for case, run in runs:
        share = float(case) / 100 if case.replace(".", "").isdigit() else None
        if share:
            # Where plain deletion has several in flight, their waits are longer than they take.
            service = min(service, run.service)
        grid = max(0.1, 3 * service * phi)
        shares = [s.ops / s.seconds / run.base for s in merged(run.during, grid) if s.seconds > grid * 0.7]
        row = {"cell": cell, "case": f"{case} %" if share else case, **run.figures(),
               "low": sum(one < 0.5 for one in shares)}
        length = max(1.0, 2 * service * phi / (share or 0.1))
        row |= {"held": run.held * phi, "held_window": run.held_window(length) * phi, "window_s": length,
                "worst_window": max(run.losses(length), default=0.0), "nearly_free": nearly_free}
        if share:
            optimum = max(lost / share, took)
            noise = percentile([loss for still in of("none") for loss in still.losses(length)], 0.95)
            row |= {"goal": share, "lost_ratio": run.lost / lost, "time_ratio": run.time / optimum, "plain_ratio": run.time / took,
                    "noise": noise, "allowed": share + max(0.03, noise)}
            bounds = {
                "window": row["worst_window"] > row["allowed"],
                "mean": run.mean > share + 0.02 and run.time > length,
                "low": share <= 0.30 and row["low"],
                # What a run without deletion can lose by chance.
                "lost": run.lost > 1.15 * lost + 0.02,
                "time": run.time > 1.25 * optimum + 0.1,
                "1.2": nearly_free and run.time > 1.2 * took + 0.1,
            }
            row |= {"missed": [bound for bound, missed in bounds.items() if missed], "goal_held": not (bounds["mean"] or bounds["window"])}
        out.append(row)
    return out


def _beside_plain(ratio, instead, unit):
    """A ratio. A drive that loses next to nothing has no optimum: there it is another figure."""
    def cell(group):
        if "goal" not in group[0]:
            return ""
        return spread([row[instead] for row in group], 2) + unit if group[0]["nearly_free"] else spread([row[ratio] for row in group], 2)
    return cell


def _missed(group):
    if "goal" not in group[0]:
        return ""
    all_missed = [bound for row in group for bound in row["missed"]]
    return ", ".join(f"{bound} {all_missed.count(bound)}" for bound in sorted(set(all_missed))) or "none"


# The columns of benches whose rows come from `rows`.
COLUMNS = {
    "cell": "cell", "goal": "case", "time s": ("time_s", 2), "÷ optimum": _beside_plain("time_ratio", "plain_ratio", " × plain"),
    "lost ÷ plain": _beside_plain("lost_ratio", "lost_s", " s"), "mean loss %": ("mean", 1, 100), "worst window %": ("worst_window", 1, 100),
    "allowed %": ("allowed", 1, 100), "drift %": ("drift", 0, 100), "busy with discards %": ("held", 1, 100),
    "in the worst window %": ("held_window", 1, 100), "intervals below half": ("low", 0), "bounds missed": _missed,
}
