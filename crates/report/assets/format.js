// Figures as people read them; the same forms as in the tables.

// No line ends between a number and its unit.
const GAP = '\u00a0';
const three = (value, unit) => `${Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(1)}${GAP}${unit}`;

const scaled = (value, steps) => {
  const [size, unit] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1);
  return three(value / size, unit);
};

const BINARY = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];
const DECIMAL = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
const TIME_US = [[1e6, 's'], [1e3, 'ms'], [1, 'µs'], [1e-3, 'ns']];

const FORMAT = {
  per_second: v => (v < 9.95 ? v.toFixed(1) : Math.round(v).toLocaleString('en-US')) + '/s',
  us: v => scaled(v, TIME_US),
  bytes_per_second: v => (v < 1e3 ? `${Math.round(v)}${GAP}B` : scaled(v, DECIMAL)) + '/s',
  bytes: v => (v < 1024 ? `${Math.round(v)}${GAP}B` : scaled(v, BINARY)),
  count: v => Math.round(v).toLocaleString('en-US'),
  share: v => `${Math.round(v * 100)}${GAP}%`,
};

// Short enough for an axis.
const plain = v => String(Number(v.toPrecision(4)));
const steps = (v, list) => {
  if (v === 0) return '0';
  const [size, unit] = list.find(([size]) => Math.abs(v) >= size) ?? list.at(-1);
  return `${plain(v / size)}${GAP}${unit}`;
};
const AXIS = {
  per_second: v => v === 0 ? '0' : (v >= 1e6 ? plain(v / 1e6) + 'M' : v >= 1e3 ? plain(v / 1e3) + 'k' : plain(v)) + '/s',
  us: v => steps(v, TIME_US),
  bytes_per_second: v => v === 0 ? '0' : steps(v, DECIMAL) + '/s',
  bytes: v => steps(v, BINARY),
  count: v => plain(v),
  share: v => `${plain(v * 100)}${GAP}%`,
};

const seconds = (v, step = 0.01) => (v < 0 ? '−' : '') + Math.abs(v).toFixed(Math.max(0, Math.min(4, -Math.floor(Math.log10(step))))) + GAP + 's';
