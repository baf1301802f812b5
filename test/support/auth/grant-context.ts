// Runs a grant alone against a local authorization server, and checks that its errors contain no secrets.

import { inspect } from "node:util";
import type * as oauth from "oauth4webapi";
import { expect } from "vitest";
import { ConnectionError } from "../../../src/core/errors.ts";
import { OAuthFetch } from "../../../src/auth/oauth/oauth-fetch.ts";
import { requestOptions } from "../../../src/auth/oauth/token-request.ts";
import type { Grant, GrantContext } from "../../../src/auth/oauth/types.ts";
import type { AuthorizationServer } from "./authorization-server.ts";

export const RESOURCE = "http://127.0.0.1:9/mcp";

export function grantContext(server: AuthorizationServer, more: Partial<GrantContext> = {}): GrantContext {
  const signal = new AbortController().signal;
  const http = new OAuthFetch(new URL(RESOURCE), { fetch: (url, init) => fetch(url, init) });
  return {
    server: server.metadata as unknown as oauth.AuthorizationServer,
    resource: RESOURCE,
    http: requestOptions(http, signal),
    signal,
    client: () => expect.fail("the grant has its own client"),
    ...more,
  };
}

/** The error of the grant. Fails if it contains one of the secrets at any depth. */
export async function failure(
  grant: Grant,
  context: GrantContext,
  ...secrets: readonly string[]
): Promise<ConnectionError> {
  const error: unknown = await grant.obtain(context).then(
    () => expect.fail("a token was issued"),
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(ConnectionError);
  const everything = inspect(error, { depth: 10, showHidden: true });
  for (const secret of secrets) expect(everything).not.toContain(secret);
  return error as ConnectionError;
}
