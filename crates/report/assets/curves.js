// Percentile curves, and what discards of which size cost.

const percentile = nines => {
  if (nines <= 0) return '0 %';
  const share = 100 * (1 - 10 ** -nines);
  return `${share.toFixed(Math.max(0, Math.ceil(nines) - 2 + (nines % 1 ? 1 : 0)))} %`;
};

const curveChart = told => {
  const figure = document.getElementById(`curves-${told.actor}`);
  const node = figure.querySelector('.plot');
  const readout = figure.querySelector('.readout');
  const styles = told.curves.map(curve => ({
    width: 2,
    dash: DASHES[curve.style % DASHES.length],
    stroke: () => theme().lines[curve.style % theme().lines.length],
  }));
  let end = 1;
  told.x.forEach((nines, i) => {
    if (told.curves.some(curve => curve.us[i] !== null)) end = Math.max(end, nines);
  });
  const options = base(node, 260, {
    series: [{}, ...told.curves.map((curve, n) => ({ label: curve.name, points: { show: false }, ...styles[n] }))],
    scales: { x: { time: false, range: () => [0, end] }, y: { distr: 3, log: 10 } },
    axes: [
      axis({
        // Every second one where a phone has no room for all.
        splits: u => [0, 1, 2, 3, 4, 5, 6, 7].filter(n => n <= end && n % (u.width < 80 * end ? 2 : 1) === 0),
        values: (u, s) => s.map(percentile),
        space: 30,
        size: 30,
      }),
      axis({
        size: LEFT,
        values: (u, splits) => splits.map(v => (v === null ? null : AXIS.us(v))),
        ...logAxis,
      }),
    ],
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    hooks: {
      setCursor: [u => {
        const i = u.cursor.idx;
        if (i === null || i === undefined) return;
        const values = told.curves.map(c => `${c.name} ${c.us[i] === null ? '–' : FORMAT.us(c.us[i])}`);
        readout.textContent = `${percentile(told.x[i])}: ${values.join(', ')}`;
      }],
    },
  });
  const plot = { id: figure.id, node, u: new uPlot(options, [told.x, ...told.curves.map(c => c.us)], node) };
  legend(figure, told.curves.map((curve, n) => [curve.name, styles[n]]));
  plots.push(plot);
  keys(plot, false);
};

const costChart = cost => {
  const figure = document.getElementById('cost');
  const node = figure.querySelector('.plot');
  const readout = figure.querySelector('.readout');
  const most = cost.top[0] ?? 1.1 * Math.max(...cost.mib, cost.service ? cost.service[0] : 0, 1e-3);
  const high = cost.top[1] === null ? Infinity : Math.max(cost.top[1], cost.line ? cost.line[0] + cost.line[1] * most : 0);
  // All x of points, of the line's two ends and of the service time, in order.
  const rows = cost.mib.map((mib, i) => [mib, cost.us[i], null, null]).filter(([mib, us]) => mib <= most && us <= high);
  if (cost.line) for (const mib of [0, most]) rows.push([mib, null, cost.line[0] + cost.line[1] * mib, null]);
  if (cost.service) rows.push([cost.service[0], null, null, cost.service[1]]);
  rows.sort((a, b) => a[0] - b[0]);
  const column = n => rows.map(row => row[n]);
  const none = () => null;
  const colour = n => () => theme().lines[n];
  const styles = [
    { stroke: colour(0), paths: none, points: { show: true, size: 5, fill: colour(0), stroke: colour(0) } },
    { stroke: colour(1), width: 2, spanGaps: true, points: { show: false } },
    { stroke: colour(2), paths: none, points: { show: true, size: 11, width: 2, stroke: colour(2), fill: 'transparent' } },
  ];
  const names = ['mean wait in an interval', 'S = a + b·L', 'S of the verdict'];
  const options = base(node, 260, {
    series: [{}, ...styles.map((style, n) => ({ label: names[n], ...style }))],
    scales: {
      x: { time: false, range: () => [0, most] },
      y: { range: (u, min, max) => [0, Math.min(high, max > 0 ? 1.1 * max : 1)] },
    },
    axes: [
      axis({ size: 30, space: 64, values: (u, splits) => splits.map(v => (v === 0 ? '0' : `${plain(v)}${GAP}MiB`)) }),
      axis({ size: LEFT, values: (u, splits) => splits.map(AXIS.us) }),
    ],
    cursor: { drag: { x: false, y: false } },
    hooks: {
      setCursor: [u => {
        const i = u.cursor.idx;
        if (i === null || i === undefined) return;
        const told = [1, 2, 3].filter(n => rows[i][n] !== null).map(n => `${names[n - 1]} ${FORMAT.us(rows[i][n])}`);
        readout.textContent = `${FORMAT.bytes(rows[i][0] * 2 ** 20)}: ${told.join(', ')}`;
      }],
    },
  });
  const plot = { id: 'cost', node, u: new uPlot(options, [0, 1, 2, 3].map(column), node) };
  const drawn = [cost.mib.length, cost.line, cost.service];
  legend(figure, styles.map((style, n) => [names[n], style]).filter((_, n) => drawn[n]));
  plots.push(plot);
  keys(plot, false);
};
