// One request as edgefront describes it, and the directives of its response.

const ITEM = /^(?!\.\.?$)[A-Za-z0-9._~-]{1,64}$/;
const USER = /^(?!\.\.?$)[!#-+\--[\]-z|~]{1,128}$/;
const TAG = /^(?!\.\.?$)[!-+\--~]{1,64}$/;
const HOST = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$/;
const ADDRESS = /^[0-9A-Fa-f:.]{2,45}$/;
// `Edge_User` and `Edge.User` count: CGI reads them as `Edge-User`.
const EDGE = /^edge(?![a-z0-9])/i;
const PROXY = /^(x[-_]forwarded([-_].*)?|forwarded|x[-_]real[-_]ip)$/i;
const SESSIONS = ['user', 'guest', 'none', 'unknown'];
const PERSONAL = ['edge-login', 'edge-logout', 'edge-cart', 'edge-order'];
const MAX_TAGS = 32;
const MAX_OPERATIONS = 100;
const MAX_ORDER_ITEMS = 500;

export const isItem = (text) => ITEM.test(text);
export const isTag = (text) => TAG.test(text);

/** Returns whether a header is believed only with the right key. */
export const isClaim = (name) => EDGE.test(name) || PROXY.test(name);

/** The request has no right `Edge-Key` (403), or breaks the contract (400). */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The origin's key, or a list of keys during a rotation. */
export class Keys {
  #keys;

  constructor(keys) {
    this.#keys = [keys].flat().map((key) => new TextEncoder().encode(key ?? ''));
    if (this.#keys.length === 0 || this.#keys.some((key) => key.length < 16)) {
      throw new TypeError('ORIGIN_KEY must have at least 16 characters');
    }
  }

  /** Compares in a time that depends on the lengths only. */
  match(key) {
    const given = new TextEncoder().encode(key ?? '');
    let isRight = false;
    for (const own of this.#keys) {
      let difference = own.length ^ given.length;
      for (let i = 0; i < own.length; i += 1) difference |= own[i] ^ (given[i] ?? 0);
      isRight = difference === 0 || isRight;
    }
    return isRight;
  }
}

const checked = (pattern, name, value) => {
  const text = String(value);
  if (!pattern.test(text)) throw new TypeError(`${name} is not valid for edgefront: ${JSON.stringify(text)}`);
  return text;
};
const quantityOf = (value, least) => {
  if (!Number.isSafeInteger(value) || value < least) throw new TypeError(`quantity must be a whole number, at least ${least}`);
  return value;
};
/** ASCII only, so the text always is a header value. */
const json = (value) => JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

function readObject(name, text) {
  if (text === undefined) return null;
  try {
    const value = JSON.parse(text);
    if (value && typeof value === 'object' && !Array.isArray(value)) return value;
  } catch { /* refused below */ }
  throw new Refused(400, `${name} is not valid`);
}

export class Edge {
  /** True if the request came through edgefront. */
  verified = false;
  /** True if the request is a shared render: it has no visitor. */
  shared = false;
  session = null;
  user = null;
  cartItems = null;
  reservation = null;
  address = null;
  host = null;
  scheme = null;
  /** Names for a purge after the response. */
  purges = [];
  #operations = [];
  #headers = new Map();
  #tags = new Set();
  #share = null;
  #touched = null;
  #service = null;

  /** Reads `[name, value]` pairs. Throws `Refused`. */
  static read(headers, keys) {
    const claims = {};
    for (const [given, value] of headers) {
      const name = given.toLowerCase();
      if (!isClaim(name)) continue;
      // edgefront sends one header of each name; proxies behind it may add lines about the client.
      if (name in claims && EDGE.test(name)) throw new Refused(403, `two headers ${name}`);
      claims[name] = name in claims ? '' : value;
    }
    if (!keys.match(claims['edge-key'])) throw new Refused(403, 'This address answers edgefront only.');
    const edge = new Edge();
    edge.verified = true;
    const { 'x-forwarded-host': host = '', 'x-forwarded-proto': scheme, 'x-real-ip': address = '' } = claims;
    if (HOST.test(host)) edge.host = host;
    if (scheme === 'http' || scheme === 'https') edge.scheme = scheme;
    if (ADDRESS.test(address)) edge.address = address;
    if ('edge-shared' in claims) {
      edge.shared = true;
      return edge;
    }
    edge.session = claims['edge-session'] ?? null;
    if (edge.session !== null && !SESSIONS.includes(edge.session)) throw new Refused(400, 'Edge-Session is not valid');
    if (edge.session === 'user') {
      edge.user = claims['edge-user'] ?? '';
      if (!USER.test(edge.user)) throw new Refused(400, 'Edge-User is not valid');
    }
    const cart = readObject('Edge-Cart', claims['edge-cart']);
    const isLine = ([item, quantity]) => isItem(item) && Number.isSafeInteger(quantity) && quantity > 0;
    if (cart && !Object.entries(cart).every(isLine)) throw new Refused(400, 'Edge-Cart is not valid');
    edge.cartItems = cart;
    edge.reservation = readObject('Edge-Reservation', claims['edge-reservation']);
    return edge;
  }

  login(user) {
    this.#headers.set('edge-login', checked(USER, 'user', user));
  }

  /**
   * Ends the visitor's session, all sessions of its user, or all sessions of the named `user`. The last call counts. A named
   * user wins over a login, because edgefront would execute the login only.
   */
  logout({ everywhere = false, user } = {}) {
    if (user !== undefined) this.#headers.set('edge-logout', `user=${checked(USER, 'user', user)}`);
    else if (this.user === null || this.#headers.get('edge-logout') !== `user=${this.user}`) this.#headers.set('edge-logout', everywhere ? 'all' : '1');
  }

  /** `inCart: false` leaves the cart alone, such as for a piece of a flash sale. */
  order(orderId, items, reservation, { inCart = true } = {}) {
    const entries = Object.entries(items);
    if (entries.length < 1 || entries.length > MAX_ORDER_ITEMS) throw new TypeError('an order has 1 to 500 items');
    const lines = entries.map(([item, quantity]) => ({ id: checked(ITEM, 'item', item), quantity: quantityOf(quantity, 1) }));
    this.#headers.set('edge-order', json({ order_id: checked(ITEM, 'order_id', orderId), items: lines, in_cart: inCart ? undefined : false, reservation }));
  }

  item(item) {
    this.#headers.set('edge-item', checked(ITEM, 'item', item));
  }

  tags(...tags) {
    const all = new Set([...this.#tags, ...tags.map((tag) => checked(TAG, 'tag', tag))]);
    if (all.size > MAX_TAGS) throw new TypeError('a page has at most 32 tags');
    this.#tags = all;
  }

  cart = {
    add: (item, quantity = 1) => this.#change({ op: 'add', id: checked(ITEM, 'item', item), quantity: quantityOf(quantity, 1) }),
    set: (item, quantity) => this.#change({ op: 'set', id: checked(ITEM, 'item', item), quantity: quantityOf(quantity, 0) }),
    clear: () => this.#change({ op: 'clear' }),
  };

  #change(operation) {
    if (this.#operations.length >= MAX_OPERATIONS) throw new TypeError('a response has at most 100 changes of the cart');
    this.#operations.push(operation);
  }

  share({ maxAge = 300, stale = 60 } = {}) {
    this.#share = `public, max-age=${quantityOf(maxAge, 0)}, stale-while-revalidate=${quantityOf(stale, 0)}`;
  }

  /** Records that the response depends on its visitor. It then is not shared. */
  touch(cause) {
    this.#touched ??= cause;
  }

  /** Purges `{ items, tags, urls }` after the response. Call it after the commit. */
  purge(names) {
    if (this.#service) this.#service.purge(names);
    else this.purges.push(names);
  }

  /** Sends the collected purges. `purge` then sends at once, because no response follows. */
  sendPurges(service) {
    this.#service = service;
    for (const names of this.purges.splice(0)) service?.purge(names);
  }

  /**
   * The `Edge-*` headers. None without edgefront: a client must not see them. An error of the server has only a logout,
   * because its transaction may have been rolled back.
   */
  directives(status = 200) {
    if (!this.verified) return {};
    const headers = new Map(this.#headers);
    if (this.#tags.size > 0) headers.set('edge-tags', [...this.#tags].join(', '));
    if (this.#operations.length > 0) headers.set('edge-cart', json(this.#operations));
    if (status >= 500) ['edge-login', 'edge-cart', 'edge-order'].forEach((name) => headers.delete(name));
    const namesUser = headers.get('edge-logout')?.startsWith('user=');
    if (headers.has('edge-login')) headers.delete(namesUser ? 'edge-login' : 'edge-logout');
    if (this.shared) PERSONAL.forEach((name) => headers.delete(name));
    return Object.fromEntries(headers);
  }

  /**
   * The headers to set on a response, and `null` for those to remove.
   * `response`: its status, the names of its headers, and whether it sets a cookie.
   */
  finish({ status, names, setsCookie }) {
    const own = this.directives(status);
    const isPersonal = [...names.map((name) => name.toLowerCase()), ...Object.keys(own)].some((name) => PERSONAL.includes(name));
    if (this.#share === null && !isPersonal) return own;
    // A 304 confirms the stored page, which takes over its headers.
    const succeeded = status === 200 || status === 304;
    const cause = (isPersonal && 'it has a directive about its visitor') || (this.#touched && `it depends on ${this.#touched}`)
      || (setsCookie && 'it sets a cookie') || (!succeeded && `its status is ${status}`);
    if (cause && this.#share) console.warn(`edgefront: a response is not shared: ${cause}`);
    return { ...own, 'cache-control': cause ? 'private, no-store' : this.#share, 'cdn-cache-control': null };
  }
}
