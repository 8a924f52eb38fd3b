// The operator dashboard: polls the service API and shows the results. Text is inserted as text, never as HTML.
//
// Polls every 15 s while the tab is visible, because commands are billed; one poll at a time. Tables and the history of
// ranges above an hour change more slowly and load with every fourth poll. After a failure, retries after 5, 10, 20 and then 60 s.

import { ABANDONED, showAbandoned } from './dashboard/abandoned.js';
import { RequestError, Unavailable, WrongKey, call, forgetKey, hasKey, setKey } from './dashboard/api.js';
import { drawCharts, forgetCharts, repaintCharts } from './dashboard/charts.js';
import { showErrors } from './dashboard/errors.js';
import { explainLinked } from './dashboard/explain.js';
import { showFigures } from './dashboard/figures.js';
import { refreshSale, suggestSales } from './dashboard/flash.js';
import { formatTime } from './dashboard/format.js';
import { diagnose } from './dashboard/health.js';
import { showItems } from './dashboard/items.js';
import { showJobs } from './dashboard/jobs.js';
import { setItemRoute } from './dashboard/links.js';
import { dismissNotice } from './dashboard/notice.js';
import './dashboard/popovers.js';
import { showProblem } from './dashboard/problem.js';
import { onRangeChange, rangeMinutes } from './dashboard/range.js';
import { openLinkedRow, showRows } from './dashboard/rows.js';
import { findLinkedUser } from './dashboard/users.js';

/** Milliseconds between two polls. */
const POLL_INTERVAL = 15_000;
/** Tables, and the history of ranges above an hour, load with every fourth poll. */
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
    const isLong = minutes > 60;
    const lacksHistory = isLong && (withTables || latest.minutes !== minutes);
    const paths = [`/traffic?minutes=${isLong ? 15 : minutes}`, '/stats', ...(lacksHistory ? [`/traffic?minutes=${minutes}`] : [])];
    const [recent, stats, traffic = isLong ? latest.traffic : recent] = await Promise.all(paths.map(load));
    const tables = withTables ? await loadTables(signal) : {};
    if (signal.aborted) return;
    Object.assign(latest, { traffic, recent, stats, minutes }, tables);
    polls += 1;
    failures = 0;
    show(withTables);
    refreshSale();
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

const TABLES = { jobs: '/jobs', ranking: '/ranking?limit=10&since=hour', schedule: '/schedule?limit=10', abandoned: ABANDONED };

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
  drawCharts(traffic, recent.now, stats.online);
  showErrors(traffic);
  if (withTables) {
    // First, because the tables link items to their pages.
    if (latest.ranking) setItemRoute(latest.ranking.item_route);
    if (latest.ranking) showItems(latest.ranking);
    if (latest.schedule) showRows(latest.schedule.rows, recent.now);
    if (latest.schedule) suggestSales(latest.schedule.rows);
    if (latest.abandoned) showAbandoned(latest.abandoned);
  }
  if (latest.jobs) showJobs(latest.jobs, recent.now);
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
  for (const openLinked of [explainLinked, openLinkedRow, findLinkedUser]) openLinked();
}

/** Shows the key form, with a `problem` if the key was rejected. */
function lock(problem = '') {
  clearTimeout(timer);
  pollAborter.abort();
  forgetKey();
  dismissNotice();
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close('');
  for (const part of ['[data-dashboard]', '[data-tools]']) $(part).hidden = true;
  $('[data-key]').hidden = false;
  showProblem($('#key'), $('[data-key-problem]'), problem);
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
  // The panels forget what the operator looked up, and so does the address.
  document.dispatchEvent(new CustomEvent('forget'));
  history.replaceState(null, '', location.pathname + location.search);
  $('#key').focus();
});

document.addEventListener('wrong-key', ({ detail }) => lock(detail));

// An action changed what the tables show.
document.addEventListener('changed', () => {
  polls = 0;
  poll();
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

if (hasKey()) unlock();
else lock();
