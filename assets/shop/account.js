// The account's page.

import { API, call } from './api.js';
import { attempt, element } from './page.js';

const when = new Intl.DateTimeFormat('en-IE', { dateStyle: 'medium', timeStyle: 'short' });

/** Where the visitor is signed in, each with a way to end it. */
export async function showDevices(list) {
  const { sessions } = await call(`${API}/sessions`);
  const device = ({ id, current, device: name, seen }) => {
    const known = name ?? 'Unknown device';
    const end = element('button', { type: 'button', className: 'plain', ariaLabel: `Sign out ${known}` }, 'Sign out');
    end.addEventListener('click', () => attempt(async () => {
      await call(`${API}/sessions/${encodeURIComponent(id)}`, 'DELETE');
      if (current) location.assign('/');
      else await showDevices(list);
    }));
    const text = current ? `${known}, this one` : `${known}, last seen ${when.format(seen * 1000)}`;
    return element('li', {}, element('span', {}, text), ' ', end);
  };
  list.replaceChildren(...sessions.map(device));
}
