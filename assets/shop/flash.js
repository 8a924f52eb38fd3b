// A flash sale: countdown, remaining stock, and the visitor's reservation. The page is cached and the same for every
// visitor. One call of the edge's API returns all live data; it repeats every few seconds while the page is visible.

import { createClient, errorMessage } from './api.js';

const SECOND = 1000;

const edge = createClient({ fetch: (path, options) => fetch(path, { ...options, signal: AbortSignal.timeout(8 * SECOND) }) });

/** Monotonic time in milliseconds: changes of the visitor's clock do not affect it. */
const clock = () => performance.now();

/** Formats a duration: `3 d 04:05:06`, `04:05:06` or `5:06`. */
export function formatDuration(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / SECOND));
  const two = (number) => String(number).padStart(2, '0');
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days === 0 && hours === 0) return `${minutes}:${two(seconds % 60)}`;
  return `${days > 0 ? `${days} d ` : ''}${two(hours)}:${two(minutes)}:${two(seconds % 60)}`;
}

/** Shows a time in the visitor's time zone and language. */
export function showLocalTime(time) {
  time.textContent = new Date(time.dataset.time * SECOND).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}

/** Checkout: counts down the reservation. The page is never cached, so its number of seconds is current and no clock needs to be right. */
export function showCountdown(timer) {
  const expires = clock() + timer.dataset.seconds * SECOND;
  const show = () => {
    const left = expires - clock();
    timer.textContent = left > 0 ? `Reserved for you for ${formatDuration(left)}.` : 'Your reservation has expired. Please reserve again on the sale page.';
    if (left > 0) setTimeout(show, SECOND);
  };
  show();
}

/** The page of a sale. */
export function followSale(container) {
  const id = container.dataset.flash;
  const part = (name) => container.querySelector(`[data-${name}]`);
  const [reserve, checkout, cancel, signIn] = ['reserve', 'checkout', 'cancel', 'sign-in'].map(part);
  // Only a reservation opens the checkout, so the cached page has no link to it.
  checkout.href = `/flash/${encodeURIComponent(id)}/checkout`;
  let sale = null;
  // Offset of the server's clock. The response with the shortest round trip gives the best estimate (Cristian 1989):
  // its error is at most half that time.
  let clockOffset = 0;
  let shortestRoundTrip = Infinity;
  let failures = 0;
  let timer;
  let announced = '';

  const now = () => clock() + clockOffset;

  /** Stores the sale that a call of the API answers with. Throws an EdgeError. */
  async function update(call) {
    const started = clock();
    const answer = await call();
    const roundTrip = clock() - started;
    if (!answer) return;
    sale = answer;
    if (roundTrip <= shortestRoundTrip) [shortestRoundTrip, clockOffset] = [roundTrip, answer.now * SECOND + roundTrip / 2 - clock()];
  }

  const refresh = () => update(() => edge.sale(id));

  /** The state by the server's clock, so that the sale starts and ends on time between two responses. */
  function state() {
    if (now() < sale.starts * SECOND) return 'upcoming';
    if (now() >= sale.ends * SECOND) return 'ended';
    return sale.left === 0 ? 'sold_out' : 'live';
  }

  const activeReservation = () => (sale.reservation && sale.reservation.until * SECOND > now() ? sale.reservation : null);

  /** Headline and stock by state. */
  const TEXTS = {
    upcoming: () => ['Starts in', `${sale.pieces} available`],
    live: () => ['Ends in', `${sale.left} of ${sale.pieces} left`],
    sold_out: () => ['Sold out', sale.held > 0 ? `${sale.held} reserved by other customers. Expired reservations become available again.` : 'All items are sold.'],
    ended: () => ['The sale has ended', ''],
  };

  /** Announces a change to screen readers, once. */
  function announce(text) {
    if (text === announced) return;
    announced = text;
    part('announcement').textContent = text;
  }

  /** Shows or hides `element`. If a hidden element had the focus, `next` gets it. */
  function toggle(element, isShown, next) {
    const hadFocus = !isShown && element === document.activeElement;
    element.hidden = !isShown;
    if (hadFocus) next?.focus();
  }

  function show() {
    if (!sale) return;
    const [current, reservation] = [state(), activeReservation()];
    const [phase, left] = TEXTS[current]();
    const target = { upcoming: sale.starts, live: sale.ends }[current];
    container.dataset.state = current;
    part('phase').textContent = phase;
    part('countdown').textContent = target ? formatDuration(target * SECOND - now()) : '';
    part('left').textContent = left;
    part('bar').max = sale.pieces;
    part('bar').value = sale.left;
    part('own-reservation').textContent = reservation ? `Reserved for you for ${formatDuration(reservation.until * SECOND - now())}.`
      : sale.bought ? 'You have bought this item.' : '';
    toggle(checkout, reservation !== null);
    toggle(cancel, reservation !== null);
    toggle(reserve, current === 'live' && !reservation && !sale.bought, reservation ? checkout : undefined);
    if (reservation || sale.bought) signIn.hidden = true;
  }

  /** Announces a new state, but not each tick of a number. */
  function announceState() {
    const texts = { upcoming: '', live: 'The sale is on.', sold_out: 'Sold out.', ended: 'The sale has ended.' };
    announce(activeReservation() ? 'Reserved for you. Check out before the time runs out.' : sale.bought ? 'You have bought this item.' : texts[state()]);
  }

  /** Milliseconds until the next request, before jitter. */
  function pollInterval() {
    if (failures > 0) return Math.min(30, 2 ** failures) * SECOND;
    const current = state();
    if (current === 'ended') return activeReservation() ? 5 * SECOND : Infinity;
    const untilStart = sale.starts * SECOND - now();
    return current === 'upcoming' && untilStart > 20 * SECOND ? Math.min(20 * SECOND, untilStart - 10 * SECOND) : 3 * SECOND;
  }

  async function poll() {
    clearTimeout(timer);
    try {
      await refresh();
      failures = 0;
      announceState();
    } catch (error) {
      failures += 1;
      if (failures > 1 || !sale) announce(errorMessage(error));
    }
    show();
    const interval = sale || failures > 0 ? pollInterval() : 3 * SECOND;
    // Jitter of up to half the interval keeps many open pages from polling together.
    if (!document.hidden && interval < Infinity) timer = setTimeout(poll, interval * (1 + Math.random() / 2));
  }

  /** Reserves or cancels, and announces the result. */
  async function act(button, call) {
    button.disabled = true;
    try {
      await update(call);
      announceState();
    } catch (error) {
      if (error.type === 'sign-in') {
        signIn.hidden = false;
        signIn.focus();
      }
      await refresh().catch(() => {});
      announce(errorMessage(error));
    }
    button.disabled = false;
    show();
  }

  reserve.addEventListener('click', () => act(reserve, () => edge.reserve(id)));
  cancel.addEventListener('click', () => {
    const reservation = activeReservation();
    const call = () => edge.cancelReservation(id, reservation.id).then(() => edge.sale(id));
    if (reservation) act(cancel, call).then(() => reserve.focus());
  });
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    // The monotonic clock may stop while a machine sleeps, so the offset is measured again.
    shortestRoundTrip = Infinity;
    if (!document.hidden) poll();
  });
  setInterval(() => { if (!document.hidden) show(); }, SECOND);
  poll();
}
