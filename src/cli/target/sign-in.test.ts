// Advice after an authentication error: what helps comes first, and signing in is mentioned only where it is possible.

import { expect, it } from "vitest";
import { NoSignInError } from "../../auth/oauth/errors.ts";
import { ConnectionError } from "../../core/errors.ts";
import { withAdvice } from "./sign-in.ts";

const NO_DISCOVERY = new NoSignInError("http://a/mcp", new ConnectionError("unauthorized", "it answered HTTP 404"));

function advice(failure: string | ConnectionError, canSignIn: boolean, hasToken = false): string {
  const error = typeof failure === "string" ? new ConnectionError("unauthorized", failure) : failure;
  return (withAdvice(error, { canSignIn, hasToken }) as Error).message;
}

it("an authentication error asks for a token first if the server does not say how to sign in", () => {
  const first =
    "http://a/mcp needs a token: set it in CATENARY_TOKEN, or give --header 'Authorization: Bearer TOKEN' (a gateway prints the one that it makes itself; others are in its config: listen.token, callers)";
  expect(advice(NO_DISCOVERY, false)).toBe(first);
  expect(advice(NO_DISCOVERY, true)).toBe(`${first}\nSigning in failed too: it answered HTTP 404`);
});

it("an authentication error lists the other possibilities", () => {
  expect(advice("http://a refused the token", false, true)).toMatch(/^http:\/\/a refused .*\n.*use another token/);
  expect(advice("http://a refused the token", false, true)).toContain(
    "if the server offers a sign-in, leave the token",
  );
  expect(advice("http://a wants consent", true)).toContain("or a client with --client-id");
  expect(advice("http://a wants consent", false)).toContain("sign in from a terminal");
});

it("an authentication error of another kind is not changed", () => {
  const error = new ConnectionError("closed", "gone");
  expect(withAdvice(error, { canSignIn: true, hasToken: false })).toBe(error);
});
