// bearerToken(): to which servers the token is sent, and the error if it is refused.

import { expect, it } from "vitest";
import type { Challenge } from "../../core/authentication.ts";
import { bearerToken } from "./authorizers.ts";

const request = { method: "POST", url: new URL("https://a.example/mcp"), signal: new AbortController().signal };
const challenge = (sent: string, more: Partial<Challenge> = {}): Challenge => ({
  ...request,
  status: 401,
  headers: {},
  sent: { authorization: sent },
  attempt: 1,
  ...more,
});

it("a given token is sent with every request", async () => {
  expect(await bearerToken("abc").authorize(request)).toEqual({ authorization: "Bearer abc" });
});

it("a given token is requested from a function each time", async () => {
  let count = 0;
  const auth = bearerToken(() => Promise.resolve(`token-${(count += 1)}`));
  expect(await auth.authorize(request)).toEqual({ authorization: "Bearer token-1" });
  expect(await auth.authorize(request)).toEqual({ authorization: "Bearer token-2" });
});

it("a given token is sent to one origin only", async () => {
  const auth = bearerToken("abc");
  await auth.authorize(request);
  const elsewhere = { ...request, url: new URL("https://b.example/mcp") };
  await expect(auth.authorize(elsewhere)).rejects.toThrow("is for https://a.example, not for https://b.example");
});

it.each(["", "two words", "line\nbreak"])("a given token is refused if it is not valid: %j", async (token) => {
  expect(() => bearerToken(token)).toThrow("the token is empty, or has characters that a header cannot carry");
  await expect(bearerToken(() => token).authorize(request)).rejects.toThrow("did not return a valid token");
});

it("a refused token is reported with its source and the server's reason, but without its value", async () => {
  const headers = { "www-authenticate": 'Bearer error="invalid_token", error_description="it expired"' };
  const refused = bearerToken("very-secret").refused(challenge("Bearer very-secret", { headers }));
  await expect(refused).rejects.toThrow(
    "https://a.example refused the token given to bearerToken (invalid_token, it expired)",
  );
  await expect(refused).rejects.toMatchObject({ kind: "unauthorized", mayHaveRun: false });
  await expect(refused).rejects.not.toThrow("very-secret");
});

it("a refused token is redacted even if the server repeats it", async () => {
  const headers = { "www-authenticate": 'Bearer error_description="no Bearer pass+wo/rd"' };
  const refused = bearerToken("pass+wo/rd").refused(challenge("Bearer pass+wo/rd", { headers }));
  await expect(refused).rejects.toThrow("(no Bearer ...)");
});

it("a refused token is reported with the missing scope", async () => {
  const headers = { "www-authenticate": 'Bearer error="insufficient_scope", scope="write"' };
  const refused = bearerToken("abc").refused(challenge("Bearer abc", { status: 403, headers }));
  await expect(refused).rejects.toThrow('it requires the scope "write"');
});

it("a refused token leaves a 403 without insufficient_scope to the caller", async () => {
  expect(await bearerToken("abc").refused(challenge("Bearer abc", { status: 403 }))).toBe(false);
});

it("a refused token is replaced once if the function returns a newer one", async () => {
  const auth = bearerToken(() => "new");
  expect(await auth.refused(challenge("Bearer old"))).toBe(true);
  await expect(auth.refused(challenge("Bearer old", { attempt: 2 }))).rejects.toThrow("that the function given to");
  await expect(auth.refused(challenge("Bearer new"))).rejects.toThrow("HTTP 401");
});
