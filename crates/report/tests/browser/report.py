#!/usr/bin/env python3
"""Opens an HTML report in a real browser and holds what it shows to what is embedded in it.

  report.py BROWSER REPORT.html [DIRECTORY for screenshots]

Prints what it found; exits 1 with the first thing that is wrong.
"""

import json
import pathlib
import re
import sys

from cdp import Browser, Fault


def three(value, unit):
    return f"{value:.0f}\u00a0{unit}" if abs(value) >= 99.95 else f"{value:.1f}\u00a0{unit}"


def scaled(value, steps):
    size, unit = next((s for s in steps if abs(value) >= s[0]), steps[-1])
    return three(value / size, unit)


BINARY = [(2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")]
DECIMAL = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")]
TIME_US = [(1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")]


def figure(unit, value):
    """A value as the page is to say it; None for what halves might round either way."""
    if value is None:
        return "–"
    if unit == "per_second":
        return f"{value:.1f}/s" if value < 9.95 else f"{int(value + 0.5):,}/s"
    if unit == "count":
        return f"{int(value + 0.5):,}"
    if unit == "bytes" and value < 1024 or unit == "bytes_per_second" and value < 1000:
        return f"{int(value + 0.5)}\u00a0B" + ("/s" if unit == "bytes_per_second" else "")
    text = {"us": TIME_US, "bytes_per_second": DECIMAL, "bytes": BINARY}[unit]
    return scaled(value, text) + ("/s" if unit == "bytes_per_second" else "")


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


def place(browser, chart, share):
    """The point of the screen at a share of a chart's width."""
    box = browser.run(
        f"(() => {{ const o = trimbench.plots.find(p => p.id === '{chart}').u.over;"
        " o.scrollIntoView({block: 'center'}); const r = o.getBoundingClientRect();"
        " return [r.left, r.top, r.width, r.height]; })()")
    return box[0] + share * box[2], box[1] + box[3] / 2


def cursor(browser, chart):
    return browser.run(
        f"(() => {{ const p = trimbench.plots.find(p => p.id === '{chart}'); const u = p.u;"
        " return { idx: u.cursor.idx, left: u.cursor.left, at: u.posToVal(u.cursor.left, 'x'),"
        " min: u.scales.x.min, max: u.scales.x.max, width: u.over.clientWidth,"
        " text: p.node.parentNode.querySelector('.readout').textContent }; })()")


def values(browser, chart, share):
    """What is said of the point under the cursor is what is embedded for that moment."""
    x, y = place(browser, chart["id"], share)
    browser.mouse("mouseMoved", x, y)
    browser.run("new Promise(done => requestAnimationFrame(() => done(1)))")
    seen = cursor(browser, chart["id"])
    check(seen["idx"] is not None, chart["id"], "has no cursor at", share)
    at = chart["x"][seen["idx"]]
    nearest = min(chart["x"], key=lambda v: abs(v - seen["at"]))
    pixel = (seen["max"] - seen["min"]) / seen["width"]
    check(abs(at - seen["at"]) <= abs(nearest - seen["at"]) + pixel, chart["id"], "shows", at, "for", seen["at"])
    told = seen["text"].split(": ", 1)[1]
    for line in chart["lines"]:
        wanted = f"{line['name']} {figure(chart['unit'], line['y'][seen['idx']])}"
        # 12.25 is rounded up by one language and down by the other.
        found = re.search(re.escape(line["name"]) + r" (.*?)(?= \(stalled\)|, |$)", told)
        check(wanted in told or (found and close(found[1], wanted[len(line["name"]) + 1:])),
              chart["id"], "says", repr(told), "and is to say", repr(wanted))
    return seen


def close(a, b):
    number = re.compile(r"[\d.,]+")
    one, other = number.search(a), number.search(b)
    if not one or not other or number.sub("", a) != number.sub("", b):
        return False
    one, other = (float(m[0].rstrip(",.").replace(",", "")) for m in (one, other))
    return abs(one - other) <= max(0.1001, 1.001 if one >= 99 else 0)


def drag(browser, chart, start, end):
    x, y = place(browser, chart, start)
    to, _ = place(browser, chart, end)
    browser.mouse("mouseMoved", x, y)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
    for part in range(1, 5):
        browser.mouse("mouseMoved", x + (to - x) * part / 4, y, button="left", buttons=1)
    browser.mouse("mouseReleased", to, y, button="left", clickCount=1)
    browser.run("new Promise(done => setTimeout(done, 50))")


def labels(browser, data):
    """Each chart over time has labels for its event lines: none on another, none outside."""
    low, high = data["spans"]["view"]
    seen = browser.run(
        "trimbench.plots.filter(p => p.chart).map(p => [p.id, p.node.getBoundingClientRect().right,"
        " [...p.node.querySelectorAll('.event')].map(e => { const r = e.getBoundingClientRect();"
        " return [r.left, r.top, r.right, r.bottom, e.textContent]; })])")
    wanted = any(low < event["at"] < high for event in data["spans"]["events"])
    for name, right, boxes in seen:
        check(boxes or not wanted, name, "has no label for its events")
        for i, a in enumerate(boxes):
            check(a[2] <= right + 1, name, "has a label outside:", a)
            for b in boxes[i + 1:]:
                apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                check(apart, name, "has labels on each other:", a, b)


def tables(browser):
    """A table says that it scrolls sideways where, and only where, it is wider than its place. No box hides
    rows, and no word of a cell is broken."""
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; });"
                "new Promise(done => setTimeout(done, 100))")
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


def same_view(browser, low, high, slack):
    """All charts over time show the same stretch."""
    for at in browser.run("trimbench.plots.filter(p => p.chart || p.heat).map(p => [p.id, p.u.scales.x.min, p.u.scales.x.max])"):
        check(abs(at[1] - low) <= slack and abs(at[2] - high) <= slack, at[0], "shows", at[1:], "instead of", [low, high])


def explore(browser, page, data, shots):
    browser.size(1280, 900)
    loaded = browser.open(page.as_uri())
    drawn = browser.run("trimbench.plots.length")
    print(f"{page.name}: {page.stat().st_size / 1e6:.2f} MB, {drawn} charts, open after {loaded:.2f} s")
    expected = len(data["charts"]) + len(data["heat"]) + len(data["curves"])
    check(drawn >= expected, drawn, "charts of", expected)
    check(browser.run("document.querySelectorAll('canvas').length") >= expected, "canvases are missing")
    unlabelled = browser.run("[...document.querySelectorAll('.plot')].filter(p => !p.ariaLabel || p.tabIndex !== 0).length")
    check(unlabelled == 0, unlabelled, "charts without label or tab stop")
    if shots:
        browser.screenshot(shots / "desktop.png")

    # A record of nothing has nothing to point at.
    data["charts"] = [chart for chart in data["charts"] if len(chart["x"]) > 1]
    if data["charts"]:
        point_at(browser, data, shots)
        if data.get("lanes"):
            stalls(browser, data)
    percentiles(browser, data)

    browser.run("document.querySelector('#theme').click()")
    theme = browser.run("document.documentElement.dataset.theme")
    check(theme == "dark", "the theme is", theme)
    if shots:
        browser.screenshot(shots / "dark.png")
    browser.run("document.querySelector('#theme').click()")

    labels(browser, data)
    tables(browser)
    browser.size(390, 844, mobile=True)
    labels(browser, data)
    tables(browser)
    wide = browser.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    check(wide[0] <= wide[1], "on a phone the page is", wide[0], "wide instead of", wide[1])
    for chart in data["charts"][:2]:
        values(browser, chart, 0.5)
    if shots:
        browser.screenshot(shots / "phone.png")

    check(not browser.faults, browser.faults)
    asked = [url for url in browser.requests if url not in ("about:blank", page.as_uri())]
    check(not asked, "the page asked for", asked)


def stalls(browser, data):
    """Each line's stalls: in its colour above the chart, and in words at the cursor."""
    first = data["charts"][0]
    low, high = data["spans"]["view"]
    for lane in data["lanes"]:
        if lane["actor"] not in first["actors"]:
            continue
        around = max(lane["to"] - lane["from"], 20 * data["interval_s"])
        browser.run(f"trimbench.showView({lane['from'] - around}, {lane['to'] + around})")
        middle = (lane["from"] + lane["to"]) / 2
        values(browser, first, (middle - lane["from"] + around) / (lane["to"] - lane["from"] + 2 * around))
        name = re.escape(first["lines"][lane["line"]]["name"])
        said = cursor(browser, first["id"])["text"]
        check(re.search(name + r" \S+(?:\u00a0\S+)? \(stalled\)", said), "of a stall at", middle, "is said", said)
        seen = browser.run(
            f"(() => {{ const {{ u, chart }} = trimbench.plots.find(p => p.id === '{first['id']}');"
            f" const top = u.bbox.top - devicePixelRatio * (15 * Math.min(3, trimbench.data.spans.events.length)"
            f" + 4 * (chart.lines.length - {lane['line']}) - 1);"
            " const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });"
            " const at = v => { pixel.clearRect(0, 0, 1, 1);"
            " pixel.drawImage(u.ctx.canvas, Math.round(u.valToPos(v, 'x', true)), Math.round(top), 1, 1, 0, 0, 1, 1);"
            " return [...pixel.getImageData(0, 0, 1, 1).data]; };"
            f" return [at({middle}), at({lane['from'] - around / 2}), u.series[{lane['line']} + 1].stroke()]; }})()")
        colour = [int(seen[2][n:n + 2], 16) for n in (1, 3, 5)]
        check(seen[0][:3] == colour and seen[0][3] == 255, "the lane at", middle, "is", seen[0], "instead of", colour)
        alone = not any(other["from"] <= lane["from"] - around / 2 <= other["to"] and other["line"] == lane["line"]
                        for other in data["lanes"])
        check(not alone or seen[1][3] == 0, "a lane is drawn where nothing stalled:", seen[1])
    browser.run(f"trimbench.showView({low}, {high})")


def percentiles(browser, data):
    """What is said of each percentile is what is embedded."""
    for told in data["curves"]:
        name = f"curves-{told['actor']}"
        x, y = place(browser, name, 0.35)
        browser.mouse("mouseMoved", x, y)
        browser.run("new Promise(done => requestAnimationFrame(() => done(1)))")
        seen = cursor(browser, name)
        check(seen["idx"] is not None, name, "has no cursor")
        for curve in told["curves"]:
            wanted = f"{curve['name']} {figure('us', curve['us'][seen['idx']])}"
            found = re.search(re.escape(curve["name"]) + r" (.*?)(?=, |$)", seen["text"])
            check(wanted in seen["text"] or (found and close(found[1], wanted[len(curve["name"]) + 1:])),
                  name, "says", repr(seen["text"]), "and is to say", repr(wanted))


def point_at(browser, data, shots):
    """Cursors, zoom and keyboard."""
    low, high = data["spans"]["view"]
    same_view(browser, low, high, 1e-6 * high + 1e-6)
    for chart in data["charts"]:
        for share in (0.07, 0.31, 0.5, 0.93):
            values(browser, chart, share)

    # One cursor for all.
    first = data["charts"][0]["id"]
    seen = values(browser, data["charts"][0], 0.4)
    for chart in data["charts"][1:]:
        other = cursor(browser, chart["id"])
        check(abs(other["at"] - seen["at"]) < 0.01 * (high - low), chart["id"], "has its cursor elsewhere", other, seen)

    # Zoom with the mouse, values again, and back.
    drag(browser, first, 0.25, 0.5)
    zoomed = cursor(browser, first)
    check(abs((zoomed["max"] - zoomed["min"]) - (high - low) / 4) < 0.02 * (high - low), "zoomed to", zoomed)
    same_view(browser, zoomed["min"], zoomed["max"], 1e-9 * high)
    for chart in data["charts"]:
        for share in (0.2, 0.8):
            values(browser, chart, share)
    if shots:
        browser.screenshot(shots / "zoomed.png", whole=False)

    # The keyboard.
    browser.run(f"document.querySelector('#{first} .plot').focus()")
    browser.key("Escape")
    same_view(browser, low, high, 1e-6 * high + 1e-6)
    values(browser, data["charts"][0], 0.5)
    before = cursor(browser, first)
    browser.key("ArrowRight")
    after = cursor(browser, first)
    check(after["idx"] == before["idx"] + 1 or len(data["charts"][0]["x"]) > before["width"],
          "the arrow moved the cursor from", before["idx"], "to", after["idx"])
    check(after["text"] != before["text"], "the arrow changed nothing that is said")
    browser.key("Enter")
    near = cursor(browser, first)
    check(abs((near["max"] - near["min"]) - (high - low) / 2) < 1e-3 * (high - low), "Enter zoomed to", near)
    browser.key("Escape")
    browser.run("document.querySelector('#log').click()")
    for chart in data["charts"]:
        values(browser, chart, 0.5)
    browser.run("document.querySelector('#log').click()")


def main():
    program, page = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    text = page.read_text(encoding="utf-8")
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    data = json.loads(embedded[1])
    browser = Browser(program)
    try:
        explore(browser, page, data, shots)
    except Fault as fault:
        sys.exit(f"{page.name}: {fault}; on the console: {browser.faults}")
    finally:
        browser.close()


main()
