#!/usr/bin/env python3
"""Opens the page of a sheet in a real browser.

  sheet.py BROWSER SHEET.html [DIRECTORY for screenshots]

Holds it to what every page promises: nothing is loaded, nothing is complained of, no line is wider
than a phone, and all tables are there. Prints what it found; exits 1 with the first fault.
"""

import pathlib
import sys

from cdp import Browser, Fault


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


def main():
    program, page = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    browser = Browser(program)
    try:
        for name, width, mobile in [("desktop", 1280, False), ("phone", 360, True)]:
            browser.size(width, 800, mobile)
            browser.open(page.as_uri())
            count = browser.run("[document.querySelectorAll('table').length, "
                                "document.querySelectorAll('tbody tr').length]")
            check(all(count), "tables and rows:", count)
            wide = browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            check(wide <= 0, name, "scrolls sideways by", wide)
            if shots:
                browser.screenshot(shots / f"sheet-{name}.png")
        others = [url for url in browser.requests if url != page.as_uri()]
        check(not others, "it loads", others)
        check(not browser.faults, browser.faults)
        print("tables, rows:", count)
    except Fault as fault:
        print("sheet:", fault, file=sys.stderr)
        sys.exit(1)
    finally:
        browser.close()


main()
