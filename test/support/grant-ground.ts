// What a grant stands on, over a real authorization server on this machine, without the flow that is usually around
// it; and what it throws, looked through for secrets.

import { inspect } from "node:util";
import type * as oauth from "oauth4webapi";
import { expect } from "vitest";
import { ConnectionError } from "../../src/core/errors.ts";
import { Reach } from "../../src/auth/oauth/reach.ts";
import type { Grant, Ground } from "../../src/auth/oauth/grant.ts";
import type { AuthorizationServer } from "./authorization-server.ts";

export const RESOURCE = "http://127.0.0.1:9/mcp";

export function groundOn(server: AuthorizationServer, more: Partial<Ground> = {}): Ground {
  const signal = new AbortController().signal;
  const reach = new Reach({ end: new URL(RESOURCE), fetch: (url, init) => fetch(url, init) });
  return {
    server: server.metadata as unknown as oauth.AuthorizationServer,
    resource: RESOURCE,
    http: reach.options(signal),
    signal,
    client: () => expect.fail("the grant brings its own client"),
    ...more,
  };
}

/** What the grant throws; none of the secrets is in it, however deep one looks. */
export async function failure(grant: Grant, ground: Ground, ...secrets: readonly string[]): Promise<ConnectionError> {
  const error: unknown = await grant.obtain(ground).then(
    () => expect.fail("a token was given"),
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(ConnectionError);
  const everything = inspect(error, { depth: 10, showHidden: true });
  for (const secret of secrets) expect(everything).not.toContain(secret);
  return error as ConnectionError;
}
