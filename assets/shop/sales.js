// Countdowns of the flash sales on the home page, by the server's clock. One call to the row cache covers all sales.

import { API } from './api.js';
import { formatDuration } from './flash.js';

const SECOND = 1000;

/** Replaces the times in the page with countdowns. A sale whose row is not cached keeps its time. */
export async function showSales(section) {
  const places = [...section.querySelectorAll('[data-sale]')];
  const ids = places.map((place) => encodeURIComponent(place.dataset.sale));
  const response = await fetch(`${API}/rows?ids=${ids.join(',')}`).catch(() => null);
  if (!response?.ok) return;
  const { rows } = await response.json();
  // The `Date` header has whole seconds, and so does the countdown.
  const clockOffset = (Date.parse(response.headers.get('Date')) || Date.now()) - performance.now();
  const show = () => {
    const now = performance.now() + clockOffset;
    for (const place of places) {
      const row = rows[place.dataset.sale];
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
