"""The cases, and what they share."""

import dataclasses
from typing import Callable

CASES = []
#: Every comparison that was made: device, fact, ours, the peer, its word.
ROWS = []


@dataclasses.dataclass(frozen=True)
class Case:
    """A test: its name is its function's."""

    name: str
    short: bool
    check: Callable


def case(check=None, *, short=False):
    """Makes a function of the guest a case. `short`: also one of `make test`."""
    if check is None:
        return lambda function: case(function, short=short)
    CASES.append(Case(check.__name__, short, check))
    return check


def chosen(names, short):
    """The cases to run."""
    return [one for one in CASES
            if (one.short or not short) and (not names or any(name in one.name for name in names))]


def same(device, fact, ours, peer, theirs):
    """Fails unless trimbench and another program agree, and notes the comparison."""
    ROWS.append((device, fact, ours, peer, theirs))
    assert ours == theirs, f"{device}, {fact}: trimbench {ours!r}, {peer} {theirs!r}"


def inspected(guest, path, *options):
    """`inspect --json` of a path in the guest."""
    return guest.json(f"trimbench inspect --json - {' '.join(options)} {path}", 300)


def table():
    """The comparisons as a Markdown table, a line for each device and peer."""
    lines = {}
    for device, fact, ours, peer, _ in ROWS:
        facts = lines.setdefault((device, peer), [])
        if (word := f"{fact} {_shown(ours)}") not in facts:
            facts.append(word)
    rows = [f"| {device} | {peer} | {', '.join(facts)} |" for (device, peer), facts in lines.items()]
    return "\n".join(["| device | compared with | facts that agree |", "|---|---|---|", *rows])


def _shown(value):
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "unknown"}[value]
    return value
