// WWW-Authenticate, well and badly written.

import { expect, it } from "vitest";
import { toldBy } from "./challenges.ts";

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
  const { schemes: _schemes, ...told } = toldBy(header);
  expect(told).toEqual(expected);
});

it("knows the schemes that were offered", () => {
  expect([...toldBy('Bearer, DPoP algs="ES256", Basic realm="x"').schemes]).toEqual(["bearer", "dpop", "basic"]);
});

it("takes no longer than the header is long", () => {
  const header = `Bearer ${'a="\\"'.repeat(20_000)}${", = ".repeat(20_000)}`;
  expect(toldBy(header).schemes.has("bearer")).toBe(true);
});
