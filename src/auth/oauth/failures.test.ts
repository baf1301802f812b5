// What errors say, and what they must not.

import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { plain, reasonOf, refusal } from "./failures.ts";

describe("an error of this room", () => {
  it("passes on what is one already", () => {
    const error = new ConnectionError("unauthorized", "no");
    expect(refusal("asking", error)).toBe(error);
  });

  it("is of one kind, whatever went wrong", () => {
    expect(refusal("asking", new ConnectionError("timeout", "too late"))).toMatchObject({
      kind: "unauthorized",
      mayHaveRun: false,
      message: "Failed: asking: too late",
    });
  });

  it("tells giving up and lateness apart", () => {
    expect(refusal("asking", new DOMException("stop", "AbortError")).kind).toBe("cancelled");
    expect(refusal("asking", new DOMException("late", "TimeoutError")).message).toBe("It took too long: asking");
  });

  it("has no cause, for a cause may hold tokens", () => {
    const cause = { body: { access_token: "secret" } };
    expect(refusal("asking", new Error("odd", { cause })).cause).toBeUndefined();
  });
});

describe("what an error says", () => {
  it("has none of the secrets in it that it was told, not even cut short", () => {
    const error = { error: "bad s3+cr/t", error_description: `${"word ".repeat(38)}s3+cr/t` };
    expect(reasonOf(error, ["s3+cr/t", undefined, "wor"])).toBe(`bad ... (${"word ".repeat(38)}...)`);
  });

  it("is something, even of nothing", () => {
    expect(refusal("asking", undefined)).toMatchObject({ kind: "unauthorized" });
  });

  it("is what `fetch` knows of the connection", () => {
    const refused = Object.assign(new Error(""), { code: "ECONNREFUSED" });
    expect(reasonOf(new TypeError("fetch failed", { cause: refused }))).toBe("fetch failed: ECONNREFUSED");
  });

  it("is the status of an answer that could not be read", () => {
    const cause = new Response(null, { status: 302, headers: { location: "/elsewhere" } });
    const text = "it answered HTTP 302, a redirect, which is not followed here";
    expect(reasonOf(new Error("not conform", { cause }))).toBe(text);
  });

  it.each([
    ["two\nlines\u001b[2J", "two lines [2J"],
    ["hidden\u202etext", "hidden text"],
    [`token ${"ab12_-".repeat(6)}.${"x".repeat(9)} bad`, "token ... bad"],
    ["https://a.example/an-address/that-is-no-secret", "https://a.example/an-address/that-is-no-secret"],
    ["word ".repeat(100), `${"word ".repeat(40)}...`],
  ])("is one plain line: %j", (text, expected) => {
    expect(plain(text)).toBe(expected);
  });
});
