import type { Edge, Options, RowSource, ShareOptions } from './index.js';

/** Structural types, so that the package needs no version of Hono. */
type Context = any;
type Middleware = (c: Context, next: () => Promise<void>) => Promise<Response | void>;

/** `new Hono<{ Variables: EdgeVariables<User> }>()`. */
export type EdgeVariables<User = unknown> = { edge: Edge; user: () => Promise<User | null> };

export function edgefront(options: Options & { load?: (id: string) => unknown }): Middleware;
export function shared(options?: ShareOptions): Middleware;
export function edgeRows(source: RowSource): (c: Context) => Promise<Response>;
