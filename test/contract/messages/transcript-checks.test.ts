// Tests that the checks of transcripts can fail: a check that accepts everything would make every server look correct.

import { expect, it } from "vitest";
import { itWithSpec } from "../../support/spec/official-schema.ts";
import { missing, LineValidator } from "./transcript-checks.ts";

const validate = (sent: string, received: string): string[] => {
  const one = new LineValidator("2025-11-25");
  one.sent(sent);
  return one.received(received);
};
const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';

it("LineValidator rejects a line that is not a message", () => {
  expect(validate(list, "hello")).toHaveLength(1);
  expect(validate("hello", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}')).toEqual([]);
});

itWithSpec("LineValidator validates each message of a server with the official schema of its revision", () => {
  expect(validate(list, '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}')).toEqual([]);
  expect(validate(list, '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x"}]}}')).not.toEqual([]);
  expect(validate(list, '{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"y"}}')).not.toEqual([]);
  expect(validate(list, '{"jsonrpc":"2.0","id":1.0,"result":{"tools":[]}}')).not.toEqual([]);
  expect(validate(list, '{"jsonrpc":"2.0","method":"notifications/nothing"}')).not.toEqual([]);
  expect(validate(list, '[{"jsonrpc":"2.0","id":1,"result":{"tools":1}}]')).not.toEqual([]);
});

itWithSpec("LineValidator validates the answer to a stateless request in the revision that the request names", () => {
  const meta =
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
  const stateless = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${meta}}}`;
  const answer = '"tools":[],"ttlMs":0,"cacheScope":"private"';
  expect(validate(stateless, `{"jsonrpc":"2.0","id":1,"result":{${answer},"resultType":"complete"}}`)).toEqual([]);
  expect(validate(stateless, `{"jsonrpc":"2.0","id":1,"result":{${answer}}}`)).not.toEqual([]);
});

it("missing() finds nothing if everything shown is there", () => {
  expect(missing({ a: [1, { b: null }] }, { a: [1, { b: null, c: 2 }], d: 3 })).toEqual([]);
});

it("missing() returns the path of each missing or different value", () => {
  const paths = (shown: unknown, found: unknown): string[] => missing(shown, found).map(({ path }) => path);
  expect(paths({ a: { b: 1 } }, { a: {} })).toEqual(["/a/b"]);
  expect(paths({ a: false }, {})).toEqual(["/a"]);
  expect(paths({ a: [] }, { a: [1] })).toEqual(["/a/length"]);
  expect(paths({ a: [1, 2] }, { a: [1, 3] })).toEqual(["/a/1"]);
  expect(paths({ a: {} }, { a: [] })).toEqual(["/a"]);
  expect(paths({ toString: 1 }, {})).toEqual(["/toString"]);
  expect(paths({ a: "1" }, { a: 1 })).toEqual(["/a"]);
});
