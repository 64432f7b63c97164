"""A bench's page in docs/figures: the question, how it was measured, and the table."""

import datetime
import os
import pathlib
import platform
import re
import shlex
import textwrap

from .numbers import groups, table
from .programs import TRIMBENCH, Failed, call, trimbench

# What each page says about its figures, in this order, as `- Name: …`.
FIELDS = ("Command", "Commit", "Date", "Machine", "Kernel", "Runs", "Goal")
NOTES = "\n## Notes\n"


def command(name, options, default):
    """The command, without what changes no figure: where files lie, and how the page was asked for."""
    words = [f"bench/{name}"]
    for key, value in options.items():
        if key not in ("json", "earlier", "write", "keep") and value != default(key):
            value = "DIR" if isinstance(value, str) and os.path.isdir(value) else value
            words += [f"--{key}", *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def context(command, path, versions):
    """The fields that the machine knows."""
    info, memory = pathlib.Path("/proc/cpuinfo").read_text(), pathlib.Path("/proc/meminfo").read_text()
    model = re.search(r"model name\s*: (.*)", info)
    build, git = pathlib.Path(TRIMBENCH).parent, ["git", "-C", pathlib.Path(TRIMBENCH).parent]
    try:
        changed = call(*git, "status", "--porcelain", "-uno", "--", ":/crates", ":/profiles", ":/bench")
        commit = call(*git, "rev-parse", "--short", "HEAD").strip() + (" with changes" if changed else "")
    except Failed:
        commit = "not recorded"
    programs = [trimbench("--version").splitlines()[0], *(call(program, "--version").splitlines()[0] for program in versions)]
    return {
        "Command": f"`{command}`", "Commit": f"{commit}, build profile `{build.name}`", "Date": datetime.date.today().isoformat(),
        "Machine": f"{'virtual machine, ' if ' hypervisor' in info else ''}{os.cpu_count()} × {model[1] if model else platform.machine()}, "
                   f"{int(memory.split()[1]) / (1 << 20):.0f} GiB of memory; {' '.join(call('findmnt', '-no', 'SOURCE,FSTYPE', '-T', path).split())}; "
                   + ", ".join(programs),
        "Kernel": f"Linux {platform.release()}"}


def page(doc, heads, rows, columns, old="", picture=""):
    """The page; what an older one has below `## Notes` stays."""
    title, *text = (" ".join(part.split()) for part in doc.strip().split("\n\n"))
    goal = text.pop().removeprefix("Goal: ") if text and text[-1].startswith("Goal: ") else "none; these figures describe."
    if held := _held(rows):
        columns = columns | {"runs that held the goal": _held}
        goal += f" **Held in {held} runs.**"
    runs = sorted(len(group) for group in groups(rows, columns))
    head = {field: "; ".join(dict.fromkeys(one[field] for one in heads)) for field in FIELDS[:-2]}
    head |= {"Runs": f"{runs[0]}{f' to {runs[-1]}' if runs[-1] > runs[0] else ''} of each row. A cell shows the median (least to most)", "Goal": goal}
    wrap = lambda part, more="": textwrap.fill(part, 100, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
    parts = [f"# {title}", *map(wrap, text), *([f"![{title}]({picture})"] if picture else []), "\n".join(wrap(f"- {field}: {head[field]}", "  ") for field in FIELDS), table(rows, columns)]
    return "\n\n".join(parts) + "\n" + (NOTES + old.split(NOTES, 1)[1] if NOTES in old else "")


def _held(rows):
    held = [row["goal_held"] for row in rows if row.get("goal_held") is not None]
    return f"{sum(held)} of {len(held)}" if held else ""
