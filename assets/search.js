// Loaded by the first focus of the search field.

import { suggest } from './shop/search.js';

export { suggest };
