export type SessionState = 'user' | 'guest' | 'none' | 'unknown';
export type Names = { items?: Iterable<string | number>; tags?: Iterable<string>; urls?: Iterable<string> };
export type Row = { id: string | number; [column: string]: unknown };
export type RowSource = (ids: string[]) => Row[] | Promise<Row[]>;
export type Reservation = { sale: string; id: string; until?: number };

/** One request, and the directives of its response. A value that edgefront would ignore is a `TypeError`. */
export class Edge {
  static read(headers: Iterable<[string, string]>, keys: Keys): Edge;
  readonly verified: boolean;
  readonly shared: boolean;
  readonly session: SessionState | null;
  readonly user: string | null;
  /** Item → quantity, on the paths of `CART_ROUTES`. Null: Redis did not answer. */
  readonly cartItems: Record<string, number> | null;
  readonly reservation: Reservation | null;
  readonly address: string | null;
  readonly host: string | null;
  readonly scheme: 'http' | 'https' | null;
  readonly purges: Names[];
  readonly cart: {
    add(item: string | number, quantity?: number): void;
    /** 0 removes the item. */
    set(item: string | number, quantity: number): void;
    clear(): void;
  };
  login(user: string | number): void;
  logout(options?: { everywhere?: boolean; user?: string | number }): void;
  /** `inCart: false` leaves the cart alone, such as for a piece of a flash sale. */
  order(orderId: string | number, items: Record<string, number>, reservation?: Reservation, options?: { inCart?: boolean }): void;
  item(item: string | number): void;
  tags(...tags: string[]): void;
  share(options?: ShareOptions): void;
  touch(cause: string): void;
  purge(names: Names): void;
  sendPurges(service: Service | null): void;
  directives(status?: number): Record<string, string>;
  finish(response: { status: number; names: string[]; setsCookie: boolean }): Record<string, string | null>;
}

/** Seconds. */
export type ShareOptions = { maxAge?: number; stale?: number };

export class Keys {
  constructor(keys: string | undefined | (string | undefined)[]);
  match(key: string | null | undefined): boolean;
}

export class Refused extends Error {
  readonly status: 403 | 400;
}

export class Service {
  constructor(options: { url: string; key: string; pauses?: number[] });
  purge(names: Names): void;
  flush(): Promise<void>;
  endSessions(user: string | number): Promise<boolean>;
  reportOrder(order: object): Promise<boolean>;
  scheduleRow(row: string | number, every: number): Promise<boolean>;
}

export type Options = { key: string | undefined | (string | undefined)[]; exempt?: string[]; service?: Service | null };

export function edgefront<More extends unknown[]>(
  options: Options,
  handler: (request: Request, edge: Edge, ...more: More) => Response | Promise<Response>,
): (request: Request, ...more: More) => Promise<Response>;
export function admit(request: Request, keys: Keys, exempt?: string[]): { edge: Edge; request: Request } | Response;
export function finish(edge: Edge, response: Response): Response;
export function rows(edge: Edge, url: string, source: RowSource): Promise<Response>;
