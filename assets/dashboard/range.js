// The time range of the charts, and the part of it that was selected in a chart. Both are part of the page's URL, so a
// reload and a link show the same.

/** The ranges in minutes, by their names in the URL. */
const RANGES = { '5m': 5, '15m': 15, '1h': 60, '24h': 1_440, '7d': 10_080 };
const select = document.querySelector('[data-range]');
const whole = document.querySelector('[data-whole]');

/** The minutes of the time range. */
export const rangeMinutes = () => RANGES[select.value];

/** The selected part: `[from, to]` in Unix seconds. null is the whole range. */
export function selectedPart() {
  const parameters = new URLSearchParams(location.search);
  const [from, to] = ['from', 'to'].map((name) => Number(parameters.get(name)));
  return from > 0 && to > from ? [from, to] : null;
}

/** Selects a part; null selects the whole range. */
export function selectPart(part) {
  const [from, to] = part?.map(Math.round) ?? [null, null];
  changeUrl({ from, to });
}

/** Calls `changed` when another range or the whole range is selected. */
export function onRangeChange(changed) {
  select.addEventListener('change', () => {
    changeUrl({ range: select.value, from: null, to: null });
    changed();
  });
  whole.addEventListener('click', () => {
    selectPart(null);
    select.focus();
    changed();
  });
}

/** Sets parameters of the page's URL; null removes one. */
function changeUrl(parameters) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  history.replaceState(null, '', url);
  whole.hidden = selectedPart() === null;
}

const asked = new URLSearchParams(location.search).get('range');
if (Object.hasOwn(RANGES, asked)) select.value = asked;
whole.hidden = selectedPart() === null;
