"""Percentiles, spreads, windows, the order of turns, and tables."""

import statistics
from typing import NamedTuple

# The length of a step of a reader's log.
STEP_S = 0.05


class Step(NamedTuple):
    """An interval of a reader's log: when it began, how long it was, and its I/O."""

    at: float
    seconds: float
    ops: int
    discards: int = 0
    discard_bytes: int = 0
    discard_s: float = 0.0

    @property
    def end(self):
        return self.at + self.seconds

    @property
    def held_s(self):
        """How long discards kept the device, by the kernel's statistics."""
        return min(self.discard_s, self.seconds)


def percentile(values, share):
    """The value that this share of all does not exceed; NaN of none."""
    values = sorted(values)
    return values[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


def spread(values, digits=1):
    """The median, and the range where there is one."""
    values = [value for value in values if value is not None]
    if not values:
        return ""
    middle, low, high = (f"{round(value, digits) + 0.0:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def rate(steps):
    """The I/O per second of the median step."""
    return statistics.median(step.ops / step.seconds for step in steps)


def windows(steps, length, until=float("inf")):
    """The sums of every stretch of steps that has this length and no gap, and begins no later than `until`."""
    for i, first in enumerate(steps):
        if first.at > until:
            return
        seconds = held = ops = 0
        before = first
        for step in steps[i:]:
            if step.at - before.at > 2 * before.seconds + STEP_S:
                break
            seconds, ops, held, before = seconds + step.seconds, ops + step.ops, held + step.held_s, step
            if seconds >= length - STEP_S / 2:
                yield Step(first.at, seconds, ops, discard_s=held)
                break


def losses(steps, length, base, until=float("inf")):
    """The share of its reads that a reader lost in each of these windows; `base` is its rate without a deletion."""
    return [1 - window.ops / window.seconds / base for window in windows(steps, length, until)]


def merged(steps, length):
    """Steps of about this length, without their discards."""
    out = []
    for step in steps:
        if out and out[-1].seconds < length - STEP_S / 2:
            out[-1] = Step(out[-1].at, out[-1].seconds + step.seconds, out[-1].ops + step.ops)
        else:
            out.append(Step(*step[:3]))
    return out


def turns(cases, repeats):
    """Each case in each turn. A turn begins with another case than the last, so that drifts reach all alike."""
    for turn in range(repeats):
        shift = turn % max(len(cases), 1)
        for case in cases[shift:] + cases[:shift]:
            yield turn, case


def groups(rows, columns):
    """The rows of each line of a table: those that agree in the columns that are names of keys."""
    keys = [column for column in columns.values() if isinstance(column, str)]
    found = {}
    for row in rows:
        found.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return list(found.values())


def table(rows, columns):
    """A Markdown table, a line for each group.

    Columns are a key, a key with its digits (and a factor), of which the spread is shown, or a function of the group.
    """
    lines = [list(columns), ["---"] * len(columns)]
    lines += [[_cell(column, group) for column in columns.values()] for group in groups(rows, columns)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")


def _cell(column, group):
    if isinstance(column, str):
        return str(group[0].get(column, ""))
    if callable(column):
        return str(column(group))
    key, digits, times = (*column, 1)[:3]
    return spread([row[key] * times for row in group if row.get(key) is not None], digits)
