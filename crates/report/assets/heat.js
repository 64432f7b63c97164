// Latency heat maps: a picture of one pixel per cell, stretched under the axes.

const heatPicture = heat => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [heat.columns, heat.rows];
  const ctx = canvas.getContext('2d');
  const image = ctx.createImageData(heat.columns, heat.rows);
  let most = 1;
  for (const column of heat.cells) for (let i = 1; i < column.length; i += 2) most = Math.max(most, column[i]);
  heat.cells.forEach((column, x) => {
    for (let i = 0; i < column.length; i += 2) {
      const y = heat.rows - 1 - column[i];
      // Even one operation must show: it may be the one that waited.
      const share = 0.15 + 0.85 * (Math.log(column[i + 1]) / Math.log(Math.max(2, most)));
      image.data.set([...cividis(share), 255], 4 * (y * heat.columns + x));
    }
  });
  ctx.putImageData(image, 0, 0);
  return canvas;
};

const heatChart = heat => {
  const figure = document.getElementById(`heat-${heat.actor}`);
  const node = figure.querySelector('.plot');
  const readout = figure.querySelector('.readout');
  const picture = heatPicture(heat);
  const top = heat.lowest_us * heat.ratio ** heat.rows;
  const end = heat.from + heat.columns * heat.column_s;
  const x = heat.cells.map((_, i) => heat.from + (i + 0.5) * heat.column_s);
  const draw = u => {
    const { ctx, bbox } = u;
    const [left, right] = [u.valToPos(heat.from, 'x', true), u.valToPos(end, 'x', true)];
    const [high, low] = [u.valToPos(top, 'y', true), u.valToPos(heat.lowest_us, 'y', true)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(picture, left, high, right - left, low - high);
    ctx.restore();
  };
  const read = u => {
    const i = u.cursor.idx;
    if (i === null || i === undefined || !heat.cells[i]) {
      readout.textContent = '';
      return;
    }
    const column = heat.cells[i];
    const us = u.posToVal(u.cursor.top, 'y');
    const row = Math.floor(Math.log(us / heat.lowest_us) / Math.log(heat.ratio));
    let [here, all] = [0, 0];
    for (let n = 0; n < column.length; n += 2) {
      all += column[n + 1];
      if (column[n] === row) here = column[n + 1];
    }
    const low = heat.lowest_us * heat.ratio ** row;
    readout.textContent = `${seconds(heat.from + i * heat.column_s, heat.column_s)}: ` +
      `${FORMAT.count(here)} of ${FORMAT.count(all)} operations took ` +
      `${FORMAT.us(low)} to ${FORMAT.us(low * heat.ratio)}`;
  };
  const options = timeOptions(node, 220, [{ show: true, points: { show: false }, stroke: 'transparent' }],
    { values: (u, splits) => splits.map(v => (v === null ? null : AXIS.us(v))) },
    { distr: 3, log: 10, range: () => [heat.lowest_us, top] },
    { drawClear: [draw], setCursor: [read] });
  Object.assign(options.axes[1], logAxis);
  options.axes[1].grid = { show: false };
  options.axes[0].grid = { show: false };
  const u = new uPlot(options, [x, x.map(() => top)], node);
  const plot = { id: figure.id, heat, node, u };
  plots.push(plot);
  timePlots.push(plot);
  keys(plot, true);
};
