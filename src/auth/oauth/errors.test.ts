// Error messages of the OAuth flow, and what they must not contain.

import { expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { authFailure, reasonOf, redact } from "./errors.ts";

it("an authorization failure passes on an unauthorized error", () => {
  const error = new ConnectionError("unauthorized", "no");
  expect(authFailure("asking", error)).toBe(error);
});

it("an authorization failure is unauthorized for other errors", () => {
  expect(authFailure("asking", new ConnectionError("timeout", "too late"))).toMatchObject({
    kind: "unauthorized",
    mayHaveRun: false,
    message: "Failed: asking: too late",
  });
});

it("an authorization failure distinguishes cancellation and timeout", () => {
  expect(authFailure("asking", new DOMException("stop", "AbortError")).kind).toBe("cancelled");
  expect(authFailure("asking", new DOMException("late", "TimeoutError")).message).toBe("Timed out: asking");
});

it("an authorization failure has no cause, since a cause may contain tokens", () => {
  const cause = { body: { access_token: "secret" } };
  expect(authFailure("asking", new Error("odd", { cause })).cause).toBeUndefined();
});

it("the reason contains no given secret, not even a truncated one", () => {
  const error = { error: "bad s3+cr/t", error_description: `${"word ".repeat(38)}s3+cr/t` };
  expect(reasonOf(error, ["s3+cr/t", undefined, "wor"])).toBe(`bad ... (${"word ".repeat(38)}...)`);
});

it("the reason exists even for undefined", () => {
  expect(authFailure("asking", undefined)).toMatchObject({ kind: "unauthorized" });
});

it("the reason is the cause of a failed fetch", () => {
  const refused = Object.assign(new Error(""), { code: "ECONNREFUSED" });
  expect(reasonOf(new TypeError("fetch failed", { cause: refused }))).toBe("fetch failed: ECONNREFUSED");
});

it("the reason is the status of a response that could not be read", () => {
  const cause = new Response(null, { status: 302, headers: { location: "/elsewhere" } });
  const text = "it answered HTTP 302, a redirect, which is not followed here";
  expect(reasonOf(new Error("not conform", { cause }))).toBe(text);
});

it.each([
  ["two\nlines\u001b[2J", "two lines [2J"],
  ["hidden\u202etext", "hidden text"],
  [`token ${"ab12_-".repeat(6)}.${"x".repeat(9)} bad`, "token ... bad"],
  ["https://a.example/a-url/that-is-not-secret", "https://a.example/a-url/that-is-not-secret"],
  ["word ".repeat(100), `${"word ".repeat(40)}...`],
])("the reason is one redacted line: %j", (text, expected) => {
  expect(redact(text)).toBe(expected);
});
