// Building parts of a page. Text is set as text, never as HTML.

import { Problem } from './api.js';

export const element = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

export const money = (cents, currency) => new Intl.NumberFormat('en-IE', { style: 'currency', currency }).format(cents / 100);

let silence;

/** Tells the visitor, for some seconds; `more` may be a link. */
export function say(...more) {
  const status = document.querySelector('[data-status]');
  status.replaceChildren(...more);
  clearTimeout(silence);
  silence = setTimeout(() => status.replaceChildren(), 8_000);
}

/** Does `work`; what goes wrong is told to the visitor. */
export const attempt = (work) => work().catch((error) => {
  if (!(error instanceof Problem)) throw error;
  say(error.message);
});

/** The picture of a card; decoration, since the name stands beside it. */
export function picture({ picture: name, tone }) {
  const [svg, use] = ['svg', 'use'].map((tag) => document.createElementNS('http://www.w3.org/2000/svg', tag));
  svg.setAttribute('class', `picture tone-${tone}`);
  svg.setAttribute('viewBox', '0 0 96 96');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `${document.body.dataset.pictures}#${name}`);
  svg.append(use);
  return svg;
}

const unseen = (text) => element('span', { className: 'unseen' }, text);

export function price({ price_cents: cents, list_cents: list, currency }) {
  const cut = cents < list;
  const before = cut ? [' ', unseen('instead of'), ' ', element('s', {}, money(list, currency))] : [];
  return element('span', { className: cut ? 'price cut' : 'price' }, money(cents, currency), ...before);
}

/** A card as templates/parts.html has it; a `rank` counts from 1. */
export function cardItem(card, rank) {
  const stage = element('span', { className: 'stage' }, picture(card));
  if (card.stock === 0) stage.append(element('span', { className: 'tag gone' }, 'Sold out'));
  const place = rank ? [element('span', { className: 'rank' }, unseen('Rank '), `${rank}`)] : [];
  return element('li', { className: 'card' }, element('a', { href: `/products/${encodeURIComponent(card.id)}` },
    ...place, stage, element('span', { className: 'name' }, card.name), price(card)));
}
