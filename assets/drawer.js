// Loaded by the first product that is added to the cart.

import { openDrawer } from './shop/drawer.js';

export { openDrawer };
