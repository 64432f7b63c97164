// Latency heat maps: a picture with a pixel for each cell, its columns stretched under the axes.

// Even one operation must show: it may be the one that waited.
const heatColour = share => cividis(0.12 + 0.88 * share);

const heatPicture = heat => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [heat.columns.length, heat.rows];
  const ctx = canvas.getContext('2d');
  const image = ctx.createImageData(canvas.width, canvas.height);
  const [least, most] = heat.per_s;
  const whole = Math.log(most / least) || 1;
  heat.columns.forEach(({ from, to, cells }, x) => {
    for (let i = 0; i < cells.length; i += 2) {
      const y = heat.rows - 1 - cells[i];
      const share = Math.log(cells[i + 1] / (to - from) / least) / whole;
      image.data.set([...heatColour(share), 255], 4 * (y * heat.columns.length + x));
    }
  });
  ctx.putImageData(image, 0, 0);
  return canvas;
};

// Which colour stands for how many operations.
const heatKey = (figure, heat) => {
  const key = document.createElement('span');
  key.className = 'key';
  const bar = document.createElement('i');
  const stops = Array.from({ length: 9 }, (_, i) => `rgb(${heatColour(i / 8).join(' ')})`);
  bar.style.background = `linear-gradient(to right, ${stops.join(', ')})`;
  const [least, most] = heat.per_s.map(v => FORMAT.per_second(Number(v.toPrecision(2))));
  key.append(least, bar, `${most}: operations per second in a cell (logarithmic)`);
  figure.querySelector('figcaption').append(key);
};

const heatChart = heat => {
  const figure = document.getElementById(`heat-${heat.actor}`);
  const node = figure.querySelector('.plot');
  const readout = figure.querySelector('.readout');
  const picture = heatPicture(heat);
  const top = heat.lowest_us * heat.ratio ** heat.rows;
  const x = heat.columns.map(({ from, to }) => (from + to) / 2);
  const draw = u => {
    const { ctx, bbox } = u;
    const [high, low] = [u.valToPos(top, 'y', true), u.valToPos(heat.lowest_us, 'y', true)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    heat.columns.forEach(({ from, to }, i) => {
      if (to < u.scales.x.min || from > u.scales.x.max) return;
      const [left, right] = [from, to].map(at => Math.round(u.valToPos(at, 'x', true)));
      ctx.drawImage(picture, i, 0, 1, heat.rows, left, high, Math.max(1, right - left), low - high);
    });
    ctx.restore();
  };
  const read = u => {
    const at = u.posToVal(u.cursor.left, 'x');
    const column = heat.columns.find(({ from, to }) => from <= at && at < to);
    if (u.cursor.left < 0 || !column) {
      readout.textContent = '';
      return;
    }
    const { from, to, cells } = column;
    const us = u.posToVal(u.cursor.top, 'y');
    const row = Math.floor(Math.log(us / heat.lowest_us) / Math.log(heat.ratio));
    let [here, all] = [0, 0];
    for (let n = 0; n < cells.length; n += 2) {
      all += cells[n + 1];
      if (cells[n] === row) here = cells[n + 1];
    }
    const low = heat.lowest_us * heat.ratio ** row;
    readout.textContent = `${seconds(from, 0.1)} to ${seconds(to, 0.1)}: ` +
      `${FORMAT.count(here)} of ${FORMAT.count(all)} operations took ` +
      `${FORMAT.us(low)} to ${FORMAT.us(low * heat.ratio)}`;
  };
  const options = timeOptions(node, 220 + EVENT_ROW * eventRows(), [{ show: true, points: { show: false }, stroke: 'transparent' }],
    { values: (u, splits) => splits.map(v => (v === null ? null : AXIS.us(v))) },
    { distr: 3, log: 10, range: () => [heat.lowest_us, top] },
    { drawClear: [draw], draw: [drawEvents], setCursor: [read] });
  options.padding = [8 + EVENT_ROW * eventRows(), ...options.padding.slice(1)];
  Object.assign(options.axes[1], logAxis);
  options.axes[1].grid = { show: false };
  options.axes[0].grid = { show: false };
  const u = new uPlot(options, [x, x.map(() => top)], node);
  heatKey(figure, heat);
  const plot = { id: figure.id, heat, node, u };
  plots.push(plot);
  timePlots.push(plot);
  keys(plot, true);
};
