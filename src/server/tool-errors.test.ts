// Things that programs throw and no one would expect: each still becomes a text, in a result of a tool and in an
// error of the protocol.

import { describe, expect, it } from "vitest";
import { desk } from "../../test/support/desk.ts";
import { createServer } from "./server.ts";

const withMessage = (message: unknown): Error => Object.defineProperty(new Error("x"), "message", { value: message });
const biting = (field: string): Error =>
  Object.defineProperty(new Error(""), field, {
    get: () => {
      throw new Error("bite");
    },
  });
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

const thrown: readonly (readonly [string, unknown, string])[] = [
  ["a text", "just text", "just text"],
  ["an empty text", "", "Error"],
  ["nothing", undefined, "undefined"],
  ["a symbol", Symbol("s"), "Symbol(s)"],
  ["an object", { a: 1 }, "[object Object]"],
  ["an object without a prototype", Object.create(null), "something that has no text"],
  ["a proxy that is no more", revoked, "something that has no text"],
  ["an error whose message is a symbol", withMessage(Symbol("s")), "Symbol(s)"],
  ["an error whose message is an object", withMessage({}), "[object Object]"],
  ["an error whose message has no text", withMessage(Object.create(null)), "something that has no text"],
  ["an error whose message bites", biting("message"), "something that has no text"],
  ["an error whose name bites", biting("name"), "Error"],
  ["an error without a message", new RangeError(), "RangeError"],
];

describe("what a handler throws", () => {
  it.each(thrown)("%s: a text in the result of a tool", async (_what, error, text) => {
    const server = createServer({ name: "test", version: "1" }).tool("t", {}, () => {
      throw error;
    });
    const result = await desk(server).call("tools/call", { name: "t" });
    expect(result).toMatchObject({ content: [{ type: "text", text }], isError: true });
  });

  it.each(thrown)("%s: a text in the error of a resource", async (_what, error, text) => {
    const server = createServer({ name: "test", version: "1" }).resource("a:b", {}, () => {
      throw error;
    });
    const refused = await desk(server).refused("resources/read", { uri: "a:b" });
    expect(refused.toBody()).toEqual({ code: -32603, message: text, data: { kind: "internal_error" } });
  });
});
