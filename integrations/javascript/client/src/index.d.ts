export type ProblemType =
  | 'cart-full' | 'too-often' | 'sign-in' | 'not-started' | 'ended' | 'sold-out' | 'already-bought' | 'unavailable' | 'invalid'
  | 'not-found' | 'key-reused' | 'foreign-origin' | 'offline' | (string & {});

/** A problem document of edgefront (RFC 9457), or a failed connection (`offline`). */
export class EdgeError extends Error {
  readonly type: ProblemType;
  /** 0 without a response. */
  readonly status: number;
  readonly detail?: string;
  readonly field?: string;
}

export type Cart = { items: { id: string; quantity: number }[]; lines: number; quantity: number };
export type Session = { user: string | null; guest: boolean; cart: { lines: number; quantity: number } };
/** Times are Unix seconds. */
export type Device = { id: string; current: boolean; began: number; seen: number; device: string | null };
export type Sale = {
  id: string;
  state: 'upcoming' | 'live' | 'sold_out' | 'ended';
  /** The server's clock. Times are Unix seconds. */
  now: number;
  starts: number;
  ends: number;
  pieces: number;
  left: number;
  held: number;
  price_cents: number | null;
  list_cents: number | null;
  reservation: { id: string; until: number } | null;
  bought: boolean;
};
export type Row = Record<string, unknown>;
export type Related = { id: string; score?: number; share?: number };

export interface EdgeClient {
  request<T = unknown>(path: string, method?: string, body?: object): Promise<T>;
  session(): Promise<Session>;
  signOut(): Promise<null>;
  devices(): Promise<Device[]>;
  signOutDevice(id: string): Promise<null>;
  signOutDevices(options?: { exceptCurrent?: boolean }): Promise<null>;
  recent(): Promise<string[]>;
  cart(): Promise<Cart>;
  addToCart(id: string, quantity?: number): Promise<Cart>;
  setInCart(id: string, quantity: number): Promise<Cart>;
  removeFromCart(id: string): Promise<Cart>;
  emptyCart(): Promise<Cart>;
  sale(id: string): Promise<Sale>;
  reserve(sale: string): Promise<Sale>;
  cancelReservation(sale: string, id: string): Promise<null>;
  view(item: string): Promise<unknown>;
  popular(options?: { limit?: number }): Promise<{ id: string; rank: number; views: number }[]>;
  related(item: string, options?: { by?: 'bought' | 'viewed'; limit?: number }): Promise<Related[]>;
  stats(item: string): Promise<{ id: string; rank: number | null; views: number; orders: number }>;
  rows(ids: string[]): Promise<{ rows: Record<string, Row>; noCopy: string[]; now: number }>;
}

export function createClient(options?: { base?: string; fetch?: typeof fetch }): EdgeClient;
