// The flash sales on the home page: when they begin and end, on the server's time. One call for all of them, answered by the row cache.

import { API } from './api.js';
import { span } from './flash.js';

const SECOND = 1000;

/** Where a row is not kept there, the times that the page came with stay. */
export async function showSales(section) {
  const places = [...section.querySelectorAll('[data-sale]')];
  const ids = places.map((place) => encodeURIComponent(place.dataset.sale));
  const response = await fetch(`${API}/rows?ids=${ids.join(',')}`).catch(() => null);
  if (!response?.ok) return;
  const { rows } = await response.json();
  // To the second, which is what is shown.
  const ahead = (Date.parse(response.headers.get('Date')) || Date.now()) - performance.now();
  const show = () => {
    const now = performance.now() + ahead;
    for (const place of places) {
      const row = rows[place.dataset.sale];
      if (row) place.textContent = words(row, now);
    }
    setTimeout(show, SECOND);
  };
  show();
}

function words({ sale_starts_at: starts, sale_ends_at: ends, sale_pieces: pieces, sale_sold: sold }, now) {
  if (now < starts * SECOND) return `Starts in ${span(starts * SECOND - now)}`;
  if (now >= ends * SECOND) return 'The sale is over';
  return sold < pieces ? `Ends in ${span(ends * SECOND - now)}` : 'Sold out';
}
