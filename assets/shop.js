// Adds live and personal data to cached pages: user, cart, popular products, stock. It comes from the edge's API.
// Without this script a page still works; only that data is missing.

import { showDevices } from './shop/account.js';
import { submitOnChange } from './shop/cart.js';
import { followSale, showCountdown, showLocalTime } from './shop/flash.js';
import { attempt } from './shop/page.js';
import { showPopular } from './shop/popular.js';
import { addWithoutReload, enableSteppers, showStock } from './shop/product.js';
import { showSales } from './shop/sales.js';
import { showSuggestions } from './shop/suggestions.js';
import { showVisitor } from './shop/visitor.js';

/** Runs `work` for each matching element. An error in one does not stop the others. */
const forEach = (selector, work) => document.querySelectorAll(selector).forEach((found) => attempt(async () => work(found)));

attempt(showVisitor);
// A page from the back/forward cache or a background tab may show an old user or cart.
window.addEventListener('pageshow', ({ persisted }) => persisted && attempt(showVisitor));
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && attempt(showVisitor));
enableSteppers();
forEach('[data-popular]', showPopular);
forEach('[data-line]', submitOnChange);
forEach('[data-devices]', showDevices);
forEach('[data-buy]', addWithoutReload);
forEach('[data-buy]', showStock);
forEach('[data-suggestions]', showSuggestions);
forEach('[data-time]', showLocalTime);
forEach('[data-sales]', showSales);
forEach('[data-seconds]', showCountdown);
forEach('[data-flash]', followSale);
