// Fills in what a cached page cannot know: who is here, their cart, what is popular, what is in stock.
// Everything goes through the edge's API. A page without this script is complete but for these.

import { showDevices } from './shop/account.js';
import { prepareLine } from './shop/cart.js';
import { countDown, followSale, showTime } from './shop/flash.js';
import { attempt } from './shop/page.js';
import { showPopular } from './shop/popular.js';
import { prepareBuying, prepareSteppers, showStock } from './shop/product.js';
import { showSales } from './shop/sales.js';
import { showSuggestions } from './shop/suggestions.js';
import { showVisitor } from './shop/visitor.js';

/** Does `work` for each element that asks for it; where one fails the others go on. */
const forEach = (selector, work) => document.querySelectorAll(selector).forEach((found) => attempt(async () => work(found)));

attempt(showVisitor);
// A page that the browser kept, or that was out of sight, may show who was here, or what was in the cart.
window.addEventListener('pageshow', ({ persisted }) => persisted && attempt(showVisitor));
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && attempt(showVisitor));
prepareSteppers();
forEach('[data-popular]', showPopular);
forEach('[data-line]', prepareLine);
forEach('[data-devices]', showDevices);
forEach('[data-buy]', prepareBuying);
forEach('[data-buy]', showStock);
forEach('[data-suggestions]', showSuggestions);
forEach('[data-time]', showTime);
forEach('[data-sales]', showSales);
forEach('[data-seconds]', countDown);
forEach('[data-flash]', followSale);
