// The cart page.

import { changeInPlace } from './shop/cart.js';
import { focusFirstProblem } from './shop/forms.js';

changeInPlace();
focusFirstProblem();
