// A flash sale: the countdown, what is left, and the visitor's own piece. The page is the same for everybody and cached; all of
// this comes from one call of the edge's API, asked again every few seconds while somebody looks.

import { API } from './api.js';

const SECOND = 1000;

/** Milliseconds that no change of the visitor's clock moves. */
const clock = () => performance.now();

/** `3 d 04:05:06`, `04:05:06` or `5:06`. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / SECOND));
  const two = (number) => String(number).padStart(2, '0');
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days === 0 && hours === 0) return `${minutes}:${two(seconds % 60)}`;
  return `${days > 0 ? `${days} d ` : ''}${two(hours)}:${two(minutes)}:${two(seconds % 60)}`;
}

/** A time in the visitor's own time zone and words. */
export function showTime(time) {
  time.textContent = new Date(time.dataset.time * SECOND).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}

/** The checkout: how long the piece is still held. The page was made for this visitor just now, so no clock needs to be right. */
export function countDown(timer) {
  const ends = clock() + timer.dataset.seconds * SECOND;
  const show = () => {
    const left = ends - clock();
    timer.textContent = left > 0 ? `Your piece is held for another ${span(left)}.` : 'The time for your piece is over.';
    if (left > 0) setTimeout(show, SECOND);
  };
  show();
}

/** The sale's own page. */
export function followSale(place) {
  const api = `${API}/flash/${encodeURIComponent(place.dataset.flash)}`;
  const part = (name) => place.querySelector(`[data-${name}]`);
  const [reserve, checkout, cancel, signIn] = ['reserve', 'checkout', 'cancel', 'sign-in'].map(part);
  // Without a piece it leads nowhere, so the page has no address for it.
  checkout.href = `/flash/${encodeURIComponent(place.dataset.flash)}/checkout`;
  let sale = null;
  // The server's clock less ours; of all answers the one that took the shortest time knows it best (Cristian 1989): it is
  // wrong by half that time at most.
  let ahead = 0;
  let shortest = Infinity;
  let failures = 0;
  let timer;
  let said = '';

  const now = () => clock() + ahead;

  /** Asks, and learns from the answer; throws what a visitor can read. */
  async function ask(path = '', method = 'GET') {
    const began = clock();
    let response;
    try {
      response = await fetch(api + path, { method, headers: { Accept: 'application/json' }, signal: AbortSignal.timeout(8 * SECOND) });
    } catch {
      throw new Error('No connection. We keep trying.');
    }
    const took = clock() - began;
    const answer = response.status === 204 ? null : await response.json().catch(() => null);
    if (!response.ok) {
      const problem = new Error(answer?.detail ? `Sorry: ${answer.detail}.` : 'This did not work. Please try again.');
      throw Object.assign(problem, { kind: answer?.type?.split(':').pop() });
    }
    if (!answer) return;
    sale = answer;
    if (took <= shortest) [shortest, ahead] = [took, answer.now + took / 2 - clock()];
  }

  /** Between two answers the clock goes on: a sale begins and ends on every screen at its second. */
  function state() {
    if (now() < sale.starts * SECOND) return 'upcoming';
    if (now() >= sale.ends * SECOND) return 'ended';
    return sale.left === 0 ? 'sold_out' : 'live';
  }

  const mine = () => (sale.reservation && sale.reservation.until * SECOND > now() ? sale.reservation : null);

  const WORDS = {
    upcoming: () => ['Starts in', `${sale.pieces} pieces`],
    live: () => ['Ends in', `${sale.left} of ${sale.pieces} left`],
    sold_out: () => ['Sold out', sale.held > 0 ? `${sale.held} held for somebody: what they do not buy comes back here` : 'All pieces are sold'],
    ended: () => ['The sale is over', ''],
  };

  /** Tells who listens what has changed, once. */
  function say(text) {
    if (text === said) return;
    said = text;
    part('news').textContent = text;
  }

  /** Shows or hides; what had the focus and goes passes it on to `next`. */
  function toggle(element, shows, next) {
    const hadFocus = !shows && element === document.activeElement;
    element.hidden = !shows;
    if (hadFocus) next?.focus();
  }

  function show() {
    if (!sale) return;
    const [current, held] = [state(), mine()];
    const [phase, left] = WORDS[current]();
    const target = { upcoming: sale.starts, live: sale.ends }[current];
    place.dataset.state = current;
    part('phase').textContent = phase;
    part('countdown').textContent = target ? span(target * SECOND - now()) : '';
    part('left').textContent = left;
    part('bar').max = sale.pieces;
    part('bar').value = sale.left;
    part('mine').textContent = held ? `One piece is held for you for another ${span(held.until * SECOND - now())}.` : sale.bought ? 'You have bought one.' : '';
    toggle(checkout, held !== null);
    toggle(cancel, held !== null);
    toggle(reserve, current === 'live' && !held && !sale.bought, held ? checkout : undefined);
    if (held || sale.bought) signIn.hidden = true;
  }

  /** Words that are worth an interruption: a state that is new, not a number that ticks. */
  function announce() {
    const words = { upcoming: '', live: 'The sale runs.', sold_out: 'Sold out.', ended: 'The sale is over.' };
    say(mine() ? 'One piece is held for you. Check out before its time is over.' : sale.bought ? 'You have bought one.' : words[state()]);
  }

  /** When to ask again. Many look at one page: each adds up to half of it, so that they do not ask together. */
  function pause() {
    if (failures > 0) return Math.min(30, 2 ** failures) * SECOND;
    const current = state();
    if (current === 'ended') return mine() ? 5 * SECOND : Infinity;
    const starts = sale.starts * SECOND - now();
    return current === 'upcoming' && starts > 20 * SECOND ? Math.min(20 * SECOND, starts - 10 * SECOND) : 3 * SECOND;
  }

  async function poll() {
    clearTimeout(timer);
    try {
      await ask();
      failures = 0;
      announce();
    } catch (error) {
      failures += 1;
      if (failures > 1 || !sale) say(error.message);
    }
    show();
    const wait = sale || failures > 0 ? pause() : 3 * SECOND;
    if (!document.hidden && wait < Infinity) timer = setTimeout(poll, wait * (1 + Math.random() / 2));
  }

  /** Does what the visitor asked for, and says what came of it. */
  async function act(button, path, method) {
    button.disabled = true;
    try {
      await ask(path, method);
      if (method === 'DELETE') await ask();
      announce();
    } catch (error) {
      if (error.kind === 'sign-in') {
        signIn.hidden = false;
        signIn.focus();
      }
      await ask().catch(() => {});
      say(error.message);
    }
    button.disabled = false;
    show();
  }

  reserve.addEventListener('click', () => act(reserve, '/reservations', 'POST'));
  cancel.addEventListener('click', () => {
    const held = mine();
    if (held) act(cancel, `/reservations/${encodeURIComponent(held.id)}`, 'DELETE').then(() => reserve.focus());
  });
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    // A machine that slept has lost its sense of time.
    shortest = Infinity;
    if (!document.hidden) poll();
  });
  setInterval(() => { if (!document.hidden) show(); }, SECOND);
  poll();
}
