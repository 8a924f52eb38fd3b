// Middleware for Express. `req.edge` is the request's `Edge`.

import { Edge, Keys, Refused, isClaim } from './edge.js';
import { answerRows } from './index.js';

const define = (target, name, value) => Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });

/** The first middleware: checks the key, sets client, host and scheme, and writes the directives. */
export function edgefront({ key, exempt = [], service = null }) {
  const keys = new Keys(key);
  return (req, res, next) => {
    let edge;
    try {
      edge = Edge.read(pairs(req.rawHeaders), keys);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status !== 403 || !exempt.includes(req.path)) {
        res.status(error.status).set('Cache-Control', 'no-store').type('text').send(`${error.message}\n`);
        return;
      }
      edge = new Edge();
    }
    for (const name of Object.keys(req.headers).filter(isClaim)) delete req.headers[name];
    req.rawHeaders = pairs(req.rawHeaders).filter(([name]) => !isClaim(name)).flat();
    if (edge.host !== null) req.headers.host = edge.host;
    if (edge.scheme !== null) define(req, 'protocol', edge.scheme);
    if (edge.address !== null) define(req, 'ip', edge.address);
    define(req, 'edge', edge);
    const { writeHead } = res;
    res.writeHead = (status, ...more) => {
      res.writeHead = writeHead;
      // Headers that are given here would not be seen.
      for (const headers of more.filter((value) => typeof value === 'object')) {
        for (const [name, value] of Array.isArray(headers) ? pairs(headers) : Object.entries(headers)) res.setHeader(name, value);
      }
      const changes = edge.finish({ status, names: res.getHeaderNames(), setsCookie: res.hasHeader('set-cookie') });
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) res.removeHeader(name);
        else res.setHeader(name, value);
      }
      return writeHead.call(res, status, ...more.filter((value) => typeof value === 'string'));
    };
    // If the visitor has left, `close` comes without `finish`.
    for (const end of ['finish', 'close']) res.once(end, () => edge.sendPurges(service));
    next();
  };
}

/**
 * After `express-session` and `passport.session()`: maps edgefront's user to `req.user`, ends a login of the shop's own
 * with edgefront's session, and reports Passport's logins and logouts. A response that read `req.session` or `req.user`
 * is not shared.
 *
 * `load(id)` resolves with the user. `ownUser(session)` is the id of the session's own login.
 * `id(user)` is the id of Passport's user.
 */
export function visitor({ load, ownUser = (session) => session.passport?.user, id = (user) => user.id }) {
  return async (req, res, next) => {
    const { edge, session } = req;
    if (edge.verified && edge.session !== 'unknown') {
      const own = (session && ownUser(session)) ?? null;
      if (own !== null && String(own) !== edge.user) await new Promise((resolve, reject) => { session.regenerate((error) => (error ? reject(error) : resolve())); });
      guard(req, res, 'user', edge.user === null ? undefined : (await load(edge.user)) ?? undefined);
    } else {
      guard(req, res, 'user', req.user);
    }
    guard(req, res, 'session', req.session);
    reportPassport(req, id);
    next();
  };
}

/** Replaces a property by one that touches the response when it is read, until the response begins. */
function guard(req, res, name, value) {
  let isSending = false;
  Object.defineProperty(req, name, {
    get() {
      if (!isSending) req.edge.touch(`req.${name}`);
      return value;
    },
    set(replacement) { value = replacement; },
    configurable: true,
    enumerable: true,
  });
  // The session's own middleware reads it when it saves the session.
  for (const method of ['writeHead', 'end']) {
    const original = res[method];
    res[method] = function begin(...given) {
      isSending = true;
      return original.apply(this, given);
    };
  }
}

function reportPassport(req, id) {
  const { edge, logIn, logOut } = req;
  if (typeof logIn !== 'function' || typeof logOut !== 'function') return;
  req.logIn = req.login = (user, options, done) => {
    const callback = typeof options === 'function' ? options : done;
    return logIn.call(req, user, typeof options === 'function' ? {} : options, (error) => {
      if (!error) edge.login(id(user));
      callback?.(error);
    });
  };
  req.logOut = req.logout = (options, done) => {
    edge.logout();
    return logOut.call(req, options, done);
  };
}

/** Declares the responses of a route shared. */
export const shared = (options) => (req, res, next) => {
  req.edge.share(options);
  next();
};

/** The handler for `ROWS_URL`. */
export const edgeRows = (source) => async (req, res) => {
  const { status, body } = await answerRows(req.edge, new URLSearchParams(req.url.split('?')[1]).get('ids'), source);
  res.status(status).set('Cache-Control', 'no-store');
  if (status === 200) res.json(body);
  else res.type('text').send(`${body}\n`);
};

function pairs(flat) {
  const found = [];
  for (let i = 0; i + 1 < flat.length; i += 2) found.push([flat[i], flat[i + 1]]);
  return found;
}
