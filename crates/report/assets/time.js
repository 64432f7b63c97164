// Charts over time: one cursor and one zoom for all of them.

const LEFT = 74;
const plots = []; // { id, u, redraw } of every chart on the page
const timePlots = [];
const sync = uPlot.sync('time');
let view = null; // the stretch shown, in seconds
let following = false;

const widthOf = node => Math.max(240, Math.floor(node.clientWidth));

// What every chart has: size, colours from the theme, a readout in words.
const base = (node, height, extra) => ({
  width: widthOf(node),
  height,
  legend: { show: false },
  padding: [8, 26, 0, 0],
  ...extra,
});

const axis = more => ({
  stroke: () => theme().text,
  grid: { stroke: () => theme().grid, width: 1 },
  ticks: { stroke: () => theme().grid, width: 1 },
  font: '12px system-ui, sans-serif',
  ...more,
});

// Steps of 1, 2 and 5: their multiples need no more digits than they have.
const TIME_STEPS = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5].flatMap(ten => [1, 2, 5].map(step => Number(`${step}e${ten}`)));
const timeAxis = () => axis({
  size: 30,
  incrs: TIME_STEPS,
  // Room for the longest label, e.g. 3693.352 s.
  space: (u, i, min, max) => 8 * seconds(max, (max - min) / 10).length + 10,
  values: (u, splits, i, space, step) => splits.map(v => seconds(v, step)),
});

// The powers of ten in sight; where those are few, also what lies between them.
const logSplits = (u, i, min, max) => {
  const all = steps => {
    const splits = [];
    for (let ten = Math.floor(Math.log10(min)); ten <= Math.log10(max); ten++) {
      for (const step of steps) splits.push(step * 10 ** ten);
    }
    return splits.filter(v => v >= min * 0.999 && v <= max * 1.001);
  };
  const tens = all([1]);
  return tens.length >= 3 ? tens : all([1, 2, 5]);
};
const logAxis = { splits: logSplits, filter: (u, splits) => splits };
// Sizes in binary units want steps that are round in them.
const BINARY_STEPS = Array.from({ length: 50 }, (_, n) => 2 ** n);

// Stretches in which somebody stalled (or dipped), each once.
const union = marks => {
  const joined = [];
  for (const mark of [...marks].sort((a, b) => a.from - b.from)) {
    const last = joined.findLast(known => known.kind === mark.kind);
    if (last && mark.from <= last.to) last.to = Math.max(last.to, mark.to);
    else joined.push({ ...mark });
  }
  return joined;
};

// Phases, stalls and dips behind the lines.
const shade = (u, spans, actors) => {
  const { ctx, bbox } = u;
  const x = at => u.valToPos(Math.max(u.scales.x.min, Math.min(u.scales.x.max, at)), 'x', true);
  const t = theme();
  const dot = devicePixelRatio;
  ctx.save();
  spans.phases.forEach((phase, i) => {
    const [from, to] = [x(phase.from), x(phase.to)];
    if (to <= from) return;
    if (i % 2) {
      ctx.fillStyle = t.phase;
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
    }
  });
  for (const mark of union(spans.marks.filter(m => !actors.length || actors.includes(m.actor)))) {
    if (mark.to < u.scales.x.min || mark.from > u.scales.x.max) continue;
    const from = x(mark.from);
    const wide = Math.max(2 * dot, x(mark.to) - from);
    ctx.fillStyle = t[mark.kind];
    ctx.fillRect(from, bbox.top, wide, bbox.height);
    if (mark.kind === 'stall') {
      ctx.fillStyle = t.bar;
      ctx.fillRect(from, bbox.top, wide, 3 * dot);
    }
  }
  ctx.restore();
};

// The lines of events, each up to its label: words in a strip above the chart. Events too
// near to each other share a label; where there is no room, the list above the charts tells.
const EVENT_ROW = 15;
const eventRows = () => Math.min(3, DATA.spans.events.length);
const EVENT_FONT = '11px system-ui, sans-serif';

