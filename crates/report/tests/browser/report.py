#!/usr/bin/env python3
"""Opens an HTML report in a real browser and holds what it says at a cursor to what it draws.

  report.py BROWSER REPORT.html [DIRECTORY for screenshots]

Prints what it found; exits 1 with the first thing that is wrong.
"""

import pathlib
import re
import sys

from cdp import Browser, Fault

CHARTS = """[...document.querySelectorAll('figure .plot')].map(plot => {
  const svg = plot.querySelector('svg');
  return { id: plot.parentNode.id, x: svg.dataset.x.split(' '), y: svg.dataset.y.split(' '), log: 'log' in svg.dataset,
    lines: [...svg.querySelectorAll('path[data-name]')].map(path => [path.dataset.name, path.getAttribute('d')]) };
})"""
STEPS = {
    "us": [(1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")],
    "bytes": [(2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")],
    "bytes_per_second": [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")],
    "per_second": [(1, "/s")], "count": [(1, "")], "share": [(0.01, "%")],
}


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


def points(chart, d):
    """The points of a path, as values."""
    (left, right, wide), (low, high, tall) = (map(float, chart[axis][:3]) for axis in "xy")
    found = []
    for part in d.split("M")[1:]:
        start, _, steps = part.partition("l")
        x, y = map(int, start.split(" "))
        numbers = [int(n) for n in re.findall(r"-?\d+", steps.replace("l", " "))]
        for dx, dy in [(0, 0), *zip(numbers[::2], numbers[1::2])]:
            x, y = x + dx, y + dy
            up = 1 - y / tall
            value = low * (high / low) ** up if chart["log"] else low + up * (high - low)
            found.append((left + (right - left) * x / wide, value))
    return found


def is_shown(text, unit, value):
    """Whether a text is a value with its unit, to three digits."""
    seen = re.fullmatch(r"(-?[\d,.]+)\u00a0?(.*)", text)
    sizes = {name: size for size, name in STEPS[unit]}
    if not seen or seen[2] not in sizes:
        return False
    return abs(float(seen[1].replace(",", "")) * sizes[seen[2]] - value) <= 0.006 * abs(value) + 1e-9


def look(browser, chart):
    """The plot's place on the screen, what it shows, where its cursor is, and what is said of it."""
    return browser.run(
        f"(() => {{ const f = document.getElementById('{chart['id']}'); const svg = f.querySelector('.plot svg');"
        " svg.scrollIntoView({ block: 'center' }); const r = svg.getBoundingClientRect();"
        " const [x, , w] = svg.querySelector('.stretch').getAttribute('viewBox').split(' ').map(Number);"
        " const [a, b, wide] = svg.dataset.x.split(' ').map(Number); const at = x => a + (b - a) * x / wide;"
        " return { box: [r.left, r.top, r.width, r.height], low: at(x), high: at(x + w),"
        " cursor: parseFloat(svg.querySelector('.cursor').getAttribute('x1')) / 100,"
        " text: f.querySelector('.readout').textContent }; })()")


def move(browser, chart, share):
    left, top, width, height = look(browser, chart)["box"]
    browser.mouse("mouseMoved", left + share * width, top + height / 2)
    browser.run("new Promise(done => requestAnimationFrame(() => done(1)))")
    return look(browser, chart)


def values(browser, chart, share):
    """What is said of the point under the cursor is what is drawn there."""
    seen = move(browser, chart, share)
    low, high = seen["low"], seen["high"]
    at, asked = (low + part * (high - low) for part in (seen["cursor"], share))
    all_points = [(name, points(chart, d)) for name, d in chart["lines"]]
    nearest = min(abs(x - asked) for _, line in all_points for x, _ in line)
    pixel = (high - low) / seen["box"][2]
    check(abs(abs(at - asked) - nearest) <= pixel, chart["id"], "has its cursor at", at, "for", asked)
    for name, line in all_points:
        x, value = min(line, key=lambda point: abs(point[0] - at))
        said = re.search("[:,] " + re.escape(name) + r" (.*?)(?=, |$)", seen["text"])
        if abs(x - at) > pixel / 100:
            check(not said or said[1] == "–", chart["id"], "says", seen["text"], "where there is no", name)
        else:
            check(said and is_shown(said[1], chart["y"][3], value), chart["id"], "says", repr(seen["text"]),
                  "and is to say", name, value)
    return seen


def drag(browser, chart, start, end):
    left, top, width, height = look(browser, chart)["box"]
    y = top + height / 2
    browser.mouse("mouseMoved", left + start * width, y)
    browser.mouse("mousePressed", left + start * width, y, button="left", clickCount=1, buttons=1)
    browser.mouse("mouseMoved", left + (start + end) / 2 * width, y, button="left", buttons=1)
    browser.mouse("mouseReleased", left + end * width, y, button="left", clickCount=1)
    browser.run("new Promise(done => setTimeout(done, 50))")


def labels(browser, charts):
    """Event lines have letters where they are: none on another, none outside."""
    for chart in charts:
        seen = look(browser, chart)
        left, _, width, _ = seen["box"]
        lines, boxes, page = browser.run(
            f"(() => {{ const shown = what => [...document.querySelectorAll(`#{chart['id']} .plot > svg > ${{what}}`)]"
            ".filter(e => e.getAttribute('visibility') !== 'hidden'); return [shown('line[data-at]').length,"
            " shown('text[data-at]').filter(e => e.textContent).map(e => { const r = e.getBoundingClientRect();"
            " return [r.left, r.right, e.textContent, +e.dataset.at]; }), innerWidth]; })()")
        check(boxes or not lines, chart["id"], "has no label for its events")
        for i, a in enumerate(boxes):
            at = left + (a[3] - seen["low"]) / (seen["high"] - seen["low"]) * width
            check(0 <= a[0] and a[1] <= page + 1, chart["id"], "has a label outside:", a)
            check(abs((a[0] + a[1]) / 2 - at) < 3, chart["id"], "has a label of", at, "at", a)
            for b in boxes[i + 1:]:
                check(a[1] <= b[0] or b[1] <= a[0], chart["id"], "has labels on each other:", a, b)


def tables(browser):
    """A table says that it scrolls sideways where, and only where, it is wider than its place. No box hides
    rows, and no word of a cell is broken."""
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; });"
                "new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(1))), 100))")
    for wide, hidden in browser.run("[...document.querySelectorAll('.overflow')].map(t =>"
                                    " [t.scrollWidth > t.clientWidth + 1, t.previousElementSibling.hidden])"):
        check(wide != hidden, "a table is", "wider" if wide else "no wider", "and its hint is wrong")
    for shown, whole in browser.run("[...document.querySelectorAll('table')].map(t =>"
                                    " [t.parentNode.clientHeight, t.parentNode.scrollHeight])"):
        check(whole <= shown + 1, "a box shows", shown, "px of a table's", whole)
    for text, lines in browser.run("[...document.querySelectorAll('.overflow :is(th, td)')].map(cell => {"
                                   " const range = document.createRange(); range.selectNodeContents(cell);"
                                   " return [cell.textContent, new Set([...range.getClientRects()].map(r => r.top)).size]; })"):
        words = re.split("[ -]", text)
        check(lines <= len(words) or len(max(words, key=len)) > 20, repr(text), "stands on", lines, "lines")
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = false; })")


