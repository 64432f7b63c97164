// What a page does beyond showing: a cursor with values, zoom over time, colours, hints of wide tables.
(() => {
'use strict';
const $$ = (what, within = document) => [...within.querySelectorAll(what)];
const numbers = text => text.split(' ').map(Number);
const STEPS = {
  us: [[1e6, ' s'], [1e3, ' ms'], [1, ' µs'], [1e-3, ' ns']],
  bytes: [[2 ** 40, ' TiB'], [2 ** 30, ' GiB'], [2 ** 20, ' MiB'], [2 ** 10, ' KiB'], [1, ' B']],
  bytes_per_second: [[1e12, ' TB/s'], [1e9, ' GB/s'], [1e6, ' MB/s'], [1e3, ' kB/s'], [1, ' B/s']],
  per_second: [[1, '/s']], count: [[1, '']], share: [[0.01, ' %']],
};
// Three digits; no line ends between a number and its unit.
const show = (value, unit) => {
  const [size, name] = STEPS[unit].find(([size]) => Math.abs(value) >= size) ?? STEPS[unit].at(-1);
  return Number((value / size).toPrecision(3)).toLocaleString('en-US') + name.replace(' ', '\u00a0');
};
const ABSCISSA = {
  s: at => `${at.toFixed(view[1] - view[0] < 10 ? 3 : 2)}\u00a0s`,
  nines: n => n < 0.01 ? '0\u00a0%' : `${(100 - 10 ** (2 - n)).toFixed(Math.ceil(n))}\u00a0%`,
};

// Charts: their lines' coordinates are their values.
const charts = $$('figure .plot').map(plot => {
  const svg = plot.querySelector('svg');
  const [from, to, wide, abscissa] = svg.dataset.x.split(' ');
  const [low, high, tall, unit] = svg.dataset.y.split(' ');
  return { plot, svg, abscissa, unit, tall, at: null, left: +from, right: +to,
    xOf: x => +from + (to - from) * x / wide,
    unitsOf: at => (at - from) / (to - from) * wide,
    yOf: share => 'log' in svg.dataset ? low * (high / low) ** (1 - share) : +low + (high - low) * (1 - share),
    paths: $$('path[data-name]', svg), cursor: svg.querySelector('.cursor'), readout: plot.parentNode.querySelector('.readout') };
});
const overTime = charts.filter(chart => chart.abscissa === 's');
const initial = overTime.length ? [overTime[0].left, overTime[0].right] : [0, 1];
let view = initial;

const points = (path, [x, y] = [0, 0]) => path.points ??= Array.from(
  path.getAttribute('d').matchAll(/(M)?(-?\d+) ?(-?\d+)/g),
  ([, from, a, b]) => ([x, y] = from ? [+a, +b] : [x + +a, y + +b]));
const all = chart => chart.all ??= [...new Set(chart.paths.flatMap(path => points(path)).map(([x]) => x))].sort((a, b) => a - b);
const place = (chart, at) => `${100 * (at - chart.left) / (chart.right - chart.left)}%`;

// Puts the cursor at the point that is nearest.
const point = (chart, at) => {
  const near = all(chart).reduce((best, x) => Math.abs(x - chart.unitsOf(at)) < Math.abs(best - chart.unitsOf(at)) ? x : best, Infinity);
  chart.at = at = near === Infinity ? at : chart.xOf(near);
  for (const end of ['x1', 'x2']) chart.cursor.setAttribute(end, place(chart, at));
  chart.cursor.setAttribute('visibility', at < chart.left || at > chart.right ? 'hidden' : 'visible');
  const events = $$('[data-event]', chart.svg).map(one => one.dataset)
    .filter(one => Math.abs(one.at - at) < (chart.right - chart.left) / 200).map(one => one.event);
  const told = chart.paths.flatMap(path => {
    const found = points(path).find(([x]) => x === near);
    if (!found && chart.abscissa !== 's') return [];
    return [`${path.dataset.name} ${found ? show(chart.yOf(found[1] / chart.tall), chart.unit) : '–'}`];
  });
  chart.readout.textContent = ABSCISSA[chart.abscissa](at) + (events.length ? ` (${events.join(', ')})` : '') +
    (told.length ? `: ${told.join(', ')}` : '');
};
const pointAll = (chart, at) => (chart.abscissa === 's' ? overTime : [chart]).forEach(one => point(one, at));
const mark = (chart, at) => `<line x1="${place(chart, at)}" x2="${place(chart, at)}" y2="100%" stroke="#000" stroke-opacity=".1"/>` +
  `<text x="${place(chart, at)}" y="${+chart.svg.getAttribute('height') + 18}" text-anchor="middle">${Number(at.toPrecision(9))} s</text>`;
const draw = chart => {
  const wide = view[1] - view[0];
  [chart.left, chart.right] = view;
  const [from, to] = view.map(chart.unitsOf);
  for (const one of $$('.stretch', chart.svg)) one.setAttribute('viewBox', `${from} 0 ${to - from} ${one.viewBox.baseVal.height}`);
  for (const one of $$(':scope > [data-at]', chart.svg)) {
    const [a, b = a] = numbers(one.dataset.at);
    const begin = Math.max(a, view[0]);
    const share = Math.max(0, Math.min(b, view[1]) - begin) / wide;
    for (const name of ['x', 'x1', 'x2']) if (one.hasAttribute(name)) one.setAttribute(name, place(chart, begin));
    if (b > a) one.setAttribute('width', `${100 * share}%`);
    const fits = b === a || one.firstChild.getComputedTextLength() + 4 < share * chart.svg.clientWidth;
    one.setAttribute('visibility', b < view[0] || a > view[1] || !fits ? 'hidden' : 'visible');
  }
  const rough = wide / Math.max(2, chart.svg.clientWidth / 90);
  const step = [1, 2, 5, 10].map(n => n * 10 ** Math.floor(Math.log10(rough))).find(step => step >= rough * 0.999);
  const marks = [];
  for (let n = Math.ceil(view[0] / step); n * step <= view[1]; n++) marks.push(mark(chart, n * step));
  chart.svg.querySelector('.x').innerHTML = marks.join('');
  if (chart.at !== null) point(chart, chart.at);
};
const showView = (from, to) => {
  const [low, high] = numbers(document.getElementById('all').dataset.to);
  const wide = Math.min(to - from, high - low);
  const begin = Math.max(low, Math.min(high - wide, from));
  view = [begin, begin + wide];
  overTime.forEach(draw);
};
const zoom = (by, shift = 0, at = (view[0] + view[1]) / 2) => {
  showView(...view.map(end => at + (end - at) * by + shift * (view[1] - view[0])));
};
for (const chart of charts) {
  let from = null;
  const inside = event => {
    const box = chart.svg.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    return chart.left + share * (chart.right - chart.left);
  };
  const listen = (name, what) => chart.plot.addEventListener(name, what);
  listen('pointerdown', event => { from = inside(event); });
  listen('pointermove', event => pointAll(chart, inside(event)));
  listen('pointerup', event => {
    const ends = [from, inside(event)].sort((a, b) => a - b);
    if (from !== null && overTime.includes(chart) && ends[1] - ends[0] > (chart.right - chart.left) / 50) showView(...ends);
    from = null;
  });
  listen('dblclick', () => showView(...initial));
  listen('keydown', event => {
    const seen = all(chart).map(chart.xOf).filter(x => x >= chart.left && x <= chart.right);
    const here = seen.findIndex(x => x >= (chart.at ?? (chart.left + chart.right) / 2));
    const step = event.shiftKey ? Math.max(1, Math.round(seen.length / 20)) : 1;
    const to = { ArrowLeft: here - step, ArrowRight: here + step, Home: 0, End: seen.length - 1 }[event.key];
    const by = { Enter: 0.5, '+': 0.5, Backspace: 2, '-': 2 }[event.key];
    if (to !== undefined && seen.length) pointAll(chart, seen[Math.max(0, Math.min(seen.length - 1, to))]);
    else if (by && overTime.includes(chart)) zoom(by, 0, chart.at ?? undefined);
    else if (event.key === 'Escape' && overTime.length) showView(...initial);
    else return;
    event.preventDefault();
  });
}
for (const tools of $$('.tools')) {
  tools.hidden = false;
  for (const one of $$('[data-by]', tools)) one.addEventListener('click', () => zoom(...numbers(one.dataset.by)));
  for (const one of $$('[data-to]', tools)) one.addEventListener('click', () => showView(...numbers(one.dataset.to)));
  new ResizeObserver(() => showView(...view)).observe(tools);
}
const button = document.getElementById('theme');
const { style } = document.documentElement;
button.hidden = false;
button.addEventListener('click', () => {
  const light = style.colorScheme ? style.colorScheme === 'light' : matchMedia('(prefers-color-scheme: light)').matches;
  style.colorScheme = light ? 'dark' : 'light';
});
// A table that is wider than its place says so, as long as there is more of it.
const hint = table => {
  const more = table.scrollWidth - table.clientWidth;
  table.previousElementSibling.hidden = more <= 1;
  table.classList.toggle('cut', more > 1 && table.scrollLeft < more - 1);
};
for (const table of $$('.overflow')) {
  new ResizeObserver(() => hint(table)).observe(table);
  table.addEventListener('scroll', () => hint(table), { passive: true });
}
})();
