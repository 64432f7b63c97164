"""The frame of a bench: its arguments, its cases in turns, its rows as JSON, and its page."""

import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

from .numbers import turns
from .page import command, context, page
from .programs import ROOT, TRIMBENCH

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Bench:
    """`with Bench(…) as bench:` runs the cases that the arguments choose, and prints its page at the end.

    The doc's first line is the page's title. A paragraph `Goal: …` says what a row's `goal_held` means.

    A case is a name, parts separated by `/`. `usual` are those that run without `--only`. Further keywords are
    options of the bench alone, each a default and its help. `picture` makes an SVG of the rows. Everything lies in `bench.home`, which goes away.
    """

    def __init__(self, doc, cases, columns, usual=None, repeats=3, versions=(), picture=None, **more):
        self.doc, self.columns, self.versions, self.picture, self.rows, self.heads = doc, columns, versions, picture, [], []
        self.name = os.path.basename(sys.argv[0])
        parser = argparse.ArgumentParser(
            prog=f"bench/{self.name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=f"The variable TRIMBENCH names another binary than target/release/trimbench. Needs root.\n\ncases: {'  '.join(cases)}")
        parser.add_argument("--only", nargs="+", metavar="CASE", help="these cases, e.g. 't500/*'; '*': all")
        parser.add_argument("--repeats", type=int, default=repeats, help="of each case; default: %(default)s")
        parser.add_argument("--json", metavar="FILE", help="write each run's figures to FILE")
        parser.add_argument("--from", nargs="+", metavar="FILE", dest="earlier", help="measure nothing: the page of these files of --json")
        parser.add_argument("--write", action="store_true", help=f"write the page to docs/figures/{self.name}.md")
        parser.add_argument("--keep", metavar="DIR", help="keep records and logs in DIR")
        for name, (default, text) in more.items():
            how = {"nargs": "+", "type": type(default[0])} if isinstance(default, list) else {"type": type(default)}
            parser.add_argument(f"--{name}", help=text if default == "" else f"{text}; default: %(default)s", default=default, **how)
        self.options = parser.parse_args()
        self.command = command(self.name, vars(self.options), parser.get_default)
        if self.options.earlier:
            for file in self.options.earlier:
                found = json.loads(pathlib.Path(file).read_text())
                self.heads.append(found["head"])
                self.rows += found["rows"]
            self.publish()
            sys.exit()
        self.cases = cases if usual is None else usual
        if self.options.only:
            self.cases = [case for case in cases if any(fnmatch.fnmatchcase(case, one) for one in self.options.only)]
            if unknown := [one for one in self.options.only if not fnmatch.filter(cases, one)]:
                parser.error(f"there is no case {unknown[0]}; --help lists them")
        if not os.path.exists(TRIMBENCH):
            parser.error(f"{TRIMBENCH} is missing; run `make build`")
        if os.geteuid() != 0:
            parser.error("it needs root: it makes drives or file systems")

    def __enter__(self):
        for number in ENDING:
            signal.signal(number, end)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="trimbench-bench-", dir="/var/tmp"))
        self.home.chmod(0o755)
        self.stack = contextlib.ExitStack()
        self.stack.callback(shutil.rmtree, self.home, ignore_errors=True)
        self.notes = pathlib.Path(self.options.keep or self.home / "notes").resolve()
        self.notes.mkdir(parents=True, exist_ok=True)
        self.heads = [context(self.command, getattr(self.options, "path", "") or self.home, self.versions)]
        os.environ["TRIMBENCH_LAB_DIR"] = f"{self.home}/lab"
        return self

    def __exit__(self, *_):
        self.stack.close()
        if self.rows:
            self.save()
            self.publish()

    def turns(self, cases=None, where=""):
        """Each case in turns; by default those that the arguments choose."""
        for turn, case in turns(self.cases if cases is None else cases, self.options.repeats):
            self.say(f"{turn + 1}/{self.options.repeats} {where} {case}")
            yield case

    def add(self, **row):
        """Notes a run's figures: in the file of --json, and on standard error."""
        self.rows.append(row)
        self.say("  " + ", ".join(f"{key} {value:.4g}" for key, value in row.items() if isinstance(value, (int, float))))
        self.save()

    def save(self):
        if self.options.json:
            pathlib.Path(self.options.json).write_text(json.dumps({"head": self.heads[0], "rows": self.rows}, indent=1))

    def publish(self):
        """Prints the page and, with --write, makes it the file in docs/figures."""
        file = ROOT / f"docs/figures/{self.name}.md"
        text = page(self.doc, self.heads, self.rows, self.columns, file.read_text() if file.exists() else "", f"{self.name}.svg" if self.picture else "")
        print(text, flush=True)
        if self.options.write:
            file.write_text(text)
            if self.picture:
                file.with_suffix(".svg").write_text(self.picture(self.rows))
            self.say(f"{file} is written. Its notes stay: read them again, and FIGURES.md")

    def say(self, text):
        print(f"  {text}", file=sys.stderr, flush=True)

    def note(self, name):
        """A new file for a record or a log."""
        return self.notes / f"{len(list(self.notes.iterdir())):03}-{name.replace('/', '-')}"


def end(number, _):
    """The first signal ends the bench by way of everything that cleans up. Later ones don't interrupt that."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)
