// The cart beside the page, after a product was added.

import { element, picture, showToast } from './shared.js';

/** Opens the cart. Escape, the button and a click beside it close it; the browser then moves the focus back. */
export function openDrawer(cart) {
  document.querySelector('.drawer')?.remove();
  const close = element('button', { type: 'button', className: 'plain', ariaLabel: 'Close' }, '×');
  const lines = cart.lines.map((line) => element('li', { className: 'drawer-line' }, picture({ picture: line.picture ?? 'parcel', tone: line.tone ?? 'oat' }),
    element('span', { className: 'name' }, line.name), element('span', { className: 'note' }, `× ${line.quantity}`), element('span', { className: 'price' }, line.price ?? '')));
  const drawer = element('dialog', { className: 'drawer' },
    element('div', { className: 'drawer-head' }, element('h2', { id: 'drawer' }, 'Added to cart'), close),
    element('ul', { tabIndex: 0, ariaLabel: 'Items' }, ...lines),
    element('p', { className: 'drawer-total' }, 'Total ', element('strong', {}, cart.total)),
    element('a', { className: 'button', href: '/checkout' }, 'Checkout'),
    element('a', { className: 'button secondary', href: '/cart' }, 'View cart'));
  drawer.setAttribute('aria-labelledby', 'drawer');
  close.addEventListener('click', () => drawer.close());
  drawer.addEventListener('click', ({ target }) => target === drawer && drawer.close());
  document.body.append(drawer);
  // An earlier message would lie behind the drawer.
  showToast();
  drawer.showModal();
}
