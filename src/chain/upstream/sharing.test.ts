// The key by which callers share a session: equal for callers that look the same to an upstream, different for others.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import type { Caller } from "../../core/handler.ts";
import { sharedKey } from "./sharing.ts";

const keyOf = (caller: Partial<Caller>): string => sharedKey(fakeCaller(caller));
const as = (principal: string | undefined): Partial<Caller> => (principal === undefined ? {} : { principal });

describe("the key of callers that share a session", () => {
  it("differs between principals, whatever their names, and from none", () => {
    fc.assert(
      fc.property(fc.option(fc.string(), { nil: undefined }), fc.option(fc.string(), { nil: undefined }), (a, b) => {
        expect(keyOf(as(a)) === keyOf(as(b))).toBe(a === b);
      }),
    );
    expect(keyOf({ principal: "" })).not.toBe(keyOf({}));
  });

  it("differs between styles and capabilities, and is the same for all sessions with the same ones", () => {
    const [one, other] = [keyOf({ style: "session" }), keyOf({ style: "session" })];
    expect(one).toBe(other);
    expect(keyOf({})).not.toBe(one);
    expect(keyOf({ style: "session", capabilities: { roots: {} } })).not.toBe(one);
  });
});
