// The options of a front over HTTP as people give them, made into one: the guard for its names, the limits of its
// messages and of the wire. `serve` listens for it; `catenary/http` gives it as a function.

import type { Handler } from "./core/handler.ts";
import { isLive } from "./core/live.ts";
import { HttpFront } from "./http/server/http-front.ts";
import type { MountOptions } from "./http-options.ts";
import { createGuard } from "./http/server/guard.ts";

/** `host` is what is listened on, where we do that ourselves. */
export function createFront(handler: Handler, options: MountOptions, host?: string): HttpFront {
  if (typeof handler !== "function") {
    throw new TypeError("What is served must be a server or a handler: (request, context) => Promise<Result>");
  }
  const { allowedHosts, allowedOrigins, auth, ...front } = options;
  if (auth === undefined && isLive(handler)) throw new TypeError(UNASKED);
  const asking = auth === undefined || auth === false ? undefined : { auth };
  return new HttpFront(handler, createGuard({ host, allowedHosts, allowedOrigins }), { ...front, ...asking });
}

const UNASKED =
  "What is served evaluates code, so callers over HTTP must say who they are: give `auth`, such as bearer({ verify }) " +
  "of catenary/server, or `auth: false` to let everybody who reaches the port run code here";
