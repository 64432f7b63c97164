"""A bench's page in docs/figures: the question, how it was measured, and the table."""

import datetime
import os
import pathlib
import platform
import re
import shlex
import textwrap

from .numbers import groups, table
from .programs import ROOT, TRIMBENCH, Failed, call, trimbench

# What each page says about its figures, in this order, as `- Name: …`.
FIELDS = ("Command", "Commit", "Date", "Machine", "Kernel", "Runs", "Goal")
NOTES = "\n## Notes\n"


def command(name, options, default):
    """The command, without what changes no figure: where files lie, and how the page was asked for."""
    words = [f"bench/{name}"]
    for key, value in options.items():
        if key not in ("json", "earlier", "write", "keep", "svg") and value != default(key):
            value = "DIR" if isinstance(value, str) and os.path.isdir(value) else value
            words += [f"--{key}", *map(str, value if isinstance(value, list) else [] if value is True else [value])]
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


def page(doc, heads, rows, columns, old=""):
    """The page; what an older one has below `## Notes` stays."""
    title, *text = [re.sub(r"\s+", " ", part).strip() if not part.startswith(" ") else part for part in doc.strip().split("\n\n")]
    goal = next((part.removeprefix("Goal: ") for part in text if part.startswith("Goal: ")), "none; these figures describe.")
    held = [row["goal_held"] for row in rows if row.get("goal_held") is not None]
    if held:
        columns = columns | {"runs that held the goal": _held}
        goal += f" **Held in {sum(held)} of {len(held)} runs.**"
    runs = sorted({len(group) for group in groups(rows, columns)} or {0})
    head = {"Runs": f"{' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} of each row. A cell shows the median (least to most)", "Goal": goal}
    for field in FIELDS[:-2]:
        head[field] = "; ".join(dict.fromkeys(one[field] for one in heads))
    wrap = lambda part, more="": part if part.startswith(" ") else textwrap.fill(part, 100, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
    parts = [f"# {title}", *(wrap(part) for part in text if not part.startswith("Goal: ")),
             "\n".join(wrap(f"- {field}: {head[field]}", "  ") for field in FIELDS), table(rows, columns)]
    return "\n\n".join(parts) + "\n" + (NOTES + old.split(NOTES, 1)[1] if NOTES in old else "")


def write(name, *of):
    """Writes docs/figures/NAME.md."""
    file = ROOT / "docs/figures" / f"{name}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(page(*of, file.read_text() if file.exists() else ""))
    return file


def _held(group):
    held = [row["goal_held"] for row in group if row.get("goal_held") is not None]
    return f"{sum(held)} of {len(held)}" if held else ""
