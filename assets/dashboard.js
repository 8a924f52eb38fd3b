// The operator dashboard: polls the service API and shows the results. Text is inserted as text, never as HTML.
//
// Polls every 15 s while the tab is visible, because commands are billed; one poll at a time. Tables change more slowly
// and load with every fourth poll. After a failure, retries after 5, 10, 20 and then 60 s.

import { RequestError, Unavailable, WrongKey, call, forgetKey, hasKey, setKey } from './dashboard/api.js';
import { drawCharts, forgetCharts, repaintCharts } from './dashboard/charts.js';
import { showErrors } from './dashboard/errors.js';
import { explain } from './dashboard/explain.js';
import { showFigures } from './dashboard/figures.js';
import { formatTime } from './dashboard/format.js';
import { diagnose } from './dashboard/health.js';
import { showAbandoned, showItems, showJobs, showRows } from './dashboard/panels.js';
import { onRangeChange, rangeMinutes } from './dashboard/range.js';

/** Milliseconds between two polls. */
const POLL_INTERVAL = 15_000;
/** Tables load with every fourth poll. */
const TABLES_EVERY = 4;
/** Milliseconds before each retry. */
const BACKOFF = [5_000, 10_000, 20_000, 60_000];

const $ = (selector) => document.querySelector(selector);
/** The latest results. */
const latest = {};
let polls = 0;
let failures = 0;
let timer;
let paused = false;
/** Aborts the current poll when a new one starts or the key is forgotten. */
let pollAborter = new AbortController();

async function poll() {
  clearTimeout(timer);
  pollAborter.abort();
  pollAborter = new AbortController();
  const { signal } = pollAborter;
  try {
    const withTables = polls % TABLES_EVERY === 0;
    const minutes = rangeMinutes();
    const load = (path) => call(path, { signal });
    // The buckets of a day are too long to say what happens now.
    const paths = [`/traffic?minutes=${minutes}`, '/stats', ...(minutes > 60 ? ['/traffic?minutes=15'] : [])];
    const [traffic, stats, recent = traffic] = await Promise.all(paths.map(load));
    const tables = withTables ? await loadTables(signal) : {};
    if (signal.aborted) return;
    Object.assign(latest, { traffic, recent, stats }, tables);
    polls += 1;
    failures = 0;
    show(withTables);
    showHealth(diagnose({ ...latest, traffic: recent }), `Updated at ${formatTime(Date.now() / 1000)}`);
    schedulePoll(POLL_INTERVAL);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof WrongKey) return lock(error.message);
    if (!(error instanceof RequestError || error instanceof Unavailable)) throw error;
    const delay = BACKOFF[Math.min(failures, BACKOFF.length - 1)];
    failures += 1;
    showHealth({ level: 'bad', sentences: [error.message] }, `Retrying in ${delay / 1000} s${latest.stats ? '. The data below is old.' : '.'}`);
    schedulePoll(delay);
  }
}

const TABLES = { jobs: '/jobs', ranking: '/ranking?limit=10', schedule: '/schedule?limit=10', abandoned: '/abandoned?limit=5' };

/** Loads all tables. A failed table is null, and `missing` contains its name: it does not hide the others. */
async function loadTables(signal) {
  const missing = [];
  const tables = await Promise.all(Object.entries(TABLES).map(async ([name, path]) => {
    try {
      return [name, await call(path, { signal })];
    } catch (error) {
      if (error instanceof WrongKey || !(error instanceof RequestError || error instanceof Unavailable)) throw error;
      missing.push(name);
      return [name, null];
    }
  }));
  return { ...Object.fromEntries(tables), missing };
}

function schedulePoll(delay) {
  if (!paused && !document.hidden) timer = setTimeout(poll, delay);
}

/** Shows the latest results. A table changes only when it was loaded, so that the text under a reader's eyes does not move. */
function show(withTables) {
  const { traffic, recent, stats } = latest;
  showFigures(traffic, recent, stats);
  drawCharts(traffic, stats.online);
  showErrors(traffic);
  if (withTables) {
    if (latest.ranking) showItems(latest.ranking.items);
    if (latest.schedule) showRows(latest.schedule.rows, traffic.now);
    if (latest.abandoned) showAbandoned(latest.abandoned.carts);
  }
  if (latest.jobs) showJobs(latest.jobs, traffic.now);
}

function showHealth({ level, sentences }, since) {
  $('[data-health]').dataset.health = level;
  const line = sentences.join(' ');
  // A screen reader would read the same text again.
  if ($('[data-health-line]').textContent !== line) $('[data-health-line]').textContent = line;
  $('[data-since]').textContent = since;
}

function unlock() {
  $('[data-key]').hidden = true;
  for (const part of ['[data-dashboard]', '[data-tools]']) $(part).hidden = false;
  polls = 0;
  poll();
}

/** Shows the key form, with a `problem` if the key was rejected. */
function lock(problem = '') {
  clearTimeout(timer);
  pollAborter.abort();
  forgetKey();
  for (const part of ['[data-dashboard]', '[data-tools]']) $(part).hidden = true;
  $('[data-key]').hidden = false;
  showProblem($('#key'), $('[data-key-problem]'), problem);
}

/** Shows the problem of a field beside it; an empty `problem` clears it. */
function showProblem(field, place, problem) {
  place.textContent = problem;
  if (problem) {
    field.setAttribute('aria-invalid', 'true');
    field.focus();
  } else {
    field.removeAttribute('aria-invalid');
  }
}

$('[data-key]').addEventListener('submit', async (event) => {
  event.preventDefault();
  const field = $('#key');
  try {
    setKey(field.value);
    await call('/stats');
  } catch (error) {
    // Unavailable says nothing about the key: the dashboard opens and shows the problem.
    if (!(error instanceof Unavailable)) {
      forgetKey();
      if (!(error instanceof RequestError)) throw error;
      return showProblem(field, $('[data-key-problem]'), error.message);
    }
  }
  field.value = '';
  showProblem(field, $('[data-key-problem]'), '');
  unlock();
  $('#main').focus();
});

$('[data-forget]').addEventListener('click', () => {
  lock();
  for (const name of Object.keys(latest)) delete latest[name];
  forgetCharts();
  $('#key').focus();
});

$('[data-pause]').addEventListener('click', ({ currentTarget: button }) => {
  paused = !paused;
  button.setAttribute('aria-pressed', paused);
  if (paused) {
    clearTimeout(timer);
    $('[data-since]').textContent += ', paused';
  } else {
    poll();
  }
});

onRangeChange(poll);

document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (!document.hidden && !paused && hasKey()) poll();
});

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaintCharts);

$('[data-explain]').addEventListener('submit', async (event) => {
  event.preventDefault();
  const url = $('#url').value.trim();
  try {
    if (!url) throw new RequestError('Enter a URL or a path such as /products/mug.');
    const explanation = explain(await call(`/cache?url=${encodeURIComponent(url)}`));
    $('[data-explained]').replaceChildren(...explanation);
    showProblem($('#url'), $('[data-explain-problem]'), '');
  } catch (error) {
    if (!(error instanceof RequestError || error instanceof Unavailable)) throw error;
    showProblem($('#url'), $('[data-explain-problem]'), error.message);
  }
});

if (hasKey()) unlock();
else lock();
