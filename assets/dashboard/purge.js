// Purges: of a URL, an item, a tag or everything; hard (the pages are deleted) or soft (they become stale).

import { RequestError, call } from './api.js';
import { confirm } from './dialog.js';
import { act } from './notice.js';
import { showProblem } from './problem.js';

const form = document.querySelector('[data-purge]');
const kind = form.querySelector('[name=kind]');
const value = form.querySelector('[name=value]');
const label = form.querySelector('[data-value-label]');
const problem = form.querySelector('[data-purge-problem]');

/** Field of `POST /purge`, its label and an example. */
const KINDS = {
  items: ['Item', 'mug'],
  tags: ['Tag', 'kitchen'],
  urls: ['Page URL or path to purge', '/products/mug'],
  all: ['', ''],
};

/** Purges, and resolves with the notice. Nothing to undo: the next request renders a page again. */
export async function purge(what, { soft = false } = {}) {
  const { skipped } = await call('/purge', { method: 'POST', body: soft ? { ...what, soft } : what });
  document.dispatchEvent(new CustomEvent('purged'));
  if (skipped.length > 0) throw new RequestError(`Not purged: ${skipped[0].url} is no page that can be cached (${skipped[0].why}).`);
  const names = what.all ? 'all pages' : what.items ? `pages of ${what.items[0]}` : what.tags ? `pages with the tag ${what.tags[0]}` : new URL(what.urls[0]).pathname;
  return { message: soft ? `Marked as stale: ${names}.` : `Purged: ${names}.` };
}

async function purgeForm(submitter) {
  const soft = form.querySelector('[name=mode]:checked').value === 'soft';
  const text = value.value.trim();
  if (kind.value === 'all') {
    const isSure = await confirm(soft ? {
      title: 'Mark all pages as stale?',
      text: 'Visitors still get each page once more. Each page is then rendered again, so the shop gets one request for each page.',
      action: 'Mark all as stale',
    } : {
      title: 'Purge all pages?',
      text: 'Every cached page is deleted. Until the pages are rendered again, all requests go to the shop. Mark them as stale instead if the shop is busy. A purge cannot be undone.',
      action: 'Purge all pages',
    });
    return isSure ? purge({ all: true }, { soft }) : undefined;
  }
  if (!text) return void showProblem(value, problem, `Enter ${{ items: 'the id of an item', tags: 'a tag', urls: 'a URL or a path' }[kind.value]}.`);
  const name = kind.value === 'urls' ? URL.parse(text, location.origin)?.href ?? text : text;
  const result = await purge({ [kind.value]: [name] }, { soft });
  submitter.focus();
  return result;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  showProblem(value, problem, '');
  act(event.submitter, () => purgeForm(event.submitter));
});

kind.addEventListener('change', () => {
  const [name, example] = KINDS[kind.value];
  label.textContent = name;
  value.placeholder = example;
  value.closest('label').hidden = kind.value === 'all';
  showProblem(value, problem, '');
});
