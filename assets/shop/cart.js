// The cart page. A change shows at once. The server's answer then confirms it, or the page takes it back.

import { attempt, changeCart, formatMoney, showCartCount } from './shared.js';

/** Waits this many milliseconds for further clicks, so that three clicks on + send one request. */
const SUBMIT_DELAY = 300;

const main = () => document.querySelector('main');
const lines = () => [...document.querySelectorAll('.line[data-cents]:not([hidden])')];
const quantityOf = (line) => Number(line.querySelector('input[name=quantity]').value) || 0;

function announce(text) {
  document.querySelector('[data-announcement]').textContent = text;
}

/** Shows the prices and the number of pieces that the fields have now. */
function showTotals() {
  let total = 0;
  let pieces = 0;
  for (const line of lines()) {
    const [cents, quantity] = [Number(line.dataset.cents), quantityOf(line)];
    total += cents * quantity;
    pieces += quantity;
    showLine(line, formatMoney(cents * quantity, line.dataset.currency), quantity > 1 ? formatMoney(cents, line.dataset.currency) : '');
  }
  const { currency } = lines()[0]?.dataset ?? { currency: 'EUR' };
  for (const place of document.querySelectorAll('[data-total]')) place.textContent = formatMoney(total, currency);
  showCartCount({ quantity: pieces });
}

function showLine(line, price, unit) {
  line.querySelector('[data-price]').textContent = price;
  line.querySelector('[data-unit]').textContent = unit ? `${unit} each` : '';
}

/** Shows the server's cart. */
function confirm(cart) {
  for (const line of lines()) {
    const known = cart.lines.find(({ id }) => id === line.dataset.id);
    if (!known) line.remove();
    else {
      showLine(line, known.price ?? '', known.unit);
      showProblem(line, known.problem ?? '');
    }
  }
  for (const place of document.querySelectorAll('[data-total]')) place.textContent = cart.total;
  showCartCount(cart);
}

function explain(line, text) {
  line.querySelector('[data-problem]').textContent = text;
}

/** Explains why the quantity of a line is invalid. Without a text, it is valid. */
function showProblem(line, text) {
  explain(line, text);
  const input = line.querySelector('input[name=quantity]');
  if (text) input.setAttribute('aria-invalid', 'true');
  else input.removeAttribute('aria-invalid');
}

/** An empty cart has another page. The page is replaced in place, so the history does not grow. */
async function showEmpty() {
  const page = new DOMParser().parseFromString(await (await fetch('/cart')).text(), 'text/html');
  main().replaceChildren(...page.querySelector('main').childNodes);
  main().focus();
}

/** Changes are sent one after the other. */
let queue = Promise.resolve();
/** Changes that wait for further clicks. */
const waiting = new Set();
/** The field of the change that the server refused last. */
let refused = null;

function flush() {
  for (const send of [...waiting]) send();
}

/** The checkout shows the cart of the server, so it waits for the changes. If one is refused, the focus moves to its field. */
async function checkOut(event) {
  const link = event.target.closest('main a[href="/checkout"]');
  if (!link) return;
  event.preventDefault();
  refused = null;
  flush();
  await queue;
  const invalid = refused ?? document.querySelector('main [aria-invalid=true]');
  if (invalid) invalid.focus();
  else location.assign(link.href);
}

document.addEventListener('click', checkOut);
// The browser completes the requests after it leaves the page.
window.addEventListener('pagehide', flush);

/** Makes the form of a line work in place. */
export function changeInPlace(form) {
  const line = form.closest('.line');
  const input = form.elements.quantity;
  const { id } = line.dataset;
  const name = line.querySelector('.name').textContent;
  let confirmed = input.value;
  let timer;
  let pending = 0;

  async function send(quantity) {
    pending += 1;
    try {
      const cart = await changeCart('set', id, quantity);
      confirmed = String(quantity);
      pending -= 1;
      if (pending > 0) return;
      confirm(cart);
      announce(quantity > 0 ? `${name}: ${quantity}. Total ${cart.total}.` : `${name} removed. Total ${cart.total}.`);
      if (cart.lines.length === 0) await showEmpty();
    } catch (error) {
      pending -= 1;
      // Takes the change back: the quantity is valid again.
      line.hidden = false;
      input.value = confirmed;
      showTotals();
      explain(line, error.type === 'quantity' ? error.detail : '');
      refused = input;
      announce(error.detail ?? '');
      if (error.type !== 'quantity') throw error;
    }
  }

  const sendTyped = () => change(input.valueAsNumber);

  function change(quantity) {
    clearTimeout(timer);
    waiting.delete(sendTyped);
    showTotals();
    showProblem(line, '');
    queue = queue.then(() => attempt(() => send(quantity)));
  }

  input.addEventListener('change', () => {
    clearTimeout(timer);
    if (!form.checkValidity()) return form.reportValidity();
    showTotals();
    waiting.add(sendTyped);
    timer = setTimeout(sendTyped, SUBMIT_DELAY);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (event.submitter?.value !== 'remove') return change(input.valueAsNumber);
    const next = lines()[lines().indexOf(line) + 1] ?? lines()[lines().indexOf(line) - 1];
    line.hidden = true;
    (next?.querySelector('[value=remove]') ?? main()).focus({ preventScroll: true });
    change(0);
  });
}
