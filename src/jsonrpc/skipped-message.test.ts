// The id of a message that is not kept, from bytes that are cut anywhere.

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../test/support/thoroughness.ts";
import { ExactId } from "./message.ts";
import { SkippedMessage } from "./skipped-message.ts";

/** The id, and whether the message is answered, after these parts. */
function skip(...parts: readonly Buffer[]): [id: unknown, isAnswerable: boolean] {
  const skipped = new SkippedMessage();
  for (const part of parts) skipped.push(part);
  return [skipped.id, skipped.isAnswerable];
}

it.each<[name: string, text: string, id: unknown, isAnswerable: boolean]>([
  ["a request", '{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":2}}', 1, true],
  ["an id at the end", '{"method":"m","params":{"id":2,"a":[{"id":3}]},"jsonrpc":"2.0","id":"z"}', "z", true],
  ["a response", '{"jsonrpc":"2.0","id":1,"result":{}}', 1, false],
  ["a response that ends with its id", '{"result":{"id":9},"jsonrpc":"2.0","id":1}', 1, false],
  ["an error", '{"error":{"code":1,"message":"x"},"id":1}', 1, false],
  ["a notification", '{"method":"m","params":{"id":1}}', null, false],
  ["spaces", ' \t{ "id" :\r\n 1 , "method" : "m" }', 1, true],
  ["a byte order mark", '\ufeff{"id":1,"method":"m"}', 1, true],
  ["quotes and brackets in strings", String.raw`{"method":"\"id\":5,}]\\","x":"{[\\\"","id":1}`, 1, true],
  ["an escaped key", String.raw`{"\u0069d":1,"method":"m"}`, 1, true],
  ["characters of several bytes", '{"id":"é€😀","method":"ü"}', "é€😀", true],
  ["an id that is an object", '{"id":{"id":1},"method":"m"}', null, false],
  ["an id that is null", '{"error":{},"id":null}', null, false],
  ["a string that looks like a key", '{"x":"id","y":["id"],"id":1,"method":"m"}', 1, true],
  ["a very long id", `{"id":"${"x".repeat(5_000)}","method":"m"}`, null, false],
  ["neither a request nor a response", '{"id":1}', 1, true],
  ["a batch", '[{"jsonrpc":"2.0","id":1,"method":"m"}]', null, true],
  ["not JSON", 'x{"id":1,"method":"m"}', null, true],
])("SkippedMessage: %s", (_name, text, id, isAnswerable) => {
  const bytes = Buffer.from(text);
  expect(skip(bytes)).toEqual([id, isAnswerable]);
  expect(skip(...Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual([id, isAnswerable]);
  for (let at = 0; at <= Math.min(bytes.length, 200); at += 1) {
    expect(skip(bytes.subarray(0, at), bytes.subarray(at))).toEqual([id, isAnswerable]);
  }
});

it("SkippedMessage keeps the spelling of an id", () => {
  expect(skip(Buffer.from('{"id":1.0,"method":"m"}'))[0]).toEqual(new ExactId("1.0", 1));
});

it("SkippedMessage keeps little of a key or an id that does not end", () => {
  const digits = Buffer.alloc(64 * 1024, "1");
  for (const start of ['{"id":', "{"]) {
    const message = new SkippedMessage();
    message.push(Buffer.from(start));
    const before = process.memoryUsage().heapUsed;
    for (let count = 0; count < 16; count++) message.push(digits);
    // One string for each byte of 1 MiB would be more than 20 MiB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10 * 1024 * 1024);
    expect(message.id).toBeNull();
  }
});

it("SkippedMessage reads the same as a parser, whatever the message", () => {
  const fields = fc.record(
    {
      id: fc.oneof(fc.string({ unit: "binary" }), fc.integer()),
      method: fc.string(),
      params: fc.jsonValue(),
      result: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fields, fc.array(fc.nat(40), { maxLength: 4 }), fc.nat(3), (message, sizes, turn) => {
      const entries = Object.entries(message);
      const rotated = [...entries.slice(turn % 4), ...entries.slice(0, turn % 4)];
      const bytes = Buffer.from(JSON.stringify(Object.fromEntries(rotated)));
      const parts: Buffer[] = [];
      let at = 0;
      for (const size of sizes) parts.push(bytes.subarray(at, (at += size)));
      const { id = null, method, result } = JSON.parse(bytes.toString()) as Record<string, unknown>;
      const [found, isAnswerable] = skip(...parts, bytes.subarray(at));
      expect(found instanceof ExactId ? found.value : found).toBe(id);
      // Once the id and the kind are known, the rest is not read.
      if (method === undefined || result === undefined)
        expect(isAnswerable).toBe(method === undefined ? result === undefined : id !== null);
    }),
    { numRuns: runs(2_000) },
  );
});