def same_view(browser, charts, low, high):
    """All charts over time show the same stretch."""
    for chart in charts:
        seen = look(browser, chart)
        slack = 0.01 * (high - low)
        check(abs(seen["low"] - low) <= slack and abs(seen["high"] - high) <= slack, chart["id"], "shows",
              [seen["low"], seen["high"]], "instead of", [low, high])


def point_at(browser, charts, shots):
    """Cursors, zoom and keyboard."""
    first = charts[0]
    begin = look(browser, first)
    low, high = begin["low"], begin["high"]
    for chart in charts:
        for share in (0.07, 0.31, 0.5, 0.93):
            values(browser, chart, share)
    # One cursor for all.
    seen = values(browser, first, 0.4)
    for chart in charts[1:]:
        other = look(browser, chart)["cursor"]
        check(abs(other - seen["cursor"]) < 0.01, chart["id"], "has its cursor at", other, "instead of", seen["cursor"])
    drag(browser, first, 0.25, 0.5)
    zoomed = [low + part * (high - low) for part in (0.25, 0.5)]
    same_view(browser, charts, *zoomed)
    for chart in charts:
        values(browser, chart, 0.8)
    if shots:
        browser.screenshot(shots / "zoomed.png", whole=False)
    browser.run(f"document.querySelector('#{first['id']} .plot').focus()")
    browser.key("Escape")
    same_view(browser, charts, low, high)
    before = values(browser, first, 0.5)
    browser.key("ArrowRight")
    after = look(browser, first)
    check(after["text"] != before["text"] and after["cursor"] > before["cursor"], "the arrow moved from", before, "to", after)
    browser.key("Enter")
    near = look(browser, first)
    check(abs((near["high"] - near["low"]) - (high - low) / 2) < 0.01 * (high - low), "Enter zoomed to", near)
    browser.key("Escape")


