// The page of a flash sale.

import { followSale } from './shop/flash.js';
import { forEach } from './shop/shared.js';

forEach('[data-flash]', followSale);
