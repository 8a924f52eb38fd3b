// A chart with its legend. The page's HTML contains the legend, which defines the columns and their colours. The legend
// shows the latest values, or those under the pointer. A text alternative describes the chart to screen readers.

import uPlot from 'uplot';
import { formatNumber, formatPercent, formatTime } from './format.js';

/** Pixels, like the height of `.plot` in charts.css. */
const HEIGHT = 220;
const hourAndMinute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

export class Chart {
  #figure;
  #container;
  #series;
  #options;
  #plot;
  #data;
  #caption;
  #captionText;

  /** `options`: `stacked`, `percent`, and `digits` (the number of decimals). */
  constructor(figure, options) {
    this.#figure = figure;
    this.#options = options;
    this.#container = figure.querySelector('.plot');
    this.#caption = figure.querySelector('[data-reading]');
    this.#captionText = this.#caption.textContent;
    this.#series = [...figure.querySelectorAll('[data-series]')].map((row) => ({
      name: row.dataset.series,
      label: row.textContent.trim(),
      swatch: row.querySelector('.swatch'),
      output: row.querySelector('output'),
    }));
    new ResizeObserver(() => this.#resize()).observe(this.#container);
  }

  /** Draws columns of equal length: `at` (Unix seconds) and one per legend entry. null is a gap. */
  draw(columns) {
    this.#data = columns;
    if (this.#plot) this.#plot.setData(this.#plotData());
    else this.#resize();
    this.#showValues(columns.at.length - 1);
    this.#describe();
  }

  /** Draws again with the current colour scheme. */
  repaint() {
    this.#plot?.destroy();
    this.#plot = undefined;
    this.#resize();
  }

  #resize() {
    const width = this.#container.clientWidth;
    if (!this.#data || width === 0) return;
    if (this.#plot) this.#plot.setSize({ width, height: HEIGHT });
    else this.#plot = new uPlot(this.#uplotOptions(width), this.#plotData(), this.#container);
  }

  /** The data for uPlot. A stacked chart draws cumulative sums, the largest at the back. */
  #plotData() {
    const { at } = this.#data;
    const columns = this.#series.map(({ name }) => this.#data[name]);
    if (!this.#options.stacked) return [at, ...columns];
    const sums = columns.map((_, last) => at.map((_, index) => columns.slice(0, last + 1).reduce((sum, column) => sum + column[index], 0)));
    // Each step ends at the start of the next one, so the last step needs an extra end.
    const end = at.at(-1) + (at.at(-1) - at.at(-2) || 0);
    return [[...at, end], ...sums.reverse().map((sum) => [...sum, sum.at(-1)])];
  }

  #uplotOptions(width) {
    const { stacked, percent: isPercent } = this.#options;
    const text = getComputedStyle(this.#container).color;
    const line = getComputedStyle(this.#figure).borderTopColor;
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui, sans-serif' };
    const colours = this.#series.map(({ swatch }) => getComputedStyle(swatch).backgroundColor);
    const series = colours.map((colour) => (stacked
      ? { stroke: colour, fill: colour, width: 1, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }
      : { stroke: colour, width: 2, points: { size: 5 } }));
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: !stacked }, drag: { x: false, y: false } },
      scales: { y: { range: (_, min, max) => (isPercent ? [0, 1.02] : [0, Math.max(max * 1.1 || 0, 1)]) } },
      axes: [
        { ...axis, values: (_, times) => times.map((time) => hourAndMinute.format(time * 1000)), space: 70, size: 34 },
        { ...axis, values: (_, values) => values.map((value) => this.#format(value, true)), size: 52 },
      ],
      series: [{}, ...(stacked ? series.reverse() : series)],
      hooks: { setCursor: [({ cursor: { idx } }) => {
        const last = this.#data.at.length - 1;
        this.#showValues(Math.min(idx ?? last, last), idx !== null && idx !== undefined);
      }] },
    };
  }

  #format(value, isAxis = false) {
    if (value === null || value === undefined) return '–';
    if (this.#options.percent) return formatPercent(value, 1);
    // The steps of an axis may need more decimals than the values.
    return isAxis && !Number.isInteger(value) ? formatNumber(value, value < 1 ? 2 : 1) : formatNumber(value, isAxis ? 0 : this.#options.digits);
  }

  /** Shows the values at `index` in the legend. */
  #showValues(index, isPointed = false) {
    for (const { name, output } of this.#series) output.textContent = this.#format(this.#data[name][index]);
    this.#caption.textContent = isPointed ? `at ${formatTime(this.#data.at[index])}` : this.#captionText;
  }

  #describe() {
    const { at } = this.#data;
    if (at.length === 0) return;
    const sentences = this.#series.map(({ name, label }) => {
      const values = this.#data[name].filter((value) => value !== null);
      if (values.length === 0) return `${label}: no data yet.`;
      const [min, max, last] = [Math.min(...values), Math.max(...values), values.at(-1)].map((value) => this.#format(value));
      return `${label}: ${min} to ${max}, last ${last}.`;
    });
    const title = this.#figure.querySelector('h3').textContent;
    this.#container.setAttribute('aria-label', `${title}, ${formatTime(at[0])} to ${formatTime(at.at(-1))}. ${sentences.join(' ')}`);
  }
}
