// Pages of one visitor: cart, checkout, account and the forms.

import { showDevices, showRecent } from './shop/account.js';
import { changeInPlace } from './shop/cart.js';
import { enableReveal, focusFirstProblem } from './shop/forms.js';
import { showCountdown } from './shop/reservation.js';
import { forEach } from './shop/shared.js';

forEach('[data-line]', changeInPlace);
forEach('[data-devices]', showDevices);
forEach('[data-recently-viewed]', showRecent);
forEach('[data-seconds]', showCountdown);
forEach('[data-reveal]', enableReveal);
focusFirstProblem();