const placeEvents = (events, x, [left, right], width) => {
  const groups = [];
  for (const event of events) {
    const last = groups.at(-1);
    if (last && x(event.at) - last.to < 6) {
      last.words.push(event.word);
      last.to = x(event.at);
    } else groups.push({ from: x(event.at), to: x(event.at), words: [event.word] });
  }
  const rows = Array.from({ length: eventRows() }, () => []);
  for (const group of groups) {
    const [first, ...more] = group.words;
    const texts = [group.words.join(', '), ...(more.length ? [`${first} +${more.length}`] : [])];
    const fits = text => {
      const wide = width(text) + 6;
      for (const from of [group.from + 2, group.from - 2 - wide]) {
        if (from < left || from + wide > right) continue;
        const row = rows.findIndex(taken => taken.every(([a, b]) => from + wide + 4 < a || b + 4 < from));
        if (row >= 0) return { text, left: from, wide, row };
      }
      return null;
    };
    group.label = texts.map(fits).find(Boolean) ?? null;
    if (group.label) rows[group.label.row].push([group.label.left, group.label.left + group.label.wide]);
  }
  return groups;
};

const drawEvents = u => {
  const { ctx, bbox } = u;
  const dot = devicePixelRatio;
  const { min, max } = u.scales.x;
  const edge = bbox.left / dot;
  const x = at => u.valToPos(at, 'x') + edge;
  const seen = DATA.spans.events.filter(({ at }) => min <= at && at <= max);
  ctx.save();
  ctx.font = EVENT_FONT;
  const groups = placeEvents(seen, x, [0, u.width], text => ctx.measureText(text).width);
  ctx.setLineDash([3 * dot, 3 * dot]);
  ctx.strokeStyle = theme().text;
  ctx.globalAlpha = 0.5;
  for (const { at } of seen) {
    const label = groups.find(group => group.from <= x(at) && x(at) <= group.to)?.label;
    const top = label ? bbox.top - EVENT_ROW * dot * (label.row + 1) : bbox.top;
    ctx.beginPath();
    ctx.moveTo(x(at) * dot, top);
    ctx.lineTo(x(at) * dot, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
  const wrap = u.root.querySelector('.u-wrap');
  for (const old of wrap.querySelectorAll('.event')) old.remove();
  for (const { label, words } of groups) {
    if (!label) continue;
    const node = document.createElement('span');
    node.className = 'event';
    node.textContent = label.text;
    node.title = words.join(', ');
    node.style.left = `${label.left}px`;
    node.style.top = `${bbox.top / dot - EVENT_ROW * (label.row + 1)}px`;
    wrap.append(node);
  }
};

// The stalls of runs over each other: a lane for each line above the chart, so that it hides none.
const LANE = 4;
const lanesOf = chart => (DATA.lanes ?? []).filter(lane => !chart.actors.length || chart.actors.includes(lane.actor));
const drawLanes = (u, chart) => {
  const { ctx, bbox } = u;
  const dot = devicePixelRatio;
  const { lines } = theme();
  const x = at => u.valToPos(Math.max(u.scales.x.min, Math.min(u.scales.x.max, at)), 'x', true);
  ctx.save();
  for (const lane of lanesOf(chart)) {
    if (lane.to < u.scales.x.min || lane.from > u.scales.x.max) continue;
    ctx.fillStyle = lines[lane.line % lines.length];
    const top = bbox.top - dot * (EVENT_ROW * eventRows() + LANE * (chart.lines.length - lane.line));
    ctx.fillRect(x(lane.from), top, Math.max(2 * dot, x(lane.to) - x(lane.from)), (LANE - 1) * dot);
  }
  ctx.restore();
};

// The phases' names, over the lines, each in a gap of the ground's colour.
const name = (u, spans) => {
  const { ctx, bbox } = u;
  const x = at => u.valToPos(Math.max(u.scales.x.min, Math.min(u.scales.x.max, at)), 'x', true);
  const t = theme();
  const dot = devicePixelRatio;
  ctx.save();
  ctx.font = `${11 * dot}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  ctx.lineJoin = 'round';
  ctx.lineWidth = 4 * dot;
  ctx.strokeStyle = t.ground;
  ctx.fillStyle = t.text;
  for (const phase of spans.phases) {
    const [from, to] = [x(phase.from), x(phase.to)];
    const text = (phase.control ? 'control ' : '') + phase.name;
    if (ctx.measureText(text).width + 8 * dot >= to - from) continue;
    ctx.strokeText(text, from + 4 * dot, bbox.top + 5 * dot);
    ctx.fillText(text, from + 4 * dot, bbox.top + 5 * dot);
  }
  ctx.restore();
};

const showView = (from, to) => {
  const [low, high] = full;
  const wide = Math.max(Math.min(to - from, high - low), 5 * DATA.interval_s);
  const start = Math.max(low, Math.min(high - wide, from));
  view = [start, start + wide];
  following = true;
  for (const { u } of timePlots) u.setScale('x', { min: view[0], max: view[1] });
  following = false;
};
let full = [0, 1];

// One time chart's options; `hooks` and `series` are its own.
const timeOptions = (node, height, series, axes, scales, hooks, focus) => base(node, height, {
  series: [{}, ...series],
  axes: [timeAxis(), axis({ size: LEFT, ...axes })],
  scales: { x: { time: false, range: (u, min, max) => (min === null || min === max ? full : [min, max]) }, y: scales },
  cursor: {
    sync: { key: 'time', scales: ['x', null] },
    drag: { x: true, y: false, setScale: true },
    bind: { dblclick: () => () => showView(...DATA.spans.view) },
    points: { size: 7 },
    ...focus,
  },
  hooks: {
    ...hooks,
    setScale: [(u, key) => {
      if (key === 'x' && !following && view) showView(u.scales.x.min, u.scales.x.max);
    }],
  },
});

const eventNear = (at, reach) => {
  const near = DATA.spans.events.filter(e => Math.abs(e.at - at) <= reach);
  return near.length ? ` (${near.map(e => e.word).join(', ')})` : '';
};

const readTime = (node, chart, u) => {
  const i = u.cursor.idx;
  if (i === null || i === undefined) {
    node.textContent = '';
    return;
  }
  const at = chart.x[i];
  const reach = (u.scales.x.max - u.scales.x.min) / 200;
  const lanes = lanesOf(chart);
  const told = chart.lines.map((line, n) => {
    const y = line.y[i];
    const stalled = lanes.some(lane => lane.line === n && lane.from <= at && at <= lane.to) ? ' (stalled)' : '';
    return `${line.name} ${y === null ? '–' : FORMAT[chart.unit](y)}${stalled}`;
  });
  node.textContent = `${seconds(at, DATA.interval_s / 10)}${eventNear(at, reach)}: ${told.join(', ')}`;
};

const timeChart = chart => {
  const figure = document.getElementById(chart.id);
  const node = figure.querySelector('.plot');
  const readout = figure.querySelector('.readout');
  const colour = n => theme().lines[n % theme().lines.length];
  const styles = chart.bands
    // Percentiles of one latency: one hue, the median boldest.
    ? [{ width: 2 }, { width: 1, dash: [6, 3] }, { width: 1 }].map(s => ({ ...s, stroke: () => colour(0) }))
    : chart.lines.map((_, n) => ({ width: 1.5, dash: DASHES[n % DASHES.length], stroke: () => colour(n) }));
  const filled = chart.lines.length === 1 && !chart.id.startsWith('rate');
  const series = chart.lines.map((line, n) => ({
    label: line.name,
    points: { show: false },
    ...styles[n],
    fill: filled ? () => colour(n) + theme().band : undefined,
  }));
  const log = () => chart.log && document.getElementById('log').checked;
  const build = () => {
    const height = (chart.bands || chart.id === 'rate-0' ? 200 : 140) + EVENT_ROW * eventRows();
    const options = timeOptions(node, height, series,
      { values: (u, splits) => splits.map(v => (v === null ? null : AXIS[chart.unit](v))) },
      log() ? { distr: 3, log: 10 } : { range: (u, min, max) => [0, chart.top ?? (max > 0 ? max * 1.2 : 1)] },
      { drawClear: [u => shade(u, DATA.spans, chart.actors)], draw: [u => name(u, DATA.spans), drawEvents, u => drawLanes(u, chart)], setCursor: [u => readTime(readout, chart, u)] });
    if (log()) Object.assign(options.axes[1], logAxis);
    const lanes = lanesOf(chart).length ? LANE * chart.lines.length : 0;
    options.padding = [8 + EVENT_ROW * eventRows() + lanes, ...options.padding.slice(1)];
    if (chart.unit === 'bytes') options.axes[1].incrs = BINARY_STEPS;
    if (chart.bands) {
      options.bands = [[3, 2], [2, 1]].map(pair => ({ series: pair, fill: () => colour(0) + theme().band }));
    }
    return new uPlot(options, [chart.x, ...chart.lines.map(line => line.y)], node);
  };
  const plot = { id: chart.id, chart, node, u: build() };
  if (chart.log) {
    document.getElementById('log').addEventListener('change', () => {
      plot.u.destroy();
      plot.u = build();
      showView(...view);
    });
  }
  if (chart.lines.length > 1) legend(figure, chart.lines.map((line, n) => [line.name, styles[n]]));
  plots.push(plot);
  timePlots.push(plot);
  keys(plot, true);
};

// Which line is which; samples are drawn, so that dashes show.
const legend = (figure, entries) => {
  const list = document.createElement('ul');
  list.className = 'legend';
  const paint = [];
  for (const [name, style] of entries) {
    const entry = document.createElement('li');
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [64, 20];
    entry.append(canvas, name);
    list.append(entry);
    paint.push(() => {
      const ctx = canvas.getContext('2d');
      ctx.clearRect(0, 0, 64, 20);
      ctx.strokeStyle = style.stroke();
      ctx.lineWidth = 2 * (style.width ?? 1);
      ctx.setLineDash((style.dash ?? []).map(d => 2 * d));
      ctx.beginPath();
      if (style.points?.show) ctx.arc(32, 10, style.points.size / 1.2, 0, 7);
      else {
        ctx.moveTo(0, 10);
        ctx.lineTo(64, 10);
      }
      ctx.stroke();
    });
  }
  figure.querySelector('figcaption').append(list);
  legends.push(...paint);
  paint.forEach(draw => draw());
};
const legends = [];

const zoom = factor => {
  const [from, to] = view;
  const { left } = timePlots[0].u.cursor;
  const at = left >= 0 ? timePlots[0].u.posToVal(left, 'x') : (from + to) / 2;
  const share = (at - from) / (to - from);
  const wide = (to - from) * factor;
  showView(at - share * wide, at + (1 - share) * wide);
};

// The keyboard on a focused chart.
const keys = (plot, isTime) => {
  plot.node.addEventListener('keydown', event => {
    const { u } = plot;
    const x = u.data[0];
    const first = x.findIndex(v => v >= u.scales.x.min);
    const last = x.findLastIndex(v => v <= u.scales.x.max);
    const step = event.shiftKey ? Math.max(1, Math.round((last - first) / 20)) : 1;
    const here = u.cursor.idx ?? Math.round((first + last) / 2);
    const to = { ArrowLeft: here - step, ArrowRight: here + step, Home: first, End: last }[event.key];
    if (to !== undefined) {
      const i = Math.max(first, Math.min(last, to));
      u.setCursor({ left: u.valToPos(x[i], 'x'), top: u.over.clientHeight / 2 });
    } else if (isTime && (event.key === 'Enter' || event.key === '+')) zoom(0.5);
    else if (isTime && (event.key === 'Backspace' || event.key === '-')) zoom(2);
    else if (isTime && event.key === 'Escape') showView(...DATA.spans.view);
    else return;
    event.preventDefault();
  });
};
