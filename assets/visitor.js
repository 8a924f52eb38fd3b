// Pages of one visitor, except the cart: checkout, account and the forms.

import { showDevices, showRecent } from './shop/account.js';
import { enableReveal, focusFirstProblem, sendOnce } from './shop/forms.js';
import { showCountdown } from './shop/reservation.js';
import { forEach } from './shop/shared.js';

forEach('[data-devices]', showDevices);
forEach('[data-recently-viewed]', showRecent);
forEach('[data-seconds]', showCountdown);
forEach('[data-reveal]', enableReveal);
forEach('main form[method=post]', sendOnce);
focusFirstProblem();
