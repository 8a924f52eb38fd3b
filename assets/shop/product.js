// A product's page: current price and stock, and adding to the cart.

import { changeCart, edge } from './api.js';
import { attempt, element, formatMoney, showToast } from './page.js';
import { showCartCount } from './visitor.js';

/** Up to this stock, the page shows "Only 3 left". */
const LOW_STOCK = 5;

/** Shows current price and stock from the row cache. If the row is not cached, the page keeps its own. */
export async function showStock(form) {
  const { buy, currency, listCents } = form.dataset;
  const answer = await edge.rows([buy]).catch(() => null);
  const row = answer?.rows[buy];
  if (!row) return;
  // Uses the server's clock, because the visitor's may be wrong by hours.
  const now = answer.now / 1000;
  // The price of a flash sale is only for the sale's own checkout.
  const onSale = row.sale_price_cents !== null && row.sale_pieces == null && row.sale_starts_at <= now && now < row.sale_ends_at;
  const cents = onSale ? row.sale_price_cents : row.price_cents;
  const prices = form.querySelectorAll('[data-price]');
  for (const price of prices) price.textContent = formatMoney(cents, currency);
  prices[0].parentElement.classList.toggle('cut', cents < Number(listCents));
  form.querySelector('[data-list-price]').textContent = cents < Number(listCents) ? formatMoney(listCents, currency) : '';
  // Pieces that a flash sale has not sold yet are only for that checkout, too.
  const reserved = row.sale_pieces != null && now < row.sale_ends_at ? row.sale_pieces - row.sale_sold : 0;
  const left = Math.max(0, row.stock - reserved);
  const stock = form.querySelector('[data-stock]');
  stock.textContent = stockText(left);
  stock.classList.toggle('few', left > 0 && left <= LOW_STOCK);
  stock.classList.toggle('none', left <= 0);
  form.querySelector('[type=submit]').disabled = left <= 0;
}

function stockText(stock) {
  if (stock <= 0) return 'Sold out';
  return stock <= LOW_STOCK ? `Only ${stock} left` : `${stock} in stock`;
}

/** Adds to the cart without leaving the page. The browser itself reports an invalid quantity. */
export function addWithoutReload(form) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const button = form.querySelector('[type=submit]');
    // Ignores clicks during a request, which would add the item twice.
    if (button.ariaBusy === 'true') return;
    button.ariaBusy = 'true';
    attempt(async () => {
      const cart = await changeCart('add', form.dataset.buy, form.elements.quantity.valueAsNumber);
      showCartCount(cart);
      // Without the drawer, a message says that the item is in the cart.
      const drawer = await import(document.querySelector('[data-drawer]').dataset.drawer).catch(() => null);
      if (drawer) drawer.openDrawer(cart);
      else showToast('Added to cart. ', element('a', { href: '/cart' }, 'View cart'));
    }).finally(() => { button.ariaBusy = null; });
  });
}

/** Makes the − and + buttons beside a number work. One listener on the document also covers elements that are added later. */
export function enableSteppers() {
  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-step]');
    const input = button?.closest('.stepper')?.querySelector('input');
    if (!input) return;
    if (Number(button.dataset.step) > 0) input.stepUp();
    else input.stepDown();
    input.dispatchEvent(new Event('change', { bubbles: true }));
  });
}
