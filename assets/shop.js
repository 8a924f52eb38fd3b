// Adds live and personal data to cached pages: user, cart, popular products, stock. It comes from the edge's API.
// Without this script a page still works; only that data is missing.

import { showLocalTime } from './shop/countdown.js';
import { attempt, forEach } from './shop/page.js';
import { showPopular } from './shop/popular.js';
import { addWithoutReload, enableSteppers, showStock } from './shop/product.js';
import { showSales } from './shop/sales.js';
import { showSuggestions } from './shop/suggestions.js';
import { showVisitor } from './shop/visitor.js';

// shop/shared.js passes these on to the other scripts of a page.
export { cards, changeCart, createClient, edge, errorMessage } from './shop/api.js';
export { clock, formatDuration, formatTime } from './shop/countdown.js';
export { attempt, cardItem, element, forEach, formatMoney, picture, price, showToast } from './shop/page.js';
export { showCartCount } from './shop/visitor.js';

attempt(showVisitor);
// A page from the back/forward cache or a background tab may show an old user or cart.
window.addEventListener('pageshow', ({ persisted }) => persisted && attempt(showVisitor));
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && attempt(showVisitor));
enableSteppers();
forEach('[data-popular]', showPopular);
forEach('[data-buy]', addWithoutReload);
forEach('[data-buy]', showStock);
forEach('[data-suggestions]', showSuggestions);
forEach('[data-time]', showLocalTime);
forEach('[data-sales]', showSales);
// Code for one use is loaded by its first use.
forEach('[data-search]', (form) => form.elements.q.addEventListener('focus', () => import(form.dataset.search).then(({ suggest }) => suggest(form), () => {}), { once: true }));
// A changed filter applies at once. The button is for visitors without JavaScript.
forEach('[data-filters]', (form) => {
  form.querySelector('[type=submit]').hidden = true;
  form.addEventListener('change', () => form.requestSubmit());
});
