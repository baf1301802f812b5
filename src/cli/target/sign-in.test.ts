// What a person is told who was not let in: what helps comes first, and signing in is spoken of where it could help.

import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { withAdvice } from "./sign-in.ts";

const NOWHERE = "http://a/mcp says nowhere how to get a token, and the default way fails: it answered HTTP 404";

function advice(message: string, isPerson: boolean, hasToken = false): string {
  return (withAdvice(new ConnectionError("unauthorized", message), { isPerson, hasToken }) as Error).message;
}

describe("whoever is not let in", () => {
  it("is told of the token first, where nobody says how to sign in", () => {
    const first =
      "http://a/mcp wants a token: give it in CATENARY_TOKEN (what catenary serves prints it when it is started)";
    expect(advice(NOWHERE, false)).toBe(first);
    expect(advice(NOWHERE, true)).toBe(`${first}\nNor could you sign in: it answered HTTP 404`);
  });

  it("is told what else there is", () => {
    expect(advice("http://a refused the token", false, true)).toMatch(/^http:\/\/a refused .*\n.*bring another token/);
    expect(advice("http://a wants consent", true)).toContain("or a client by --client-id");
    expect(advice("http://a wants consent", false)).toContain("sign in by running it in a terminal");
  });

  it("hears of other errors what they say", () => {
    const error = new ConnectionError("closed", "gone");
    expect(withAdvice(error, { isPerson: true, hasToken: false })).toBe(error);
  });
});
