// The mark of handlers that evaluate code: every wrapper of a handler must carry it on.

import { expect, it } from "vitest";
import { chain } from "../chain/chain.ts";
import { upstream } from "../chain/upstream/upstream.ts";
import { redactUpstream } from "../config/redaction.ts";
import type { Handler } from "./handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "./handler-marks.ts";

function handler(): Handler {
  return async () => ({});
}

function marked(): Handler {
  const made = handler();
  return Object.defineProperty(made, EVALUATES_CODE, { value: true });
}

it("the mark of a handler that evaluates code is absent from other handlers", () => {
  expect(evaluatesCode(marked())).toBe(true);
  expect(evaluatesCode(handler())).toBe(false);
  expect(evaluatesCode(chain().to({ a: handler(), b: { command: "x" } }))).toBe(false);
  expect(evaluatesCode(upstream(handler()))).toBe(false);
  expect(evaluatesCode(redactUpstream(upstream(handler()), (text) => text))).toBe(false);
});

it("the mark of a handler that evaluates code is shared with other copies of this package", () => {
  expect(EVALUATES_CODE).toBe(Symbol.for("catenary.evaluatesCode"));
});

it.each<[string, () => object]>([
  ["an upstream", () => upstream(marked(), { name: "js" })],
  ["a redacted upstream", () => redactUpstream(upstream(marked()), (text) => text)],
  ["a chain with one upstream", () => chain().to(marked())],
  ["a chain with several", () => chain().to({ notes: { command: "x" }, js: marked() })],
  ["a chain with middleware", () => chain((request, context, next) => next(request, context)).to({ js: marked() })],
  ["a chain behind a chain", () => chain().to({ a: handler(), b: chain().to({ c: marked() }) })],
])("the mark of a handler that evaluates code is carried by %s", (_name, wrap) => {
  expect(evaluatesCode(wrap())).toBe(true);
});
