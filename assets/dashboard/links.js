// Links of items, rows, URLs and users: to their explanation on this page, and to their page in the shop.

import { element } from './format.js';

/** The shop's pattern of an item's page, such as `/products/{item}`; null until it is known. */
let itemRoute = null;

export const setItemRoute = (route) => { itemRoute = route; };

/** The path of an item's page; null if the shop has no pattern for it. */
export const itemPath = (item) => itemRoute?.replace('{item}', encodeURIComponent(item)) ?? null;

/** A link that explains the caching of a URL. */
export const explainLink = (url, text) => element('a', { href: `#explain=${encodeURIComponent(url)}`, title: `Explain ${url}` }, text);

/** A link to a page of the shop, in a new tab. */
export function pageLink(path, what) {
  const link = element('a', { href: path, target: '_blank', rel: 'noopener', className: 'page', title: path }, '↗');
  link.setAttribute('aria-label', `Open the page of ${what}`);
  return link;
}

/** An item with the links to its explanation and its page; plain text if its path is not known. */
export function itemLinks(item) {
  const path = itemPath(item);
  return path === null ? [item] : [explainLink(path, item), ' ', pageLink(path, item)];
}

/** A link that lists the sessions of a user. */
export const userLink = (user) => element('a', { href: `#user=${encodeURIComponent(user)}`, title: `Sessions of ${user}` }, user);

/** The value of `#name=value` in the page's address; null without it. */
export function linked(name) {
  const [own, value] = location.hash.slice(1).split('=');
  if (own !== name || value === undefined) return null;
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}

// A click on a link to the present address is no change for the browser. The operator expects a new look.
document.addEventListener('click', ({ target }) => {
  if (location.hash && target.closest('a')?.getAttribute('href') === location.hash) dispatchEvent(new Event('hashchange'));
});
