// A shop on three kinds of server, and the conformance kit.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { promisify } from 'node:util';

import { Service } from '../src/index.js';

export const KEY = 'the key of the test origin';
export const PASSWORD = 'test-account-password-1';
export const USERS = new Map([['1', { id: '1', name: 'ada' }], ['2', { id: '2', name: 'bob' }]]);
export const ROWS = [{ id: 'mug', stock: 3 }, { id: 'pan', stock: 0 }];

/** Runs the conformance kit, which must find no broken clause. */
export async function contract(url, ...options) {
  const program = process.env.EDGEFRONT_CONTRACT;
  if (!program) throw new Error('set EDGEFRONT_CONTRACT to the program edgefront-contract, or run: cargo xtask test --integrations');
  const env = { ...process.env, ORIGIN_KEY: KEY, CONTRACT_PASSWORD: PASSWORD };
  try {
    return (await promisify(execFile)(program, [url, ...options], { env, timeout: 60_000 })).stdout;
  } catch (error) {
    throw new Error(`${error.stdout}${error.stderr}`);
  }
}

export const OPTIONS = [
  '--public-url=https://shop.example', '--product=/products/mug', '--item=mug', '--user=1', '--other-user=2', '--account=/account',
  '--mark=Hello ada!', '--login=/login', '--login-form=name=ada&password={password}', '--logout=/logout', '--cart=/cart',
  '--cart-form=id=mug', '--cart-page=/cart', '--order=/checkout', '--rows=/rows', '--row=mug',
];

/** Starts a Node.js server on a free port; it ends with the test. */
export async function listen(t, listener) {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => { server.closeAllConnections(); server.close(); });
  return `http://127.0.0.1:${server.address().port}`;
}

/** edgefront's service API. It answers with the next of `statuses`, then with 200. */
export async function api(t, statuses = []) {
  const calls = [];
  const url = await listen(t, async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    calls.push({ method: req.method, path: req.url, key: req.headers.authorization, body: body && JSON.parse(body) });
    const status = statuses.shift() ?? 200;
    res.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('{}');
  });
  return { calls, url, service: new Service({ url, key: 'the service key', pauses: [0, 0, 0] }) };
}

/** The shop for a fetch-style server. It has no session of its own. */
export async function shop(request, edge, rows) {
  const url = new URL(request.url);
  const form = request.method === 'POST' ? new URLSearchParams(await request.text()) : null;
  const personal = { 'cache-control': 'private' };
  const redirect = () => new Response(null, { status: 303, headers: { location: '/' } });
  switch (`${form ? 'POST ' : ''}${url.pathname}`) {
    case '/': return new Response('shop');
    case '/products/mug':
      edge.item('mug');
      edge.tags('goods', 'kitchen');
      edge.share();
      return new Response(`<link rel=canonical href=${url.href}>`);
    case '/account': return new Response(edge.user ? `Hello ${USERS.get(edge.user)?.name}!` : 'Sign in', { headers: personal });
    case '/login': return new Response('<form method=post>');
    case 'POST /login':
      if (form.get('password') !== PASSWORD) return new Response('wrong', { status: 422 });
      edge.login('1');
      return redirect();
    case 'POST /logout': edge.logout(); return redirect();
    case '/cart': return Response.json(edge.cartItems, { headers: personal });
    case 'POST /cart': edge.cart.add(form.get('id'), 2); return redirect();
    case '/checkout': return new Response('<form method=post>');
    case 'POST /checkout': edge.order('A-1', edge.cartItems); return redirect();
    case '/rows': return rows(edge, request.url, (ids) => ROWS.filter(({ id }) => ids.includes(id)));
    default: return new Response('', { status: 404 });
  }
}
