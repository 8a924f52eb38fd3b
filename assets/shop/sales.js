// Countdowns of the flash sales on the home page, by the server's clock. One call to the row cache covers all sales.

import { edge } from './api.js';
import { formatDuration } from './countdown.js';

const SECOND = 1000;

/** Replaces the times in the page with countdowns. A sale whose row is not cached keeps its time. */
export async function showSales(section) {
  const places = [...section.querySelectorAll('[data-sale]')];
  const answer = await edge.rows(places.map((place) => place.dataset.sale)).catch(() => null);
  if (!answer) return;
  // The first place belongs to the sale whose stock the page shows.
  const first = answer.rows[places[0].dataset.sale];
  if (first) section.querySelector('[data-stock]').textContent = first.sale_pieces - first.sale_sold;
  // The `Date` header has whole seconds, and so does the countdown.
  const clockOffset = answer.now - performance.now();
  const show = () => {
    const now = performance.now() + clockOffset;
    for (const place of places) {
      const row = answer.rows[place.dataset.sale];
      if (row) place.textContent = saleText(row, now);
    }
    setTimeout(show, SECOND);
  };
  show();
}

function saleText({ sale_starts_at: starts, sale_ends_at: ends, sale_pieces: pieces, sale_sold: sold }, now) {
  if (now < starts * SECOND) return `Starts in ${formatDuration(starts * SECOND - now)}`;
  if (now >= ends * SECOND) return 'The sale has ended';
  return sold < pieces ? `Ends in ${formatDuration(ends * SECOND - now)}` : 'Sold out';
}
