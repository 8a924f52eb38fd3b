import { createClient, EdgeError } from '../src/index.js';

const client = createClient();
const cart = await client.addToCart('mug', 2);
const quantity: number = cart.items[0]!.quantity;
try {
  const { left, state } = await client.sale('mug');
  const isLive: boolean = left > 0 && state === 'live';
  void [isLive, quantity];
} catch (error) {
  if (error instanceof EdgeError && error.type === 'sold-out') void error.status;
}
// @ts-expect-error a quantity is a number
await client.setInCart('mug', '2');
