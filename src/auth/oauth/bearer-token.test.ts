// A token that the program has: to whom it is shown, and what is said where it is refused.

import { describe, expect, it } from "vitest";
import type { Challenge } from "../../core/authentication.ts";
import { bearerToken } from "./bearer-token.ts";

const sending = { method: "POST", url: new URL("https://a.example/mcp"), signal: new AbortController().signal };
const challenge = (sent: string, more: Partial<Challenge> = {}): Challenge => ({
  ...sending,
  status: 401,
  headers: {},
  sent: { authorization: sent },
  attempt: 1,
  ...more,
});

describe("a token that the program has", () => {
  it("goes with every request", async () => {
    expect(await bearerToken("abc").authorize(sending)).toEqual({ authorization: "Bearer abc" });
  });

  it("is asked of a function each time", async () => {
    let count = 0;
    const auth = bearerToken(() => Promise.resolve(`token-${(count += 1)}`));
    expect(await auth.authorize(sending)).toEqual({ authorization: "Bearer token-1" });
    expect(await auth.authorize(sending)).toEqual({ authorization: "Bearer token-2" });
  });

  it("is shown to one origin only", async () => {
    const auth = bearerToken("abc");
    await auth.authorize(sending);
    const elsewhere = { ...sending, url: new URL("https://b.example/mcp") };
    await expect(auth.authorize(elsewhere)).rejects.toThrow("is for https://a.example, not for https://b.example");
  });

  it.each(["", "two words", "line\nbreak"])("is told where it is none: %j", async (token) => {
    expect(() => bearerToken(token)).toThrow("this is no token");
    await expect(bearerToken(() => token).authorize(sending)).rejects.toThrow("returned no token");
  });
});

describe("a token that is refused", () => {
  it("is told with where it came from and with what the end said, not with what it is", async () => {
    const headers = { "www-authenticate": 'Bearer error="invalid_token", error_description="it expired"' };
    const refused = bearerToken("very-secret").refused(challenge("Bearer very-secret", { headers }));
    await expect(refused).rejects.toThrow(
      "https://a.example/mcp refused the token given to bearerToken (invalid_token, it expired)",
    );
    await expect(refused).rejects.toMatchObject({ kind: "unauthorized", mayHaveRun: false });
    await expect(refused).rejects.not.toThrow("very-secret");
  });

  it("is not told even where the end says it", async () => {
    const headers = { "www-authenticate": 'Bearer error_description="no Bearer pass+wo/rd"' };
    const refused = bearerToken("pass+wo/rd").refused(challenge("Bearer pass+wo/rd", { headers }));
    await expect(refused).rejects.toThrow("(no Bearer ...)");
  });

  it("is told with the scope that it lacks", async () => {
    const headers = { "www-authenticate": 'Bearer error="insufficient_scope", scope="write"' };
    const refused = bearerToken("abc").refused(challenge("Bearer abc", { status: 403, headers }));
    await expect(refused).rejects.toThrow('it wants the scope "write"');
  });

  it("leaves a 403 that is no matter of tokens to the caller", async () => {
    expect(await bearerToken("abc").refused(challenge("Bearer abc", { status: 403 }))).toBe(false);
  });

  it("is replaced once where the function knows a newer one", async () => {
    const auth = bearerToken(() => "new");
    expect(await auth.refused(challenge("Bearer old"))).toBe(true);
    await expect(auth.refused(challenge("Bearer old", { attempt: 2 }))).rejects.toThrow("that the function given to");
    await expect(auth.refused(challenge("Bearer new"))).rejects.toThrow("HTTP 401");
  });
});
