// The checkout of a flash sale.

import { clock, formatDuration } from './shared.js';

const SECOND = 1000;

/** Counts down the reservation. The page is never cached, so its number of seconds is current and no clock needs to be right. */
export function showCountdown(timer) {
  const expires = clock() + timer.dataset.seconds * SECOND;
  const show = () => {
    const left = expires - clock();
    timer.textContent = left > 0 ? `Reserved for you for ${formatDuration(left)}.` : 'Your reservation has expired. Please reserve again on the sale page.';
    if (left > 0) setTimeout(show, SECOND);
  };
  show();
}
