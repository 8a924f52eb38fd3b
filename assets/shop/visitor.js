// The header: who is here, and how much is in their cart.

import { API, call } from './api.js';

export function showCount({ quantity }) {
  document.querySelector('[data-cart-count]').textContent = quantity > 0 ? quantity : '';
}

/** Silent where it fails: "Sign in" and "Cart" still lead where they say. */
export async function showVisitor() {
  const { user, cart } = await call(`${API}/session`).catch(() => ({ user: null, cart: { quantity: 0 } }));
  showCount(cart);
  const account = document.querySelector('[data-account]');
  account.querySelector('span').textContent = user ? 'Account' : 'Sign in';
  account.href = user ? '/account' : '/login';
  account.title = user ? `Signed in as ${user}` : '';
}
