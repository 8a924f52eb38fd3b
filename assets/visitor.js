// Pages of one visitor: cart, checkout, account and the forms.

import { showDevices, showRecent } from './shop/account.js';
import { changeInPlace } from './shop/cart.js';
import { showCountdown } from './shop/countdown.js';
import { enableReveal, focusFirstProblem } from './shop/forms.js';
import { forEach } from './shop/page.js';

forEach('[data-line]', changeInPlace);
forEach('[data-devices]', showDevices);
forEach('[data-recently-viewed]', showRecent);
forEach('[data-seconds]', showCountdown);
forEach('[data-reveal]', enableReveal);
focusFirstProblem();
