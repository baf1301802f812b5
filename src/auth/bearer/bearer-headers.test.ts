// Parses the header Authorization in every form, and builds the header WWW-Authenticate.

import { expect, it } from "vitest";
import { challengeHeader, parseAuthorization } from "./bearer.ts";

it.each([
  ["Bearer abc", "abc"],
  ["bearer abc", "abc"],
  ["BEARER abc", "abc"],
  ["Bearer   abc", "abc"],
  [" Bearer abc ", "abc"],
  ["Bearer Az09-._~+/==", "Az09-._~+/=="],
  ["Bearer bearer", "bearer"],
])("Authorization has a token: %j", (value, token) => {
  expect(parseAuthorization(value)).toEqual({ token });
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
])("Authorization has no token: %j", (value) => {
  expect(parseAuthorization(value)).toEqual({});
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
])("Authorization is malformed: %j", (value) => {
  expect(parseAuthorization(value)).toEqual({
    fault: "Authorization must have the form: Bearer, one space, one token",
  });
});

it.each([["Basic a, Bearer b"], ["Basic a,bearer b"], ["Basic a, Bearer"], ["Bearer, Bearer b"], ["x,BEARER\tb"]])(
  "Authorization is malformed with several schemes: %j",
  (value) => {
    expect(parseAuthorization(value)).toEqual({ fault: "Authorization has more than one scheme" });
  },
);

it("WWW-Authenticate contains the given parameters and no others", () => {
  expect(challengeHeader({})).toBe("Bearer");
  expect(challengeHeader({ scopes: [], metadata: undefined })).toBe("Bearer");
  expect(challengeHeader({ metadata: "https://a.b/c" })).toBe('Bearer resource_metadata="https://a.b/c"');
  expect(
    challengeHeader({ error: "invalid_token", description: "No", scopes: ["a", "b"], metadata: "https://a.b/c" }),
  ).toBe('Bearer error="invalid_token", error_description="No", scope="a b", resource_metadata="https://a.b/c"');
});

it("WWW-Authenticate escapes quotes and replaces control characters", () => {
  expect(challengeHeader({ description: 'a"b\\c' })).toBe('Bearer error_description="a\\"b\\\\c"');
  expect(challengeHeader({ description: "a\r\nSet-Cookie: b\u0000\u007f\té" })).toBe(
    'Bearer error_description="a??Set-Cookie: b????"',
  );
  expect(challengeHeader({ description: " ~" })).toBe('Bearer error_description=" ~"');
});
