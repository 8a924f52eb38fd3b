// The account page.

import { attempt, cardItem, cards, edge, element, formatTime } from './shared.js';

/** Lists the devices where the user is signed in, each with a button to sign it out. */
export async function showDevices(list) {
  const sessions = await edge.devices();
  const device = ({ id, current, device: label, seen }) => {
    const name = label ?? 'Unknown device';
    const signOut = element('button', { type: 'button', className: 'plain', ariaLabel: `Sign out ${name}` }, 'Sign out');
    signOut.addEventListener('click', () => attempt(async () => {
      await edge.signOutDevice(id);
      if (current) location.assign('/');
      else await showDevices(list);
    }));
    const text = current ? `${name} (this device)` : `${name}, last active ${formatTime(seen * 1000)}`;
    return element('li', {}, element('span', {}, text), ' ', signOut);
  };
  list.replaceChildren(...sessions.map(device));
}

/** Shows the products that the visitor viewed last. */
export async function showRecent(section) {
  const ids = (await edge.recent()).slice(0, 8);
  const known = await cards(ids);
  section.querySelector('ul').replaceChildren(...ids.filter((id) => known.has(id)).map((id) => cardItem(known.get(id))));
  section.hidden = known.size === 0;
}
