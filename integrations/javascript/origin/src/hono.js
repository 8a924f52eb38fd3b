// Middleware for Hono. `c.get('edge')` is the request's `Edge`.

import { Keys } from './edge.js';
import { admit, finish, rows } from './index.js';

export function edgefront({ key, exempt = [], service = null, load = null }) {
  const keys = new Keys(key);
  return async (c, next) => {
    const admitted = admit(c.req.raw, keys, exempt);
    if (admitted instanceof Response) return admitted;
    const { edge, request } = admitted;
    c.req.raw = request;
    c.set('edge', edge);
    // A function, so that a page that does not ask for the user can be shared.
    c.set('user', async () => {
      edge.touch('the user');
      return edge.user === null || !load ? null : load(edge.user);
    });
    try {
      await next();
      const finished = finish(edge, c.res);
      // Otherwise Hono copies the headers of the old response over the new ones.
      if (finished !== c.res) c.res = undefined;
      c.res = finished;
    } finally {
      // A handler may throw after its commit.
      edge.sendPurges(service);
    }
  };
}

/** Declares the responses of a route shared. */
export const shared = (options) => async (c, next) => {
  c.get('edge').share(options);
  await next();
};

/** The handler for `ROWS_URL`. */
export const edgeRows = (source) => (c) => rows(c.get('edge'), c.req.url, source);
