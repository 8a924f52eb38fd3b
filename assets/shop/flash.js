// A flash sale: countdown, remaining stock, and the visitor's reservation. The page is cached and the same for every
// visitor. One call of the edge's API returns all live data; it repeats every few seconds while the page is visible.

import { clock, createClient, errorMessage, formatDuration } from './shared.js';

const SECOND = 1000;

const edge = createClient({ fetch: (path, options) => fetch(path, { ...options, signal: AbortSignal.timeout(8 * SECOND) }) });

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
  // Null until the session is known.
  let isGuest = null;
  // Number of calls to reserve or to cancel that have returned, failed ones too.
  let changes = 0;

  const now = () => clock() + clockOffset;

  /**
   * Stores the sale from the API's answer. Drops an answer to a call that began before the visitor's last change, because it
   * may show the state before that change. Throws an EdgeError.
   */
  async function update(call) {
    const [started, changesBefore] = [clock(), changes];
    const answer = await call();
    const roundTrip = clock() - started;
    if (!answer || changes !== changesBefore) return;
    sale = answer;
    if (roundTrip <= shortestRoundTrip) [shortestRoundTrip, clockOffset] = [roundTrip, answer.now * SECOND + roundTrip / 2 - clock()];
  }

  const refresh = () => update(() => edge.sale(id));

  /** Learns whether the visitor is a guest. If the call fails, the next poll repeats it. */
  async function learnSession() {
    if (isGuest !== null) return;
    const session = await edge.session().catch(() => null);
    if (session) isGuest ??= session.user === null;
  }

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
    sold_out: () => ['Sold out', `0 of ${sale.pieces} left`],
    ended: () => ['The sale has ended', sale.left > 0 ? `${sale.left} of ${sale.pieces} were left` : 'All items were sold'],
  };

  /** What the visitor can do next. Never empty, so that the space below the buttons is no gap. */
  function advice(current) {
    const reservation = activeReservation();
    if (reservation) return `Reserved for you for ${formatDuration(reservation.until * SECOND - now())}.`;
    if (sale.bought) return 'You have bought this item.';
    switch (current) {
      case 'upcoming': return isGuest ? 'Sign in now, so that you can reserve as soon as the sale starts.' : 'Keep this page open: the button to reserve appears at the start.';
      case 'live': return 'A reservation holds one piece while you check out.';
      case 'sold_out': return sale.held > 0 ? `${sale.held} reserved by other customers. Expired reservations become available again.` : 'All items are sold.';
      default: return 'You can buy this item at its regular price.';
    }
  }

  /** A link for a visitor who cannot reserve. */
  function nextLink(current) {
    if (activeReservation()) return null;
    if (sale.bought) return { text: 'View your orders', href: '/account' };
    return ['sold_out', 'ended'].includes(current) ? { text: 'View at regular price', href: `/products/${encodeURIComponent(id)}` } : null;
  }

  /** Announces a change to screen readers, once. The page shows the state itself, so only a problem is visible. */
  function announce(text, isProblem = false) {
    if (text === announced) return;
    announced = text;
    part('announcement').textContent = text;
    part('announcement').className = isProblem ? 'note' : 'visually-hidden';
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
    part('quantity').textContent = sale.left;
    part('quantity').closest('div').hidden = current === 'ended';
    part('bar').max = sale.pieces;
    part('bar').value = sale.left;
    part('advice').textContent = advice(current);
    part('advice').classList.toggle('own', reservation !== null || sale.bought);
    const next = nextLink(current);
    part('next').hidden = next === null;
    if (next) [part('next').textContent, part('next').href] = [next.text, next.href];
    toggle(checkout, reservation !== null);
    toggle(cancel, reservation !== null);
    toggle(reserve, current === 'live' && !isGuest && !reservation && !sale.bought, reservation ? checkout : undefined);
    // A guest signs in first, before the start too.
    signIn.hidden = !isGuest || !['upcoming', 'live'].includes(current) || reservation !== null || sale.bought;
    part('calendar').hidden = current !== 'upcoming';
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
    try {
      await Promise.all([refresh(), learnSession()]);
      failures = 0;
      announceState();
    } catch (error) {
      failures += 1;
      if (failures > 1 || !sale) announce(errorMessage(error), true);
    }
    show();
    const interval = sale || failures > 0 ? pollInterval() : 3 * SECOND;
    clearTimeout(timer);
    // Jitter of up to half the interval keeps many open pages from polling together.
    if (!document.hidden && interval < Infinity) timer = setTimeout(poll, interval * (1 + Math.random() / 2));
  }

  /** Reserves or cancels, and announces the result. */
  async function act(button, call) {
    button.disabled = true;
    try {
      await update(call).finally(() => { changes += 1; });
      announceState();
    } catch (error) {
      if (error.type === 'sign-in') {
        isGuest = true;
        signIn.hidden = false;
        signIn.focus();
      }
      await refresh().catch(() => {});
      announce(errorMessage(error), true);
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