def drawn(browser, charts):
    """Every line is drawn, with the script or without."""
    for chart in charts:
        boxes = browser.run(f"[...document.querySelectorAll('#{chart['id']} path[data-name]')]"
                            ".map(path => path.getBoundingClientRect().width)")
        check(len(boxes) == len(chart["lines"]), chart["id"], "has", len(boxes), "lines")
        check(all(width > 20 for width in boxes), chart["id"], "is drawn", boxes, "wide")


def explore(browser, page, shots):
    browser.size(1280, 900)
    loaded = browser.open(page.as_uri())
    charts = browser.run(CHARTS)
    print(f"{page.name}: {page.stat().st_size / 1e6:.2f} MB, {len(charts)} charts, open after {loaded:.2f} s")
    unlabelled = browser.run("[...document.querySelectorAll('.plot')].filter(p => !p.ariaLabel || p.tabIndex !== 0).length")
    check(unlabelled == 0, unlabelled, "charts without label or tab stop")
    if shots:
        browser.screenshot(shots / "desktop.png")
    # A record of nothing has nothing to point at.
    lined = [chart for chart in charts if any(len(points(chart, d)) > 1 for _, d in chart["lines"])]
    over_time = [chart for chart in lined if chart["x"][3] == "s"]
    drawn(browser, lined)
    if over_time:
        point_at(browser, over_time, shots)
    for chart in lined:
        if chart["x"][3] != "s":
            values(browser, chart, 0.35)

    ground = lambda: browser.run("getComputedStyle(document.body).backgroundColor")
    light = ground()
    browser.run("document.querySelector('#theme').click()")
    check(ground() != light, "the dark ground is", light)
    if shots:
        browser.screenshot(shots / "dark.png")
    browser.run("document.querySelector('#theme').click()")

    labels(browser, over_time)
    tables(browser)
    browser.size(390, 844, mobile=True)
    labels(browser, over_time)
    tables(browser)
    for chart in over_time[:2]:
        values(browser, chart, 0.5)
    if shots:
        browser.screenshot(shots / "phone.png")
    still = page.with_suffix(".still.html")
    still.write_text(re.sub("<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S), encoding="utf-8")
    browser.open(still.as_uri())
    drawn(browser, lined)
    wide = browser.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    check(wide[0] <= wide[1], "on a phone the page is", wide[0], "wide instead of", wide[1])
    labels(browser, over_time)

    check(not browser.faults, browser.faults)
    asked = [url for url in browser.requests if url not in ("about:blank", page.as_uri(), still.as_uri())]
    check(not asked, "the page asked for", asked)


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
