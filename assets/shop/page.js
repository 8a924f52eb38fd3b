// Builds parts of a page. Text is inserted as text, never as HTML.

import { EdgeError, errorMessage } from './api.js';

export const element = (name, attributes = {}, ...children) => {
  const created = Object.assign(document.createElement(name), attributes);
  created.append(...children);
  return created;
};

export const formatMoney = (cents, currency) => new Intl.NumberFormat('en-IE', { style: 'currency', currency }).format(cents / 100);

let toastTimer;

/** Shows a message for 8 seconds; `content` may include a link. Without content, hides the last message. */
export function showToast(...content) {
  const toast = document.querySelector('[data-status]');
  toast.replaceChildren(...content);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.replaceChildren(), 8_000);
}

/** Runs `work`; shows the message of an EdgeError to the visitor. */
export const attempt = (work) => work().catch((error) => {
  if (!(error instanceof EdgeError)) throw error;
  showToast(errorMessage(error));
});

/** Runs `work` for each matching element. An error in one does not stop the others. */
export const forEach = (selector, work) => document.querySelectorAll(selector).forEach((found) => attempt(async () => work(found)));

/** The picture of a card. Screen readers skip it, because the product's name stands beside it. */
export function picture({ picture: name, tone }) {
  const [svg, use] = ['svg', 'use'].map((tag) => document.createElementNS('http://www.w3.org/2000/svg', tag));
  svg.setAttribute('class', `picture tone-${tone}`);
  svg.setAttribute('viewBox', '0 0 96 96');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `${document.body.dataset.pictures}#${name}`);
  svg.append(use);
  return svg;
}

const visuallyHidden = (text) => element('span', { className: 'visually-hidden' }, text);

/** The price in lists: that of a running flash sale, else the current one. */
export function price({ live_flash_cents: flash, price_cents: current, list_cents: list, currency }) {
  const cents = flash ?? current;
  const isReduced = cents < list;
  const original = isReduced ? [' ', visuallyHidden('Original price:'), ' ', element('s', {}, formatMoney(list, currency))] : [];
  return element('span', { className: isReduced ? 'price cut' : 'price' }, formatMoney(cents, currency), ...original);
}

/** A product card like the one in templates/components.html. `rank` counts from 1. */
export function cardItem(card, rank) {
  const stage = element('span', { className: 'stage' }, picture(card));
  if (card.live_flash_cents) stage.append(element('span', { className: 'tag' }, 'Flash sale'));
  else if (card.stock === 0) stage.append(element('span', { className: 'tag gone' }, 'Sold out'));
  const rankLabel = rank ? [element('span', { className: 'rank' }, visuallyHidden('Rank '), `${rank}`)] : [];
  return element('li', { className: 'card' }, element('a', { href: `/products/${encodeURIComponent(card.id)}` },
    ...rankLabel, stage, element('span', { className: 'name' }, card.name), price(card)));
}
