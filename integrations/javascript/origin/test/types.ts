import { edgefront, Service, type Edge } from '../src/index.js';

const service = new Service({ url: 'https://shop.example', key: 'x' });
const handler = edgefront({ key: process.env['ORIGIN_KEY'], service }, (_: Request, edge: Edge) => {
  edge.cart.add('mug', 2);
  edge.logout({ user: 7 });
  edge.share({ maxAge: 60 });
  return new Response(edge.user);
});
const response: Promise<Response> = handler(new Request('https://shop.example'));
void response;
// @ts-expect-error a quantity is a number
edgefront({ key: 'x' }, (_, edge) => { edge.cart.set('mug', '2'); return new Response(); });
