// The one arrow of the house: a request and its context go in, a promise of a result comes out.
// A server, a connected end, a middleware's product and many ends merged are all this one type.
// Requests and results are immutable: who wants another one makes a new one and passes that on.

import type { Context } from "./context.ts";

export type Meta = { readonly [key: string]: unknown };
export type Params = { readonly _meta?: Meta; readonly [key: string]: unknown };

/** A request in the shape of the newest revision. */
export interface Request {
  readonly method: string;
  readonly params: Params;
}

export interface Notification {
  readonly method: string;
  readonly params?: Params;
}

/** What came of a request; `resultType` says which kind it is and is "complete" where it is left out. */
export type Result = { readonly resultType?: string; readonly _meta?: Meta; readonly [key: string]: unknown };

export type Handler = (request: Request, context: Context) => Promise<Result>;
export type Middleware = (request: Request, context: Context, next: Handler) => Promise<Result>;

/** A named place in a chain: what the config names, the console shows, and an operator may replace while it runs. */
export interface Link {
  readonly name: string;
  readonly run: Middleware;
  close?(): Promise<void>;
}
