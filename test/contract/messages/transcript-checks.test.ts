// The two means by which transcripts are judged see what is wrong: without this, a judge that lets everything
// through would look like a server that does everything right.

import { describe, expect, it } from "vitest";
import { itWithSpec } from "../../support/spec/official-schema.ts";
import { missing, Judge } from "./transcript-checks.ts";

describe("Judge", () => {
  const judge = (sent: string, received: string): string[] => {
    const one = new Judge("2025-11-25");
    one.sent(sent);
    return one.received(received);
  };
  const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';

  it("knows a message from a text", () => {
    expect(judge(list, "hello")).toHaveLength(1);
    expect(judge("hello", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}')).toEqual([]);
  });

  itWithSpec("judges every message of a server by the official schema of its revision", () => {
    expect(judge(list, '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}')).toEqual([]);
    expect(judge(list, '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x"}]}}')).not.toEqual([]);
    expect(judge(list, '{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"y"}}')).not.toEqual([]);
    expect(judge(list, '{"jsonrpc":"2.0","id":1.0,"result":{"tools":[]}}')).not.toEqual([]);
    expect(judge(list, '{"jsonrpc":"2.0","method":"notifications/nothing"}')).not.toEqual([]);
    expect(judge(list, '[{"jsonrpc":"2.0","id":1,"result":{"tools":1}}]')).not.toEqual([]);
  });

  itWithSpec("judges the answer to a request that names its revision by that revision", () => {
    const meta =
      '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
    const alone = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${meta}}}`;
    const answer = '"tools":[],"ttlMs":0,"cacheScope":"private"';
    expect(judge(alone, `{"jsonrpc":"2.0","id":1,"result":{${answer},"resultType":"complete"}}`)).toEqual([]);
    expect(judge(alone, `{"jsonrpc":"2.0","id":1,"result":{${answer}}}`)).not.toEqual([]);
  });
});

describe("missing", () => {
  it("finds nothing where all that is shown is there", () => {
    expect(missing({ a: [1, { b: null }] }, { a: [1, { b: null, c: 2 }], d: 3 })).toEqual([]);
  });

  it("names the path of what is not there or not the same", () => {
    const paths = (shown: unknown, found: unknown): string[] => missing(shown, found).map(({ path }) => path);
    expect(paths({ a: { b: 1 } }, { a: {} })).toEqual(["/a/b"]);
    expect(paths({ a: false }, {})).toEqual(["/a"]);
    expect(paths({ a: [] }, { a: [1] })).toEqual(["/a/length"]);
    expect(paths({ a: [1, 2] }, { a: [1, 3] })).toEqual(["/a/1"]);
    expect(paths({ a: {} }, { a: [] })).toEqual(["/a"]);
    expect(paths({ toString: 1 }, {})).toEqual(["/toString"]);
    expect(paths({ a: "1" }, { a: 1 })).toEqual(["/a"]);
  });
});
