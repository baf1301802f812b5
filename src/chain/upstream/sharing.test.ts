// Which callers share a session: by default, by the option `share`, and when the upstream is known to ask.

import fc from "fast-check";
import { expect, it } from "vitest";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import type { Caller } from "../../core/handler.ts";
import type { Share } from "./options.ts";
import { declaredCapabilities, sessionKeyFor } from "./sharing.ts";

const keyOf = (caller: Partial<Caller>, asks = false, share?: Share): string =>
  sessionKeyFor(share, fakeCaller(caller), asks).key;
const as = (principal: string | undefined): Partial<Caller> => (principal === undefined ? {} : { principal });
const ASKABLE: Partial<Caller> = { capabilities: { roots: {} }, canBeAsked: true };

it("callers of different principals never share a session, whatever their names, unless all share one", () => {
  const principal = fc.option(fc.string({ minLength: 1 }), { nil: undefined });
  fc.assert(
    fc.property(principal, principal, fc.boolean(), (a, b, asks) => {
      expect(keyOf(as(a), asks) === keyOf(as(b), asks)).toBe(a === b);
      const own = { ...ASKABLE, key: "k" };
      expect(keyOf({ ...own, ...as(a) }, asks) === keyOf({ ...own, ...as(b) }, asks)).toBe(a === b);
    }),
  );
  expect(keyOf({ principal: "ada" }, true, "shared")).toBe(keyOf({ ...ASKABLE, principal: "bob" }, true, "shared"));
});

it("callers of one principal share a session, whatever their styles and capabilities, until the upstream asks", () => {
  const callers: readonly Partial<Caller>[] = [
    { key: "1", style: "session" },
    { key: "2", style: "stateless" },
    { key: "3", style: "session", ...ASKABLE },
    { key: "4", style: "stateless", ...ASKABLE },
  ];
  expect(new Set(callers.map((caller) => keyOf(caller))).size).toBe(1);
  const keys = callers.map((caller) => keyOf(caller, true));
  expect(keys[0]).toBe(keys[1]);
  expect(new Set(keys).size).toBe(3);
});

it("callers have a session each by the option, if they have a session and, with per-caller, no principal", () => {
  const isOwn = (share: Share, caller: Partial<Caller>): boolean =>
    sessionKeyFor(share, fakeCaller({ style: "session", ...caller }), false).isOwn;
  expect([isOwn("per-session", {}), isOwn("per-session", { principal: "ada" })]).toEqual([true, true]);
  expect([isOwn("per-caller", {}), isOwn("per-caller", { principal: "ada" })]).toEqual([true, false]);
  expect(isOwn("per-session", { style: "stateless" })).toBe(false);
});

it("declares what its clients can answer: of one client, of any client, or of clients that cannot be asked", () => {
  const caller = fakeCaller({ capabilities: { roots: {}, extensions: { "x/y": {} } }, canBeAsked: true });
  expect(declaredCapabilities(undefined, caller, { isOwn: true, asks: true })).toBe(caller.capabilities);
  const shared = declaredCapabilities(undefined, caller, { isOwn: false, asks: false });
  expect(Object.keys(shared).toSorted()).toEqual(["elicitation", "extensions", "roots", "sampling"]);
  const quiet = declaredCapabilities(undefined, caller, { isOwn: false, asks: true });
  expect(quiet).toEqual({ extensions: { "x/y": {} } });
  expect(declaredCapabilities("shared", caller, { isOwn: false, asks: true })).toEqual(shared);
});
