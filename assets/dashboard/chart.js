// A chart with its legend. The legend is the page's: it names the columns, has their colours, and tells the last values, or those under the
// pointer. Who does not see the chart gets it in a sentence.

import uPlot from 'uplot';
import { clock, count, percent } from './words.js';

/** As in charts.css. */
const HEIGHT = 220;
const minute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

export class Chart {
  #figure;
  #place;
  #series;
  #options;
  #plot;
  #data;
  #reading;
  #about;

  /** `options`: `stacked`; `percent`, or `digits` behind the point. */
  constructor(figure, options) {
    this.#figure = figure;
    this.#options = options;
    this.#place = figure.querySelector('.plot');
    this.#reading = figure.querySelector('[data-reading]');
    this.#about = this.#reading.textContent;
    this.#series = [...figure.querySelectorAll('[data-series]')].map((row) => ({
      name: row.dataset.series,
      label: row.textContent.trim(),
      swatch: row.querySelector('.swatch'),
      output: row.querySelector('output'),
    }));
    new ResizeObserver(() => this.#resize()).observe(this.#place);
  }

  /** Draws columns of equal length: `at` (Unix seconds) and one for each entry of the legend; null is a gap. */
  draw(columns) {
    this.#data = columns;
    if (this.#plot) this.#plot.setData(this.#drawn());
    else this.#resize();
    this.#tell(columns.at.length - 1);
    this.#describe();
  }

  /** Draws with the colours of now. */
  repaint() {
    this.#plot?.destroy();
    this.#plot = undefined;
    this.#resize();
  }

  #resize() {
    const width = this.#place.clientWidth;
    if (!this.#data || width === 0) return;
    if (this.#plot) this.#plot.setSize({ width, height: HEIGHT });
    else this.#plot = new uPlot(this.#settings(width), this.#drawn(), this.#place);
  }

  /** Stacked columns lie on one another, the sum of all at the back. */
  #drawn() {
    const { at } = this.#data;
    const columns = this.#series.map(({ name }) => this.#data[name]);
    if (!this.#options.stacked) return [at, ...columns];
    const sums = columns.map((_, last) => at.map((_, index) => columns.slice(0, last + 1).reduce((sum, column) => sum + column[index], 0)));
    // A step ends where the next one begins: the last one needs an end, too.
    const end = at.at(-1) + (at.at(-1) - at.at(-2) || 0);
    return [[...at, end], ...sums.reverse().map((sum) => [...sum, sum.at(-1)])];
  }

  #settings(width) {
    const { stacked, percent: isPercent } = this.#options;
    const text = getComputedStyle(this.#place).color;
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
      scales: { y: { range: (_, least, most) => (isPercent ? [0, 1.02] : [0, Math.max(most * 1.1 || 0, 1)]) } },
      axes: [
        { ...axis, values: (_, moments) => moments.map((moment) => minute.format(moment * 1000)), space: 70, size: 34 },
        { ...axis, values: (_, values) => values.map((value) => this.#word(value, true)), size: 52 },
      ],
      series: [{}, ...(stacked ? series.reverse() : series)],
      hooks: { setCursor: [({ cursor: { idx } }) => {
        const last = this.#data.at.length - 1;
        this.#tell(Math.min(idx ?? last, last), idx !== null && idx !== undefined);
      }] },
    };
  }

  #word(value, isAxis = false) {
    if (value === null || value === undefined) return '–';
    if (this.#options.percent) return percent(value, 1);
    // An axis may have steps that are finer than what is told.
    return isAxis && !Number.isInteger(value) ? count(value, value < 1 ? 2 : 1) : count(value, isAxis ? 0 : this.#options.digits);
  }

  /** The values of a moment, in the legend. */
  #tell(index, isPointed = false) {
    for (const { name, output } of this.#series) output.textContent = this.#word(this.#data[name][index]);
    this.#reading.textContent = isPointed ? `at ${clock(this.#data.at[index])}` : this.#about;
  }

  #describe() {
    const { at } = this.#data;
    if (at.length === 0) return;
    const sentences = this.#series.map(({ name, label }) => {
      const values = this.#data[name].filter((value) => value !== null);
      if (values.length === 0) return `${label}: nothing yet.`;
      const [least, most, last] = [Math.min(...values), Math.max(...values), values.at(-1)].map((value) => this.#word(value));
      return `${label}: ${least} to ${most}, last ${last}.`;
    });
    const title = this.#figure.querySelector('h3').textContent;
    this.#place.setAttribute('aria-label', `${title}, ${clock(at[0])} to ${clock(at.at(-1))}. ${sentences.join(' ')}`);
  }
}
