// What is kept of a call, written and read again: values that several messages share, values that cannot be written, and
// those that are large or change later.

import { expect, it } from "vitest";
import type { Step } from "../chain/steps.ts";
import type { Request, Result } from "../core/handler.ts";
import { shownHead } from "../core/http-head.ts";
import { McpError } from "../protocol/errors.ts";
import { CallRecord, decodeRecord, encodeRecord, NOT_KEPT } from "./call-record.ts";

const AT = 1_000_000;

function recordOf(request: Request, result?: Result): CallRecord {
  const record = new CallRecord(7, AT, request, 12.5);
  record.result = result;
  return record;
}

const readAgain = (record: CallRecord): CallRecord => decodeRecord(7, AT, encodeRecord(record));
const textResult = (text: string): Result => ({ resultType: "complete", content: [{ type: "text", text }] });

it("writes a value once that the call, its steps and its messages share", () => {
  const params = { name: "echo", arguments: { text: "only here: Grüße 日本" } };
  const result = textResult("result");
  const request = { method: "tools/call", params };
  const record = recordOf(request, result);
  const step = { kind: "upstream", name: "notes", request, result, startedAt: 12.75, endedAt: 14 } as const;
  const steps: readonly Step[] = [{ ...step, kind: "middleware", name: "log", steps: [{ ...step, steps: [] }] }];
  record.steps = steps;
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
  const headers = { Authorization: "Bearer abcdef", host: "a" };
  const http = shownHead({ line: "POST /mcp", headers });
  record.passed({ side: "client", sender: "client", revision: "r1", message, http }, AT + 1);
  record.passed({ side: "upstream", sender: "client", upstream: "notes", message: { ...message, id: null } }, AT + 2);
  record.passed({ side: "upstream", sender: "server", message: { jsonrpc: "2.0", id: "x", result } }, AT + 3);
  record.passed({ side: "client", sender: "server", message: { jsonrpc: "2.0", extra: 1 } }, AT + 3);
  const { text, large } = encodeRecord(record);
  expect(text.match(/only here/g)).toHaveLength(1);
  expect(text).not.toContain("abcdef");
  expect(large).toEqual([]);
  const read = readAgain(record);
  expect(read).toMatchObject({ id: 7, at: AT, startedAt: 12.5, request, result, steps, times: record.times });
  expect(read.wire).toEqual([
    {
      ...{ side: "client", sender: "client", revision: "r1", message },
      http: { line: "POST /mcp", headers: { authorization: "Bearer [redacted]", host: "a" } },
    },
    { side: "upstream", sender: "client", upstream: "notes", message: { ...message, id: null } },
    { side: "upstream", sender: "server", message: { jsonrpc: "2.0", id: "x", result } },
    { side: "client", sender: "server", message: { jsonrpc: "2.0", extra: 1 } },
  ]);
  // What nothing has changed is one object again.
  expect(read.steps[0]?.request.params).toBe(read.request.params);
  expect(readAgain(read)).toEqual(read);
});

it("keeps an error with its code, its kind and its data", () => {
  const record = recordOf({ method: "tools/call", params: {} });
  record.error = McpError.of("invalid_params", "no such thing", { field: "a" });
  const { error } = readAgain(record);
  expect(error).toBeInstanceOf(McpError);
  expect(error).toMatchObject({ message: "no such thing", kind: "invalid_params", data: { field: "a" } });
});

it("says of values that cannot be written that they cannot", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const throwing = Object.defineProperty({}, "a", {
    enumerable: true,
    get: () => {
      throw new Error("no");
    },
  });
  for (const value of [cycle, throwing, { big: 1n }, { toJSON: () => throwing }]) {
    const read = readAgain(recordOf({ method: "tools/call", params: value }, textResult("fine")));
    expect(read.request).toEqual({ method: "tools/call", params: "(not serializable)" });
    expect(read.result).toEqual(textResult("fine"));
  }
  const hostile = new Proxy({} as Request, {
    get: () => {
      throw new Error("no");
    },
  });
  const record = recordOf({ method: "tools/call", params: {} });
  record.steps = [{ kind: "middleware", name: "odd", request: hostile, startedAt: 13, steps: [] }];
  expect(readAgain(record).request).toEqual({ method: "tools/call", params: "(not serializable)" });
});

it("keeps what a value was when it was written, and large ones as they are", () => {
  const params = { name: "echo", arguments: { text: "before" } };
  const large = textResult("y".repeat(100_000));
  const encoded = encodeRecord(recordOf({ method: "tools/call", params }, large));
  params.arguments.text = "after";
  expect(encoded.text.length).toBeLessThan(1_000);
  expect(encoded.large).toEqual([large]);
  expect(encoded.largeBytes).toBeGreaterThan(99_000);
  const read = decodeRecord(7, AT, encoded);
  expect(read.request.params["arguments"]).toEqual({ text: "before" });
  expect(read.result).toEqual(large);
});

it("counts what a value holds behind its first hundred values", () => {
  const small = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`k${at}`, 1]));
  const sneaky = { first: "x".repeat(33_000), ...small, big: "y".repeat(5_000_000) };
  const encoded = encodeRecord(recordOf({ method: "tools/call", params: {} }, { ...textResult("a"), ...sneaky }));
  expect(encoded.largeBytes).toBeGreaterThan(5_000_000);
  const many = encodeRecord(recordOf({ method: "tools/call", params: {} }, { ...textResult("a"), ...small }));
  expect(many.large).toEqual([]);
  expect(many.text).toContain('"k199":1');
});

it("does not keep a value with very many values in it", () => {
  const wide = Object.fromEntries(Array.from({ length: 400_000 }, (_, at) => [`k${at}`, at]));
  const record = recordOf({ method: "tools/call", params: {} }, { ...textResult("a"), structuredContent: wide });
  const encoded = encodeRecord(record);
  expect([encoded.text.length < 1_000, encoded.large.length]).toEqual([true, 0]);
  expect(readAgain(record).result).toBe(NOT_KEPT);
});

it("keeps the first and the last of many messages, and says so", () => {
  const record = recordOf({ method: "tools/call", params: {} });
  for (let id = 0; id < 500; id += 1) {
    record.passed(
      { side: "client", sender: "server", message: { jsonrpc: "2.0", method: "m", params: { id } } },
      AT + id,
    );
  }
  const { wire, times, isWireCut } = readAgain(record);
  expect(isWireCut).toBe(true);
  expect(wire).toHaveLength(200);
  expect(times.slice(48, 52)).toEqual([AT + 48, AT + 49, AT + 350, AT + 351]);
});
