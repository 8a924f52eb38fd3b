// Calls of edgefront's visitor API from a page of the shop.

/** A problem document of edgefront (RFC 9457), or a failed connection (`type` is `offline`). */
export class EdgeError extends Error {
  constructor({ type = 'urn:edgefront:unknown', status = 0, title, detail, field } = {}, cause) {
    super(detail ?? title ?? 'the request failed', { cause });
    /** `sold-out` of `urn:edgefront:sold-out`. */
    this.type = type.split(':').pop();
    Object.assign(this, { status, detail, field });
  }
}

export function createClient({ base = '/_edge/v1', fetch = (...request) => globalThis.fetch(...request) } = {}) {
  /**
   * Resolves with the response's JSON, or null without one. Retries once after a network error. A POST sends an
   * idempotency key, so the retry has no second effect.
   */
  async function request(path, method = 'GET', body, read = (answer) => answer) {
    const options = { method, headers: { accept: 'application/json' } };
    if (method === 'POST') options.headers['idempotency-key'] = crypto.randomUUID();
    if (body) {
      options.headers['content-type'] = 'application/json';
      options.body = JSON.stringify(body);
    }
    let response;
    try {
      response = await fetch(base + path, options).catch(() => fetch(base + path, options));
    } catch (error) {
      throw new EdgeError({ type: 'offline' }, error);
    }
    const answer = response.status === 204 ? null : await response.json().catch(() => null);
    if (!response.ok) throw new EdgeError(answer ?? { status: response.status });
    return read(answer, response);
  }

  const part = encodeURIComponent;
  const query = (values) => {
    const given = Object.entries(values).filter(([, value]) => value !== undefined);
    return given.length ? `?${new URLSearchParams(given)}` : '';
  };
  const send = (method, path) => request(path, method);
  return {
    request,
    session: () => request('/session'),
    signOut: () => send('DELETE', '/session'),
    devices: async () => (await request('/sessions')).sessions,
    signOutDevice: (id) => send('DELETE', `/sessions/${part(id)}`),
    signOutDevices: ({ exceptCurrent } = {}) => send('DELETE', `/sessions${exceptCurrent ? '?except=current' : ''}`),
    recent: async () => (await request('/recent')).items,
    cart: () => request('/cart'),
    addToCart: (id, quantity = 1) => request('/cart/items', 'POST', { id, quantity }),
    setInCart: (id, quantity) => request(`/cart/items/${part(id)}`, 'PUT', { quantity }),
    removeFromCart: (id) => send('DELETE', `/cart/items/${part(id)}`),
    emptyCart: () => send('DELETE', '/cart'),
    sale: (id) => request(`/flash/${part(id)}`),
    reserve: (id) => send('POST', `/flash/${part(id)}/reservations`),
    cancelReservation: (sale, id) => send('DELETE', `/flash/${part(sale)}/reservations/${part(id)}`),
    view: (item) => request('/views', 'POST', { item }),
    popular: async (options = {}) => (await request(`/popular${query(options)}`)).items,
    related: async (item, options = {}) => (await request(`/items/${part(item)}/related${query(options)}`)).items,
    stats: (item) => request(`/items/${part(item)}/stats`),
    /** `now`: the server's clock in milliseconds, or the visitor's without it. */
    rows: (ids) => request(`/rows?ids=${ids.map(part).join(',')}`, 'GET', undefined, ({ rows, no_copy: noCopy = [] }, response) => (
      { rows, noCopy, now: Date.parse(response.headers.get('date')) || Date.now() })),
  };
}
