// The mark of what evaluates code, on its way from a handler to the front: whoever wraps the handler carries it on.

import { describe, expect, it } from "vitest";
import { chain } from "../chain/chain.ts";
import { upstream } from "../chain/upstream/upstream.ts";
import { redactedUpstream } from "../config/redaction.ts";
import type { Handler } from "./handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "./evaluates-code.ts";

function handler(): Handler {
  return async () => ({});
}

function live(): Handler {
  const made = handler();
  return Object.defineProperty(made, EVALUATES_CODE, { value: true });
}

describe("the mark of what evaluates code", () => {
  it("is on nothing else", () => {
    expect(evaluatesCode(live())).toBe(true);
    expect(evaluatesCode(handler())).toBe(false);
    expect(evaluatesCode(chain().to({ a: handler(), b: { command: "x" } }))).toBe(false);
    expect(evaluatesCode(upstream(handler()))).toBe(false);
    expect(evaluatesCode(redactedUpstream(upstream(handler()), (text) => text))).toBe(false);
  });

  it("is known to other copies of this package", () => {
    expect(EVALUATES_CODE).toBe(Symbol.for("catenary.live"));
  });

  it.each<[string, () => object]>([
    ["an end", () => upstream(live(), { name: "js" })],
    [
      "an end that names variables instead of what they stand for",
      () => redactedUpstream(upstream(live()), (text) => text),
    ],
    ["a chain with one end", () => chain().to(live())],
    ["a chain with several", () => chain().to({ notes: { command: "x" }, js: live() })],
    ["a chain with links", () => chain((request, context, next) => next(request, context)).to({ js: live() })],
    ["a chain behind a chain", () => chain().to({ a: handler(), b: chain().to({ c: live() }) })],
  ])("is carried by %s", (_name, wrap) => {
    expect(evaluatesCode(wrap())).toBe(true);
  });
});
