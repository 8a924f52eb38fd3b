import type { Edge, Options, RowSource, ShareOptions } from './index.js';

/** Structural types, so that the package needs no version of Express. */
type Middleware = (req: any, res: any, next: (error?: unknown) => void) => void;

declare global {
  namespace Express {
    interface Request {
      edge: Edge;
    }
  }
}

export function edgefront(options: Options): Middleware;
export function visitor(options: {
  load: (id: string) => unknown;
  ownUser?: (session: any) => string | number | null | undefined;
  id?: (user: any) => string | number;
}): Middleware;
export function shared(options?: ShareOptions): Middleware;
export function edgeRows(source: RowSource): (req: any, res: any) => Promise<void>;
