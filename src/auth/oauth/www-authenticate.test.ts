// Parses WWW-Authenticate, well-formed and malformed.

import { expect, it } from "vitest";
import { parseChallenge } from "./errors.ts";

const METADATA = "https://a.example/.well-known/oauth-protected-resource";

it.each([
  [`Bearer resource_metadata="${METADATA}", scope="one two"`, { metadata: METADATA, scopes: ["one", "two"] }],
  [`bearer  RESOURCE_METADATA = "${METADATA}"`, { metadata: METADATA }],
  [`Bearer resource_metadata=${METADATA}, error=invalid_token`, { metadata: METADATA, error: "invalid_token" }],
  [`Basic realm="a, Bearer b", Bearer scope="one"`, { scopes: ["one"] }],
  [`Bearer realm="x", DPoP algs="ES256", resource_metadata="${METADATA}"`, { metadata: METADATA }],
  [`Negotiate YWJj==, Bearer error="insufficient_scope"`, { error: "insufficient_scope" }],
  [`Bearer error_description="say \\"hi\\" \\\\ there"`, { description: 'say "hi" \\ there' }],
  [`Bearer scope="one", scope="two"`, { scopes: ["one"] }],
  [`Bearer scope=""`, {}],
  [`Bearer error="never closed`, { error: "never closed" }],
  [`;;; Bearer error="x"`, { error: "x" }],
  [`Other resource_metadata="${METADATA}", scope="not ours"`, { metadata: METADATA }],
  ["Bearer", {}],
  ["", {}],
  [undefined, {}],
])("reads %s", (header, expected) => {
  const { schemes: _schemes, ...params } = parseChallenge(header);
  expect(params).toEqual(expected);
});

it("returns the offered schemes", () => {
  expect([...parseChallenge('Bearer, DPoP algs="ES256", Basic realm="x"').schemes]).toEqual([
    "bearer",
    "dpop",
    "basic",
  ]);
});

it("is linear in the length of the header", () => {
  const header = `Bearer ${'a="\\"'.repeat(20_000)}${", = ".repeat(20_000)}`;
  expect(parseChallenge(header).schemes.has("bearer")).toBe(true);
});
