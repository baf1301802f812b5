// Which callers count as the same: a field that is missing in a key would show one caller what belongs to another.

import fc from "fast-check";
import { expect, it } from "vitest";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { callerKey } from "./caller-key.ts";
import type { Caller } from "./handler.ts";

type Given = Partial<Pick<Caller, "key" | "principal" | "endpoint" | "part" | "scopes" | "claims">>;

/** Few values, among them some that would run together if they were only joined. */
const word = fc.constantFrom("a", "b", "a\nb", '"', "[", '["a"]', "null", "1 a");
const optional = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(values, { nil: undefined });
const given: fc.Arbitrary<Given> = fc
  .record({
    key: fc.constantFrom("session 1", "session 2", "stateless 0 [null,{}]", "stateless 0 [null,{}]\na"),
    principal: optional(word),
    endpoint: optional(word),
    part: optional(word),
    scopes: optional(fc.array(word, { maxLength: 2 })),
    claims: optional(fc.record({ sub: word })),
  })
  .map((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));

/** The fields that count for each use. */
const COUNTED: Readonly<Record<Parameters<typeof callerKey>[1], (caller: Given) => readonly unknown[]>> = {
  owner: ({ principal }) => [principal],
  sessions: ({ principal }) => [principal],
  reader: ({ key, principal, endpoint, part }) => [principal, principal === undefined && key, endpoint, part],
  client: ({ key, principal }) => [key, principal],
  view: ({ key, principal, endpoint, part, scopes, claims }) => [key, principal, endpoint, part, scopes, claims],
};

it.each(Object.entries(COUNTED))(
  "callerKey() is the same for two callers only if the same counts: %s",
  (use, counted) => {
    const keyOf = (fields: Given): string => callerKey(fakeCaller(fields), use as keyof typeof COUNTED);
    fc.assert(
      fc.property(given, given, (one, other) => {
        expect(keyOf(one)).toBe(keyOf({ ...one }));
        expect(keyOf(one) === keyOf(other)).toBe(JSON.stringify(counted(one)) === JSON.stringify(counted(other)));
      }),
      { numRuns: 2_000 },
    );
  },
);

it("callerKey() of one owner with another token is another view, but the same client and reader", () => {
  const before = fakeCaller({ key: "1", principal: "ada", claims: { jti: "1" } });
  const after = fakeCaller({ key: "1", principal: "ada", claims: { jti: "2" } });
  expect(callerKey(before, "view")).not.toBe(callerKey(after, "view"));
  expect(callerKey(before, "client")).toBe(callerKey(after, "client"));
  expect(callerKey(before, "reader")).toBe(callerKey(after, "reader"));
});
