// The keys by which callers share: equal for callers that look the same to an upstream, and different for others.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Context } from "../../core/handler.ts";
import { NEWEST, REVISIONS } from "../../protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";
import { callerKey, canBeAsked, fingerprint } from "./sharing.ts";

function context(capabilities: Record<string, unknown>, principal?: string, revision = NEWEST.name): Context {
  return {
    revision,
    caller: { capabilities, ...(principal === undefined ? undefined : { principal }) },
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: async () => ({}),
  };
}

describe("a caller's key", () => {
  it("is the same for the same capabilities in any order, and with or without tasks", () => {
    const one = { elicitation: { form: {}, url: {} }, roots: {} };
    const other = { roots: {}, elicitation: { url: {}, form: {} } };
    expect(fingerprint(one)).toBe(fingerprint(other));
    expect(fingerprint({ ...one, extensions: { [TASKS_EXTENSION]: {} } })).toBe(fingerprint(one));
    expect(fingerprint({ ...one, extensions: { [TASKS_EXTENSION]: {}, "x/y": {} } })).not.toBe(fingerprint(one));
    expect(fingerprint({})).not.toBe(fingerprint(one));
  });

  it("is short for long capabilities, and still different for others", () => {
    const long = (end: string) => ({ roots: {}, experimental: { x: "y".repeat(100_000) + end } });
    expect(fingerprint(long("1")).length).toBeLessThan(1_000);
    expect(fingerprint(long("1"))).toBe(fingerprint({ experimental: long("1").experimental, roots: {} }));
    expect(fingerprint(long("1"))).not.toBe(fingerprint(long("2")));
  });

  it("differs between principals, whatever their names, and from none", () => {
    fc.assert(
      fc.property(fc.option(fc.string(), { nil: undefined }), fc.option(fc.string(), { nil: undefined }), (a, b) => {
        expect(callerKey(context({}, a)) === callerKey(context({}, b))).toBe(a === b);
      }),
    );
    expect(callerKey(context({}, ""))).not.toBe(callerKey(context({})));
  });

  it("differs between styles, and is the same for all revisions of one", () => {
    const keys = REVISIONS.map(({ name: revision }) => callerKey(context({}, "ada", revision)));
    expect(new Set(keys.slice(0, -1)).size).toBe(1);
    expect(keys.at(-1)).not.toBe(keys[0]);
  });

  it("goes with whether the caller can be asked", () => {
    expect(
      [{ roots: {} }, { sampling: {} }, { elicitation: {} }].map((capabilities) => canBeAsked({ capabilities })),
    ).toEqual([true, true, true]);
    expect(canBeAsked({ capabilities: { extensions: {} } })).toBe(false);
  });
});
