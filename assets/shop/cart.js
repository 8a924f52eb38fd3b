// The cart's page.

import { API, call, cards } from './api.js';
import { attempt, element, money } from './page.js';
import { showCount } from './visitor.js';

export async function showCart(place, cart) {
  cart ??= await call(`${API}/cart`);
  showCount(cart);
  if (cart.items.length === 0) {
    place.replaceChildren(element('p', {}, 'There is nothing in it yet.'));
    return;
  }
  const known = await cards(cart.items.map(({ id }) => id));
  const change = (id, method, body) => attempt(async () => {
    await showCart(place, await call(`${API}/cart/items/${encodeURIComponent(id)}`, method, body));
  });
  const line = ({ id, quantity }) => {
    const card = known.get(id) ?? { name: id };
    const count = element('input', { type: 'number', min: 0, max: 999, required: true, value: quantity, ariaLabel: `Quantity of ${card.name}` });
    count.addEventListener('change', () => {
      if (count.reportValidity()) change(id, 'PUT', { quantity: count.valueAsNumber });
    });
    const remove = element('button', { type: 'button', className: 'plain', ariaLabel: `Remove ${card.name}` }, 'Remove');
    remove.addEventListener('click', () => change(id, 'DELETE'));
    const price = card.currency ? money(card.price_cents * quantity, card.currency) : '';
    return element('tr', {},
      element('td', {}, element('a', { href: `/products/${id}` }, card.name)),
      element('td', {}, count),
      element('td', { className: 'price' }, price),
      element('td', {}, remove));
  };
  const total = cart.items.reduce((sum, { id, quantity }) => sum + (known.get(id)?.price_cents ?? 0) * quantity, 0);
  const currency = known.values().next().value?.currency ?? 'EUR';
  const heads = ['Product', 'Quantity', 'Price'].map((text) => element('th', { scope: 'col' }, text));
  place.replaceChildren(
    element('table', { className: 'lines' },
      element('thead', {}, element('tr', {}, ...heads, element('td'))),
      element('tbody', {}, ...cart.items.map(line))),
    element('p', { className: 'total' }, `Total ${money(total, currency)}`));
}
