// All charts, and what they show of the traffic.

import { Chart } from './chart.js';
import { selectPart, selectedPart } from './range.js';
import { chartColumns } from './series.js';

const figure = (name) => document.querySelector(`[data-chart=${name}]`);
const LATENCIES = ['hit', 'render', 'api', 'redis', 'origin', 'home'];
const OPTIONS = {
  responses: { stacked: true, digits: 1 },
  hits: { percent: true },
  redis: { digits: 2 },
  online: { digits: 0 },
  activity: { digits: 0 },
  errors: { stacked: true, digits: 1 },
  ...Object.fromEntries(LATENCIES.map((kind) => [`latency-${kind}`, { digits: 0, unit: ' ms' }])),
};
const charts = Object.fromEntries(Object.entries(OPTIONS).map(([name, options]) => [name, new Chart(figure(name), { ...options, onSelect: showPart })]));
/** The columns that the charts show. */
let drawn = {};

/** Visitors online at each poll since the page was opened. */
let polled = [];
/** An hour of polls. */
const MAX_POLLED = 240;

/** Draws all charts. `online` is the number of visitors online at the time `now`. `traffic` may be some polls older. */
export function drawCharts(traffic, now, online) {
  polled = [...polled, [now, online]].slice(-MAX_POLLED);
  // A chart of a single tier has no home tier.
  figure('latency-home').hidden = traffic.latency.home.total.count === 0;
  drawn = chartColumns(traffic, polled);
  const part = selectedPart();
  // A part that the range no longer contains is over.
  if (part && part[1] < traffic.at[0]) selectPart(null);
  draw();
}

function draw() {
  for (const [name, columns] of Object.entries(drawn)) charts[name].draw(columns, selectedPart());
}

function showPart(part) {
  selectPart(part);
  draw();
}

/** Draws all charts again with the current colour scheme. */
export function repaintCharts() {
  for (const chart of Object.values(charts)) chart.repaint();
}

export function forgetCharts() {
  polled = [];
}
