// Unusual thrown values: each becomes a message, in the result of a tool and in a protocol error.

import { expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { createServer } from "./server.ts";

const withMessage = (message: unknown): Error => Object.defineProperty(new Error("x"), "message", { value: message });
const throwing = (field: string): Error =>
  Object.defineProperty(new Error(""), field, {
    get: () => {
      throw new Error("getter");
    },
  });
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

const thrown: readonly (readonly [string, unknown, string])[] = [
  ["a string", "just text", "just text"],
  ["an empty string", "", "Error"],
  ["undefined", undefined, "undefined was thrown instead of an error"],
  ["null", null, "null was thrown instead of an error"],
  ["a symbol", Symbol("s"), "Symbol(s)"],
  ["an object", { code: 5 }, '{"code":5}'],
  ["an object with a message", { message: "no such city" }, "no such city"],
  ["an object without a prototype", Object.create(null), "a value that cannot be converted to a string"],
  ["a revoked proxy", revoked, "a value that cannot be converted to a string"],
  ["an error whose message is a symbol", withMessage(Symbol("s")), "Symbol(s)"],
  ["an error whose message is an object", withMessage({}), "{}"],
  [
    "an error whose message cannot be converted",
    withMessage(Object.create(null)),
    "a value that cannot be converted to a string",
  ],
  ["an error whose message getter throws", throwing("message"), "a value that cannot be converted to a string"],
  ["an error whose name getter throws", throwing("name"), "Error"],
  ["an error without a message", new RangeError(), "RangeError"],
];

it.each(thrown)("a value thrown by a handler: %s: is a message in the result of a tool", async (_what, error, text) => {
  const server = createServer({ name: "test", version: "1" }).tool("t", {}, () => {
    throw error;
  });
  const result = await fakeClient(server).call("tools/call", { name: "t" });
  expect(result).toMatchObject({ content: [{ type: "text", text }], isError: true });
});

it.each(thrown)(
  "a value thrown by a handler: %s: is a message in the error of a resource",
  async (_what, error, text) => {
    const server = createServer({ name: "test", version: "1" }).resource("a:b", {}, () => {
      throw error;
    });
    const refused = await fakeClient(server).callError("resources/read", { uri: "a:b" });
    expect(refused.toBody()).toEqual({ code: -32603, message: text, data: { kind: "internal_error" } });
  },
);
