// The cart page. A change shows at once. The server's answer then confirms it, or the page takes it back.

import { attempt, changeCart, forEach, formatMoney, showCartCount } from './shared.js';

/** Waits this many milliseconds for further clicks, so that three clicks on + send one request. */
const SUBMIT_DELAY = 300;

const main = () => document.querySelector('main');
const CONTROLS = 'button, input:not([type=hidden])';
const lines = () => [...document.querySelectorAll('.line[data-cents]:not([hidden])')];
const quantityOf = (line) => Number(line.querySelector('input[name=quantity]').value) || 0;

function announce(text) {
  const place = document.querySelector('[data-announcement]');
  if (place) place.textContent = text;
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

/** Lines and quantities of a cart page. */
const content = (page) => [...page.querySelectorAll('.line')].map((line) => `${line.id} ${quantityOf(line)}`).join();

/**
 * Shows the server's page in place, so the history does not grow: an empty cart has another page, and another tab may have
 * added lines. The focus stays at its control if the new page has it.
 */
async function update() {
  const answer = await fetch('/cart').catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  // The answer to the last of several changes is newer.
  if (waiting.size > 0 || queued > 0 || content(page) === content(document)) return;
  const focused = document.activeElement;
  const line = focused.closest('.line');
  const place = line ? [...line.querySelectorAll(CONTROLS)].indexOf(focused) : -1;
  const hadFocus = main().contains(focused);
  main().replaceChildren(...page.querySelector('main').childNodes);
  activate();
  const control = document.getElementById(line?.id)?.querySelectorAll(CONTROLS)[place];
  if (hadFocus) (control ?? main()).focus({ preventScroll: true });
}

const isShown = ({ id }) => lines().some((line) => line.dataset.id === id);

/** Changes are sent one after the other. */
let queue = Promise.resolve();
/** The number of changes in the queue that are not sent yet. */
let queued = 0;
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

/** Makes the cart page work in place. */
export function changeInPlace() {
  document.addEventListener('click', checkOut);
  // The browser completes the requests after it leaves the page.
  window.addEventListener('pagehide', flush);
  // The visitor comes back from another tab.
  document.addEventListener('visibilitychange', () => { if (!document.hidden) queue = queue.then(update); });
  activate();
}

const activate = () => forEach('[data-line]', activateLine);

function activateLine(form) {
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
      if (cart.lines.length === 0 || !cart.lines.every(isShown)) await update();
      announce(quantity > 0 ? `${name}: ${quantity}. Total ${cart.total}.` : `${name} removed. Total ${cart.total}.`);
    } catch (error) {
      pending -= 1;
      // Takes the change back: the quantity is valid again.
      if (line.hidden) {
        line.hidden = false;
        form.querySelector('[value=remove]').focus({ preventScroll: true });
      }
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
    queued += 1;
    queue = queue.then(() => {
      queued -= 1;
      return attempt(() => send(quantity));
    });
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
