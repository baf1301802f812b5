// The stand-in for Buffer does what Node's does, for everything that the client and the fetch server use.

import { Buffer as NodeBuffer, isAscii as nodeIsAscii, isUtf8 as nodeIsUtf8 } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../test/support/thoroughness.ts";
import { Buffer, isAscii, isUtf8 } from "./node-buffer.ts";

const ENCODINGS = ["utf8", "latin1", "base64", "base64url", "hex"] as const;
const numRuns = runs(2_000);
const bytesOf = (buffer: Uint8Array): number[] => [...buffer];

it("the field `browser` of package.json replaces every module of Node that the sources import", () => {
  const root = new URL("../../", import.meta.url);
  const { browser } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { browser: object };
  const sources = readdirSync(new URL("src", root), { recursive: true, encoding: "utf8" });
  const imported = sources
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map((name) => readFileSync(new URL(`src/${name}`, root), "utf8"))
    .flatMap((text) => [...text.matchAll(/ from "(node:[\w/]+)"/g)].map(([, name]) => name));
  expect([...new Set(imported)].filter((name) => !Object.hasOwn(browser, name ?? ""))).toEqual([]);
});

it.each(ENCODINGS)("Buffer reads and writes %s as Node does", (encoding) => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const text = NodeBuffer.from(bytes).toString(encoding);
      expect(bytesOf(Buffer.from(text, encoding))).toEqual(bytesOf(NodeBuffer.from(text, encoding)));
    }),
    { numRuns },
  );
  const unit = fc.constantFrom("a", "Z", "9", "+", "/", "-", "_", "=", "f", "\n", "ü", "€", "😀");
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      const isCanonical = Buffer.from(text, encoding).toString(encoding) === text;
      expect(isCanonical).toBe(NodeBuffer.from(text, encoding).toString(encoding) === text);
    }),
    { numRuns },
  );
  fc.assert(
    fc.property(fc.uint8Array(), fc.nat(20), fc.nat(40), (bytes, start, end) => {
      expect(Buffer.from(bytes).toString(encoding)).toBe(NodeBuffer.from(bytes).toString(encoding));
      const from = Math.min(start, end);
      expect(Buffer.from(bytes).toString(encoding, from, end)).toBe(
        NodeBuffer.from(bytes).toString(encoding, from, end),
      );
    }),
    { numRuns },
  );
});

it("Buffer reads memory that can be resized", () => {
  const Resizable = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer;
  const view = Buffer.from(new Resizable(3, { maxByteLength: 9 }));
  view.write("€");
  expect(view.toString()).toBe("€");
});

it("Buffer shares memory with a view, and copies an array", () => {
  const memory = new ArrayBuffer(8);
  const view = Buffer.from(memory, 2, 4);
  expect(view.write("€", 1)).toBe(3);
  expect(bytesOf(new Uint8Array(memory))).toEqual([0, 0, 0, 0xe2, 0x82, 0xac, 0, 0]);
  expect(view.subarray(1, 4).toString()).toBe("€");
  expect(view.indexOf(0xac)).toBe(3);
  const copy = Buffer.from(view);
  copy[0] = 7;
  expect(view[0]).toBe(0);
  expect(Buffer.isBuffer(copy) && Buffer.isBuffer(copy.subarray(1)) && !Buffer.isBuffer(new Uint8Array(1))).toBe(true);
  expect([Buffer.alloc(2).length, Buffer.allocUnsafe(3).length, Buffer.byteLength("ü€")]).toEqual([2, 3, 5]);
  expect(Buffer.from(new Uint8Array(20_000).fill(65)).toString("latin1")).toBe("A".repeat(20_000));
});

it("Buffer tells ASCII and UTF-8 as Node does", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 6 }), (bytes) => {
      expect([isAscii(bytes), isUtf8(bytes)]).toEqual([nodeIsAscii(bytes), nodeIsUtf8(bytes)]);
    }),
    { numRuns },
  );
});
