// Suggestions below the search field while a visitor types (WAI-ARIA combobox with a list box). The first focus of the field
// loads this file. Without it the form works.

import { element, picture, price } from './shared.js';

/** Waits this many milliseconds for the next letter. */
const TYPING_DELAY = 150;
const MIN_LETTERS = 2;

export function suggest(form) {
  const input = form.elements.q;
  const list = element('ul', { className: 'suggestions', id: 'suggestions', role: 'listbox', ariaLabel: 'Products', hidden: true });
  form.append(list);
  for (const [name, value] of Object.entries({ role: 'combobox', 'aria-autocomplete': 'list', 'aria-controls': list.id, 'aria-expanded': 'false' })) input.setAttribute(name, value);
  let active = -1;
  let timer;
  let newest = 0;

  const options = () => [...list.children];

  function show(isOpen) {
    list.hidden = !isOpen;
    input.setAttribute('aria-expanded', isOpen);
    if (!isOpen) activate(-1);
  }

  function activate(index) {
    active = index;
    options().forEach((option, place) => option.setAttribute('aria-selected', place === index));
    if (index < 0) input.removeAttribute('aria-activedescendant');
    else {
      input.setAttribute('aria-activedescendant', options()[index].id);
      options()[index].scrollIntoView({ block: 'nearest' });
    }
  }

  const open = (card) => location.assign(`/products/${encodeURIComponent(card.id)}`);

  async function load() {
    const text = input.value.trim();
    const request = ++newest;
    if (text.length < MIN_LETTERS) return show(false);
    const answer = await fetch(`/search.json?q=${encodeURIComponent(text)}`).catch(() => null);
    const { products } = answer?.ok ? await answer.json() : { products: [] };
    if (request !== newest) return;
    list.replaceChildren(...products.map((card, index) => {
      const option = element('li', { id: `suggestion-${index}`, role: 'option' }, picture(card),
        element('span', { className: 'name' }, card.name), card.stock === 0 ? element('span', { className: 'note' }, 'Sold out') : price(card));
      option.addEventListener('pointerdown', (event) => { event.preventDefault(); open(card); });
      option.card = card;
      return option;
    }));
    active = -1;
    show(products.length > 0 && document.activeElement === input);
  }

  input.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(load, TYPING_DELAY); });
  input.addEventListener('blur', () => show(false));
  input.addEventListener('keydown', (event) => {
    const count = options().length;
    if (event.key === 'Escape' && !list.hidden) { event.preventDefault(); show(false); }
    else if (event.key === 'Enter' && active >= 0) { event.preventDefault(); open(options()[active].card); }
    else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && count > 0) {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      // One place more than options: the text itself.
      const place = (active + 1 + step + count + 1) % (count + 1) - 1;
      show(true);
      activate(place);
    }
  });
  load();
}
