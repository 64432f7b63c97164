#!/usr/bin/env python3
"""Opens a page with a flame graph in a real browser: frames lie on the frame that they belong to, are
as wide as their time, and nothing else happens.

  flame.py BROWSER PAGE.html [DIRECTORY for screenshots]
"""

import pathlib
import re
import sys

from cdp import Browser, Fault

FRAMES = """[...document.querySelectorAll('svg g')].map(g => {
  const box = g.querySelector('rect').getBoundingClientRect();
  return [g.querySelector('title').textContent, box.left, box.top, box.width, box.height];
})"""


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


def explore(browser, page, shots):
    browser.size(1200, 900)
    browser.open(page.as_uri())
    frames = browser.run(FRAMES)
    check(len(frames) >= 3, "only", len(frames), "frames are drawn")
    seconds = lambda title: float(re.search(r": ([0-9.]+) s \(", title)[1])
    bottom = max(top for _, _, top, _, _ in frames)
    whole = sum(width for _, _, top, width, _ in frames if top == bottom)
    total = sum(seconds(title) for title, _, top, _, _ in frames if top == bottom)
    for title, left, top, width, height in frames:
        check(abs(width / whole - seconds(title) / total) < 0.02, title, "is", width, "of", whole)
        if top == bottom:
            continue
        below = [f for f in frames if abs(f[2] - top - height - 1) < 2 and f[1] <= left + 1
                 and f[1] + f[3] >= left + width - 1]
        check(len(below) == 1, title, "lies on", len(below), "frames")
    check(browser.run("document.querySelectorAll('.lane').length") > 0, "there is no lane of discards")
    check(browser.run("document.querySelector('h1').textContent").strip(), "there is no title")
    wide = browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(wide <= 0, "the page is", wide, "px too wide")
    if shots:
        browser.screenshot(shots / "flame.png")
    browser.size(390, 800, mobile=True)
    wide = browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(wide <= 0, "on a phone the page is", wide, "px too wide")
    check(not browser.faults, browser.faults)
    asked = [url for url in browser.requests if not url.startswith(("file:", "about:"))]
    check(not asked, "it asked for", asked)
    print(f"{page.name}: {len(frames)} frames")


def main():
    program, page = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    browser = Browser(program)
    try:
        explore(browser, page, shots)
    except Fault as fault:
        sys.exit(f"{page.name}: {fault}; on the console: {browser.faults}")
    finally:
        browser.close()


main()
