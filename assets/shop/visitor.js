// The page header: sign-in state and cart count.

import { edge } from './api.js';

export function showCartCount({ quantity }) {
  document.querySelector('[data-cart-count]').textContent = quantity > 0 ? quantity : '';
}

/** Shows user and cart count. Shows no error: the links "Sign in" and "Cart" work without them. */
export async function showVisitor() {
  const { user, cart } = await edge.session().catch(() => ({ user: null, cart: { quantity: 0 } }));
  showCartCount(cart);
  const account = document.querySelector('[data-account]');
  // The same name as on pages that are rendered for the visitor.
  const name = user?.split('@')[0];
  account.querySelector('span').textContent = name ?? 'Sign in';
  account.href = user ? '/account' : '/login';
  account.ariaLabel = user ? `Account: ${name}` : null;
  account.title = user ? `Signed in as ${user}` : '';
}
