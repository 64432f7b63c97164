// Starts everything: the data, the charts, the tools above them.

const DATA = JSON.parse(document.getElementById('data').textContent);

const start = () => {
  const xs = DATA.charts.flatMap(chart => [chart.x[0], chart.x.at(-1)]).filter(v => v !== undefined);
  const half = DATA.interval_s / 2;
  full = xs.length ? [Math.min(...xs) - half, Math.max(...xs) + half] : [0, 1];
  DATA.charts.forEach(timeChart);
  DATA.heat.forEach(heatChart);
  DATA.curves.forEach(curveChart);
  if (document.getElementById('cost')) costChart(DATA.cost);
  showView(...DATA.spans.view);

  const stalls = [...DATA.spans.marks.filter(mark => mark.kind === 'stall'), ...(DATA.lanes ?? [])];
  const pan = by => showView(view[0] + by * (view[1] - view[0]), view[1] + by * (view[1] - view[0]));
  const tools = document.querySelector('.tools');
  const actions = {
    in: () => zoom(0.5),
    out: () => zoom(2),
    left: () => pan(-0.5),
    right: () => pan(0.5),
    view: () => showView(...DATA.spans.view),
    all: () => showView(...full),
    stall: () => {
      if (!stalls.length) return;
      const [from, to] = [Math.min(...stalls.map(s => s.from)), Math.max(...stalls.map(s => s.to))];
      const around = Math.max(to - from, 20 * DATA.interval_s);
      showView(from - around, to + around);
    },
  };
  tools.hidden = false;
  tools.querySelector('[data-do=stall]').hidden = stalls.length === 0;
  tools.querySelector('label').hidden = !DATA.charts.some(chart => chart.log);
  tools.addEventListener('click', event => actions[event.target.dataset.do]?.());

  onTheme(() => {
    for (const { u } of plots) u.redraw(false, true);
    legends.forEach(draw => draw());
  });
  // A width of its own for each chart, also when a phone is turned.
  const resized = new ResizeObserver(entries => {
    for (const { target } of entries) {
      const plot = plots.find(({ node }) => node === target);
      if (plot.u.width !== widthOf(target)) plot.u.setSize({ width: widthOf(target), height: plot.u.height });
    }
  });
  for (const { node } of plots) resized.observe(node);
  // A table that is wider than its place says so, as long as there is more of it.
  const hint = table => {
    const more = table.scrollWidth - table.clientWidth;
    table.previousElementSibling.hidden = more <= 1;
    table.classList.toggle('cut', more > 1 && table.scrollLeft < more - 1);
  };
  const tables = new ResizeObserver(entries => entries.forEach(({ target }) => hint(target)));
  for (const table of document.querySelectorAll('.overflow')) {
    tables.observe(table);
    table.addEventListener('scroll', () => hint(table), { passive: true });
  }
  // For tests: what is shown, without having to look at pixels.
  window.trimbench = { data: DATA, plots, showView, view: () => view };
};

start();
