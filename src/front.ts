// The options of a front over HTTP as people give them, made into one: the guard for its names, the limits of its
// messages and of the wire. `serve` listens for it; `catenary/http` gives it as a function.

import type { Handler } from "./core/handler.ts";
import { HttpFront } from "./dialogue/http/front.ts";
import type { HttpFrontOptions } from "./dialogue/http/options.ts";
import { createGuard } from "./transport/http/guard.ts";

/** A front that somebody else's server calls. */
export interface MountOptions extends HttpFrontOptions {
  /**
   * Names that we may be called by, `name` or `name:port`; `localhost`, `127.0.0.1` and `[::1]` always are. A page in
   * a browser can be made to call any name that leads here, so a name that is not listed is refused.
   */
  readonly allowedHosts?: readonly string[];
  /** Origins of pages in browsers that may call, such as `https://app.example.com`; those of allowed hosts always may. */
  readonly allowedOrigins?: readonly string[];
}

/** `host` is what is listened on, where we do that ourselves. */
export function createFront(handler: Handler, options: MountOptions, host?: string): HttpFront {
  if (typeof handler !== "function") {
    throw new TypeError("What is served must be a server or a handler: (request, context) => Promise<Result>");
  }
  const { allowedHosts, allowedOrigins, ...front } = options;
  return new HttpFront(handler, createGuard({ host, allowedHosts, allowedOrigins }), front);
}
