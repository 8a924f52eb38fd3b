// Fills in what a cached page can not know: who is here, their cart, what is popular, what is in stock.
// Everything goes through the edge's API. A page without this script is complete but for these; text is set, never HTML.

const API = '/_edge/v1';

class Problem extends Error {}

/** Calls the API. Resolves with its JSON, or null for an empty answer; throws a Problem that a visitor can read. */
async function call(path, method = 'GET', body) {
  const options = { method, headers: { Accept: 'application/json' } };
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem('No connection. Please try again.');
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Problem(answer?.detail ?? answer?.title ?? 'This did not work. Please try again.');
  return answer;
}

const element = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

const money = (cents, currency) => new Intl.NumberFormat('en-IE', { style: 'currency', currency }).format(cents / 100);

const say = (text) => { document.querySelector('[data-status]').textContent = text; };

/** Does `work`; what goes wrong is told to the visitor. */
const attempt = (work) => work().catch((error) => {
  if (!(error instanceof Problem)) throw error;
  say(error.message);
});

/** Names and prices for `ids`: id → card. Ids that the shop does not have are left out. */
async function cards(ids) {
  if (ids.length === 0) return new Map();
  const { products } = await call(`/products.json?ids=${ids.map(encodeURIComponent).join(',')}`);
  return new Map(products.map((product) => [product.id, product]));
}

function showCount({ quantity }) {
  document.querySelector('[data-cart-count]').textContent = quantity > 0 ? quantity : '';
}

async function showSession() {
  const { user, cart } = await call(`${API}/session`);
  showCount(cart);
  if (user) document.querySelector('[data-account]').textContent = user;
}

async function showPopular(list) {
  const { items } = await call(`${API}/popular?limit=8`);
  const known = await cards(items.map(({ id }) => id));
  const ranked = items.map(({ id }) => known.get(id)).filter(Boolean);
  list.replaceChildren(...ranked.map((card) => element('li', { className: 'card' },
    element('a', { href: `/products/${card.id}` },
      element('span', { className: 'name' }, card.name),
      element('span', { className: 'price' }, money(card.price_cents, card.currency))))));
}

/** Stock and price as the row cache has them; where the row is not kept there, the page's own stay. */
async function showStock(form) {
  const { buy, currency, listCents } = form.dataset;
  const response = await fetch(`${API}/rows?ids=${encodeURIComponent(buy)}`);
  if (!response.ok) return;
  const row = (await response.json()).rows?.[buy];
  if (!row) return;
  // The server's clock decides: a visitor's may be wrong by hours.
  const now = (Date.parse(response.headers.get('Date')) || Date.now()) / 1000;
  const onSale = row.sale_price_cents !== null && row.sale_starts_at <= now && now < row.sale_ends_at;
  const cents = onSale ? row.sale_price_cents : row.price_cents;
  form.querySelector('[data-price]').textContent = money(cents, currency);
  form.querySelector('[data-list-price]').textContent = cents < Number(listCents) ? money(listCents, currency) : '';
  form.querySelector('[data-stock]').textContent = row.stock > 0 ? `${row.stock} in stock` : 'Sold out';
  form.querySelector('button').disabled = row.stock <= 0;
}

function prepareBuying(form) {
  form.querySelector('button').disabled = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(async () => {
      const quantity = form.elements.quantity.valueAsNumber;
      showCount(await call(`${API}/cart/items`, 'POST', { id: form.dataset.buy, quantity }));
      say('Added to your cart.');
    });
  });
}

async function showCart(place, cart) {
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
    element('p', { className: 'price' }, `Total ${money(total, currency)}`));
}

const forEach = (selector, work) => document.querySelectorAll(selector).forEach(work);

attempt(showSession);
forEach('[data-popular]', (list) => attempt(() => showPopular(list)));
forEach('[data-cart]', (place) => attempt(() => showCart(place)));
forEach('[data-buy]', (form) => {
  prepareBuying(form);
  attempt(() => showStock(form));
});
