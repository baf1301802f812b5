// Who is the same to an end, and who must never be taken for another.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Context } from "../../core/handler.ts";
import { NEWEST, REVISIONS } from "../../protocol/revisions/index.ts";
import { TASKS } from "../../protocol/tasks.ts";
import { callerKey, canBeAsked, fingerprint } from "./caller-key.ts";

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
    expect(fingerprint({ ...one, extensions: { [TASKS]: {} } })).toBe(fingerprint(one));
    expect(fingerprint({ ...one, extensions: { [TASKS]: {}, "x/y": {} } })).not.toBe(fingerprint(one));
    expect(fingerprint({})).not.toBe(fingerprint(one));
  });

  it("is short, however much is declared, and still another for others", () => {
    const long = (end: string) => ({ roots: {}, experimental: { x: "y".repeat(100_000) + end } });
    expect(fingerprint(long("1")).length).toBeLessThan(1_000);
    expect(fingerprint(long("1"))).toBe(fingerprint({ experimental: long("1").experimental, roots: {} }));
    expect(fingerprint(long("1"))).not.toBe(fingerprint(long("2")));
  });

  it("is another for another person, whatever their names, and for nobody", () => {
    fc.assert(
      fc.property(fc.option(fc.string(), { nil: undefined }), fc.option(fc.string(), { nil: undefined }), (a, b) => {
        expect(callerKey(context({}, a)) === callerKey(context({}, b))).toBe(a === b);
      }),
    );
    expect(callerKey(context({}, ""))).not.toBe(callerKey(context({})));
  });

  it("is another for the other style, and the same for all revisions of one", () => {
    const keys = REVISIONS.map(({ name: revision }) => callerKey(context({}, "ada", revision)));
    expect(new Set(keys.slice(0, -1)).size).toBe(1);
    expect(keys.at(-1)).not.toBe(keys[0]);
  });

  it("tells who can be asked", () => {
    expect(
      [{ roots: {} }, { sampling: {} }, { elicitation: {} }].map((capabilities) => canBeAsked({ capabilities })),
    ).toEqual([true, true, true]);
    expect(canBeAsked({ capabilities: { extensions: {} } })).toBe(false);
  });
});
