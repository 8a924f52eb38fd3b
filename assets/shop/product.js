// A product's page: its price and stock as they are now, and adding it to the cart.

import { API, call } from './api.js';
import { attempt, element, money, say } from './page.js';
import { showCount } from './visitor.js';

/** From so few pieces on, the number is worth a hurry. */
const FEW = 5;

/** Stock and price as the row cache has them; where the row is not kept there, the page's own stay. */
export async function showStock(form) {
  const { buy, currency, listCents } = form.dataset;
  const response = await fetch(`${API}/rows?ids=${encodeURIComponent(buy)}`).catch(() => null);
  const row = response?.ok && (await response.json()).rows?.[buy];
  if (!row) return;
  // The server's clock decides: a visitor's may be wrong by hours.
  const now = (Date.parse(response.headers.get('Date')) || Date.now()) / 1000;
  // A flash sale's price is for its own checkout only.
  const onSale = row.sale_price_cents !== null && row.sale_pieces == null && row.sale_starts_at <= now && now < row.sale_ends_at;
  const cents = onSale ? row.sale_price_cents : row.price_cents;
  const price = form.querySelector('[data-price]');
  price.textContent = money(cents, currency);
  price.parentElement.classList.toggle('cut', cents < Number(listCents));
  form.querySelector('[data-list-price]').textContent = cents < Number(listCents) ? money(listCents, currency) : '';
  // What a flash sale still promises is for its own checkout only, too.
  const promised = row.sale_pieces != null && now < row.sale_ends_at ? row.sale_pieces - row.sale_sold : 0;
  const left = Math.max(0, row.stock - promised);
  const stock = form.querySelector('[data-stock]');
  stock.textContent = stockText(left);
  stock.classList.toggle('few', left > 0 && left <= FEW);
  stock.classList.toggle('none', left <= 0);
  form.querySelector('[type=submit]').disabled = left <= 0;
}

function stockText(stock) {
  if (stock <= 0) return 'Sold out';
  return stock <= FEW ? `Only ${stock} left` : `${stock} in stock`;
}

/** Adds without leaving the page. What the browser finds wrong with the number it tells by itself. */
export function prepareBuying(form) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const button = form.querySelector('[type=submit]');
    // A second press while the first is on its way would add twice.
    if (button.ariaBusy === 'true') return;
    button.ariaBusy = 'true';
    attempt(async () => {
      const quantity = form.elements.quantity.valueAsNumber;
      showCount(await call(`${API}/cart/items`, 'POST', { id: form.dataset.buy, quantity }));
      say('Added to your cart. ', element('a', { href: '/cart' }, 'View cart'));
    }).finally(() => { button.ariaBusy = null; });
  });
}

/** The − and + beside a number. One listener serves those that come later, too. */
export function prepareSteppers() {
  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-step]');
    const input = button?.closest('.stepper')?.querySelector('input');
    if (!input) return;
    if (Number(button.dataset.step) > 0) input.stepUp();
    else input.stepDown();
    input.dispatchEvent(new Event('change', { bubbles: true }));
  });
}
