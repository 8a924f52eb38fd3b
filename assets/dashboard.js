// The operator's dashboard: asks the service's part of the API and draws what it says. Text is set, never HTML.
//
// One round at a time, every 5 s while the tab is seen; the lists change slower and come along with every third. What fails is said,
// and asked again after 5, 10, 20 and then 60 s.

import { Locked, Refused, Unavailable, call, forgetKey, hasKey, useKey } from './dashboard/api.js';
import { Chart } from './dashboard/chart.js';
import { explain } from './dashboard/explain.js';
import { showFigures } from './dashboard/figures.js';
import { diagnose } from './dashboard/health.js';
import { showAbandoned, showItems, showJobs, showRows } from './dashboard/panels.js';
import { bundle } from './dashboard/series.js';
import { clock } from './dashboard/words.js';

const EVERY = 5_000;
const LISTS_EVERY = 3;
const BACK_OFF = [5_000, 10_000, 20_000, 60_000];

const $ = (selector) => document.querySelector(selector);
const charts = {
  answers: new Chart($('[data-chart=answers]'), { stacked: true, digits: 1 }),
  hits: new Chart($('[data-chart=hits]'), { percent: true }),
  redis: new Chart($('[data-chart=redis]'), { digits: 2 }),
  online: new Chart($('[data-chart=online]'), { digits: 0 }),
  doing: new Chart($('[data-chart=doing]'), { digits: 0 }),
};

/** What was told last; `at` and `online` are kept here, since Redis keeps no past of them. */
const known = { online: { at: [], online: [] } };
let round = 0;
let failures = 0;
let timer;
let paused = false;
/** Ends the question that is under way, when another one takes its place or the key is forgotten. */
let question = new AbortController();

async function ask() {
  clearTimeout(timer);
  question.abort();
  question = new AbortController();
  const { signal } = question;
  try {
    const minutes = $('[data-minutes]').value;
    const withLists = round % LISTS_EVERY === 0;
    const [traffic, stats] = await Promise.all([call(`/traffic?minutes=${minutes}`, { signal }), call('/stats', { signal })]);
    const told = withLists ? await lists(signal) : {};
    if (signal.aborted) return;
    Object.assign(known, { traffic, stats }, told);
    round += 1;
    failures = 0;
    show(withLists);
    say(diagnose(known), `Updated at ${clock(Date.now() / 1000)}`);
    plan(EVERY);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Locked) return close(error.message);
    if (!(error instanceof Refused || error instanceof Unavailable)) throw error;
    const wait = BACK_OFF[Math.min(failures, BACK_OFF.length - 1)];
    failures += 1;
    say({ level: 'bad', words: [error.message] }, `Asking again in ${wait / 1000} s${known.stats ? '; what is below is old' : ''}`);
    plan(wait);
  }
}

const LISTS = { jobs: '/jobs', ranking: '/ranking?limit=10', schedule: '/schedule?limit=10', abandoned: '/abandoned?limit=5' };

/** The lists, and which of them could not be had (`missing`): one that fails must not hide the others. */
async function lists(signal) {
  const missing = [];
  const told = await Promise.all(Object.entries(LISTS).map(async ([name, path]) => {
    try {
      return [name, await call(path, { signal })];
    } catch (error) {
      if (error instanceof Locked || !(error instanceof Refused || error instanceof Unavailable)) throw error;
      missing.push(name);
      return [name, null];
    }
  }));
  return { ...Object.fromEntries(told), missing };
}

function plan(wait) {
  if (!paused && !document.hidden) timer = setTimeout(ask, wait);
}

/** Draws; a list only when it was asked for, so that what somebody reads does not move for nothing. */
function show(withLists) {
  const { traffic, stats } = known;
  // Of a single moment there is no chart: the two minutes before are unknown.
  if (known.online.at.length === 0) known.online = { at: [traffic.now - 120], online: [null] };
  known.online.at.push(traffic.now);
  known.online.online.push(stats.online);
  // An hour of rounds.
  if (known.online.at.length > 720) for (const column of Object.values(known.online)) column.shift();
  known.series = bundle(traffic);
  showFigures(traffic, stats);
  charts.answers.draw(known.series.answers);
  charts.hits.draw(known.series.hits);
  charts.redis.draw(known.series.redis);
  charts.doing.draw(known.series.doing);
  charts.online.draw(known.online);
  if (withLists) {
    if (known.ranking) showItems(known.ranking.items);
    if (known.schedule) showRows(known.schedule.rows, traffic.now);
    if (known.abandoned) showAbandoned(known.abandoned.carts);
  }
  if (known.jobs) showJobs(known.jobs, traffic.now);
}

function say({ level, words }, since) {
  $('[data-health]').dataset.health = level;
  const line = words.join(' ');
  // Said again, it would be read aloud again.
  if ($('[data-health-line]').textContent !== line) $('[data-health-line]').textContent = line;
  $('[data-since]').textContent = since;
}

function open() {
  $('[data-key]').hidden = true;
  for (const part of ['[data-dashboard]', '[data-tools]']) $(part).hidden = false;
  round = 0;
  ask();
}

/** Shows the form for the key; `problem` says why it is shown again. */
function close(problem = '') {
  clearTimeout(timer);
  question.abort();
  forgetKey();
  for (const part of ['[data-dashboard]', '[data-tools]']) $(part).hidden = true;
  $('[data-key]').hidden = false;
  tell($('#key'), $('[data-key-problem]'), problem);
}

/** Says beside a field what is wrong with it, or that nothing is. */
function tell(field, place, problem) {
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
    useKey(field.value);
    await call('/stats');
  } catch (error) {
    // Without Redis the key is right all the same, and the dashboard says what is wrong.
    if (!(error instanceof Unavailable)) {
      forgetKey();
      if (!(error instanceof Refused)) throw error;
      return tell(field, $('[data-key-problem]'), error.message);
    }
  }
  field.value = '';
  tell(field, $('[data-key-problem]'), '');
  open();
  $('#main').focus();
});

$('[data-forget]').addEventListener('click', () => {
  close();
  for (const name of Object.keys(known)) delete known[name];
  known.online = { at: [], online: [] };
  $('#key').focus();
});

$('[data-pause]').addEventListener('click', ({ currentTarget: button }) => {
  paused = !paused;
  button.setAttribute('aria-pressed', paused);
  if (paused) {
    clearTimeout(timer);
    $('[data-since]').textContent += ', paused';
  } else {
    ask();
  }
});

$('[data-minutes]').addEventListener('change', ask);

document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (!document.hidden && !paused && hasKey()) ask();
});

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const chart of Object.values(charts)) chart.repaint();
});

$('[data-explain]').addEventListener('submit', async (event) => {
  event.preventDefault();
  const url = $('#url').value.trim();
  try {
    if (!url) throw new Refused('Which address? A path such as /products/mug is enough.');
    const said = explain(await call(`/cache?url=${encodeURIComponent(url)}`));
    $('[data-explained]').replaceChildren(...said);
    tell($('#url'), $('[data-explain-problem]'), '');
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unavailable)) throw error;
    tell($('#url'), $('[data-explain-problem]'), error.message);
  }
});

if (hasKey()) open();
else close();
