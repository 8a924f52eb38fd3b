// A chart with its legend. The page's HTML contains the legend, which defines the columns and their colours. The legend
// shows the latest values, or those under the pointer. A text alternative describes the chart to screen readers.

import uPlot from 'uplot';
import { formatNumber, formatPercent } from './format.js';

const hourAndMinute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const withSeconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const withDay = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric' });
const HOUR = 3_600;
const DAY = 24 * HOUR;
/** Seconds between two ticks. A label has no seconds, so a shorter step would repeat it. */
const TIME_STEPS = [60, 120, 300, 600, 900, 1_800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY];
/** 1, 2, 5, 10, 20, …: the steps of an axis whose labels are whole numbers. */
const WHOLE_STEPS = Array.from({ length: 27 }, (_, index) => [1, 2, 5][index % 3] * 10 ** Math.floor(index / 3));

/** The labels of moments that are `step` seconds apart. A new day shows its date. */
function timeLabels(times, step) {
  return times.map((time) => {
    const date = new Date(time * 1000);
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    return (step >= DAY || isMidnight ? day : hourAndMinute).format(date);
  });
}

/** The width of an axis with these labels, in pixels: room for `10,000`. */
const axisWidth = (_, labels) => Math.max(52, 14 + 8 * Math.max(0, ...(labels ?? []).map(({ length }) => length)));

export class Chart {
  #figure;
  #container;
  #series;
  #options;
  #plot;
  #data;
  #caption;
  #captionText;
  /** The part of the time that the chart shows: Unix seconds. null is all of it. */
  #part = null;

  /**
   * `options`: `stacked`, `percent`, `digits` (the number of decimals; 0 for whole numbers), `unit` (follows each value), and
   * `onSelect` (gets the two moments of a part that was selected with the pointer).
   */
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

  /** Draws a part of columns of equal length: `at` (Unix seconds) and one per legend entry. null is a gap. */
  draw(columns, part = null) {
    this.#data = columns;
    this.#part = part;
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
    if (this.#plot) this.#plot.setSize({ width, height: this.#container.clientHeight });
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
    const { stacked, percent: isPercent, digits } = this.#options;
    const text = getComputedStyle(this.#container).color;
    const line = getComputedStyle(this.#figure).borderTopColor;
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui, sans-serif' };
    const colours = this.#series.map(({ swatch }) => getComputedStyle(swatch).backgroundColor);
    const series = colours.map((colour) => (stacked
      ? { stroke: colour, fill: colour, width: 1, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }
      : { stroke: colour, width: 2, points: { size: 5 } }));
    return {
      width,
      height: this.#container.clientHeight,
      legend: { show: false },
      cursor: { y: false, points: { show: !stacked }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { range: (_, min, max) => this.#part ?? [min, max] }, y: { range: (_, min, max) => (isPercent ? [0, 1.02] : [0, Math.max(max * 1.1 || 0, digits === 0 ? 1 : 0.1)]) } },
      axes: [
        { ...axis, values: (_, times, _axis, _space, step) => timeLabels(times, step), incrs: TIME_STEPS, space: 70, size: 34 },
        { ...axis, values: (_, values) => values.map((value) => this.#format(value, true)), size: axisWidth, ...(digits === 0 && { incrs: WHOLE_STEPS }) },
      ],
      series: [{}, ...(stacked ? series.reverse() : series)],
      hooks: { setSelect: [(plot) => this.#select(plot)], setCursor: [({ cursor: { idx } }) => {
        const last = this.#data.at.length - 1;
        this.#showValues(Math.min(idx ?? last, last), idx !== null && idx !== undefined);
      }] },
    };
  }

  /** Reports the part under the selection. A shorter one than a few pixels is a click. */
  #select(plot) {
    const { left, width } = plot.select;
    if (width < 5) return;
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.#options.onSelect([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
  }

  #format(value, isAxis = false) {
    if (value === null || value === undefined) return '–';
    if (this.#options.percent) return formatPercent(value, 1);
    // The steps of an axis may need more decimals than the values.
    if (isAxis) return Number.isInteger(value) ? formatNumber(value) : formatNumber(value, value < 1 ? 2 : 1);
    return formatNumber(value, this.#options.digits) + (this.#options.unit ?? '');
  }

  /** The moment of Unix seconds, with the day if the chart shows more than some hours. */
  #formatTime(seconds) {
    const { at } = this.#data;
    return (at.at(-1) - at[0] > 6 * HOUR ? withDay : withSeconds).format(seconds * 1000);
  }

  /** Shows the values at `index` in the legend. */
  #showValues(index, isPointed = false) {
    for (const { name, output } of this.#series) output.textContent = this.#format(this.#data[name][index]);
    this.#caption.textContent = isPointed ? `at ${this.#formatTime(this.#data.at[index])}` : this.#captionText;
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
    this.#container.setAttribute('aria-label', `${title}, ${this.#formatTime(at[0])} to ${this.#formatTime(at.at(-1))}. ${sentences.join(' ')}`);
  }
}
