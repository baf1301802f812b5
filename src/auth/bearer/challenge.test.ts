// The two headers of bearer tokens, in every form that they may come in, and what may go out in them.

import { describe, expect, it } from "vitest";
import { challengeText, tokenOf } from "./challenge.ts";

describe("Authorization", () => {
  it.each([
    ["Bearer abc", "abc"],
    ["bearer abc", "abc"],
    ["BEARER abc", "abc"],
    ["Bearer   abc", "abc"],
    [" Bearer abc ", "abc"],
    ["Bearer Az09-._~+/==", "Az09-._~+/=="],
    ["Bearer bearer", "bearer"],
  ])("brings a token: %j", (value, token) => {
    expect(tokenOf(value)).toEqual({ kind: "token", token });
  });

  it.each([
    [undefined],
    [""],
    ["Bearer"],
    ["Bearer "],
    ["Bearer    "],
    ["bearer"],
    ["Basic YTpi"],
    ["Bearerabc"],
    ["Bearer\tabc"],
    ["Negotiate"],
    ['Digest username="bearer", realm="x"'],
    ["Token bearer abc"],
    ["Basic x,bearers y"],
  ])("brings none: %j", (value) => {
    expect(tokenOf(value)).toEqual({ kind: "none" });
  });

  it.each([
    ["Bearer a b"],
    ["Bearer a, Bearer b"],
    ["Bearer a,b"],
    ["Bearer =a"],
    ["Bearer a=b"],
    ["Bearer ="],
    ['Bearer "a"'],
    ["Bearer a;b"],
    ["Bearer é"],
    ["Bearer a\r\nb"],
    ["Bearer a Basic b"],
  ])("is malformed: %j", (value) => {
    const { kind, ...rest } = tokenOf(value);
    expect(kind).toBe("malformed");
    expect(rest).toEqual({ why: "Authorization must have the form: Bearer, one blank, one token" });
  });

  it.each([["Basic a, Bearer b"], ["Basic a,bearer b"], ["Basic a, Bearer"], ["Bearer, Bearer b"], ["x,BEARER\tb"]])(
    "is malformed by several schemes: %j",
    (value) => {
      expect(tokenOf(value)).toEqual({ kind: "malformed", why: "Authorization has more than one scheme" });
    },
  );
});

describe("WWW-Authenticate", () => {
  it("says what it is given and nothing else", () => {
    expect(challengeText({})).toBe("Bearer");
    expect(challengeText({ scopes: [], metadata: undefined })).toBe("Bearer");
    expect(challengeText({ metadata: "https://a.b/c" })).toBe('Bearer resource_metadata="https://a.b/c"');
    expect(
      challengeText({ error: "invalid_token", description: "No", scopes: ["a", "b"], metadata: "https://a.b/c" }),
    ).toBe('Bearer error="invalid_token", error_description="No", scope="a b", resource_metadata="https://a.b/c"');
  });

  it("lets nothing out of its quotes", () => {
    expect(challengeText({ description: 'a"b\\c' })).toBe('Bearer error_description="a\\"b\\\\c"');
    expect(challengeText({ description: "a\r\nSet-Cookie: b\u0000\u007f\té" })).toBe(
      'Bearer error_description="a??Set-Cookie: b????"',
    );
    expect(challengeText({ description: " ~" })).toBe('Bearer error_description=" ~"');
  });
});
