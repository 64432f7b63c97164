// Colours: Okabe and Ito's, which colour-blind people tell apart, lighter on dark ground.

const dark = matchMedia('(prefers-color-scheme: dark)');
const THEMES = {
  light: {
    text: '#222', grid: '#0001', phase: '#0000000d', stall: '#d55e0033', dip: '#f0e44255', bar: '#d55e00',
    lines: ['#0072b2', '#d55e00', '#007a58', '#a6538a'], band: '22', ground: '#fff',
  },
  dark: {
    text: '#ddd', grid: '#fff2', phase: '#ffffff12', stall: '#d55e0055', dip: '#f0e44233', bar: '#ff8a3d',
    lines: ['#56b4e9', '#e69f00', '#1fc796', '#e08cbb'], band: '30', ground: '#16181c',
  },
};
// Dashes, for those who see or print no colours at all.
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
// Cividis (Nuñez, Anderton and Renslow 2018), dark to bright.
const CIVIDIS = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];

let chosen = null;
const themeName = () => chosen ?? (dark.matches ? 'dark' : 'light');
const theme = () => THEMES[themeName()];

// Calls back whenever the colours change; prints are always light.
const onTheme = redraw => {
  const apply = () => {
    document.documentElement.dataset.theme = themeName();
    redraw();
  };
  const button = document.getElementById('theme');
  button.hidden = false;
  button.addEventListener('click', () => {
    chosen = themeName() === 'dark' ? 'light' : 'dark';
    apply();
  });
  dark.addEventListener('change', apply);
  let before = null;
  addEventListener('beforeprint', () => {
    before = chosen;
    chosen = 'light';
    apply();
  });
  addEventListener('afterprint', () => {
    chosen = before;
    apply();
  });
  document.documentElement.dataset.theme = themeName();
};

const cividis = share => {
  const at = Math.max(0, Math.min(1, share)) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.floor(at));
  return [0, 1, 2].map(c => Math.round(CIVIDIS[i][c] + (at - i) * (CIVIDIS[i + 1][c] - CIVIDIS[i][c])));
};
