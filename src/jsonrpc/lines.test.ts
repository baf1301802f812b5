// Lines from bytes that are cut anywhere, with bounded memory and work.

import { expect, it } from "vitest";
import * as fc from "fast-check";
import { LineReader } from "./lines.ts";
import type { ErrorMessage } from "./message.ts";
import { runs } from "../../test/support/thoroughness.ts";

type Seen = string | { fault: number };

function reader(maxBytes = 1000): { reader: LineReader; seen: Seen[]; faults: ErrorMessage[] } {
  const seen: Seen[] = [];
  const faults: ErrorMessage[] = [];
  const lines = new LineReader({
    maxBytes,
    onLine: (text) => seen.push(text),
    onFault: (fault) => {
      faults.push(fault);
      seen.push({ fault: fault.error.code });
    },
  });
  return { reader: lines, seen, faults };
}

/** All lines and faults that these chunks give. */
function read(chunks: readonly Uint8Array[], maxBytes?: number): Seen[] {
  const { reader: lines, seen } = reader(maxBytes);
  for (const chunk of chunks) lines.push(chunk);
  lines.end();
  return seen;
}

function bytes(...parts: readonly (string | number[])[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));
}

const BOM = [0xef, 0xbb, 0xbf];
const BAD = [0x22, 0xff, 0xfe, 0x22];

// A stream, and the lines and faults that it must give under a limit of 40 bytes, however it is cut.
const corpus: [name: string, stream: Buffer, seen: Seen[]][] = [
  ["nothing", bytes(""), []],
  ["one line", bytes('{"a":1}\n'), ['{"a":1}']],
  ["a last line without newline", bytes("a\nb"), ["a", "b"]],
  ["CRLF", bytes("a\r\nb\r\n"), ["a", "b"]],
  ["CR inside", bytes("a\rb\n"), ["a\rb"]],
  ["blank lines", bytes("\n\r\n  \t\na\n \n\n"), ["a"]],
  ["a BOM", bytes(BOM, "a\n"), ["a"]],
  ["a BOM alone", bytes(BOM, "\na\n"), ["a"]],
  ["a BOM later is left to the codec", bytes("a\n", BOM, "b\n"), ["a", "\ufeffb"]],
  ["a BOM after a first line over the limit", bytes(`${"x".repeat(41)}\n`, BOM, "b"), [{ fault: -32600 }, "\ufeffb"]],
  ["characters of two, three and four bytes", bytes("é€😀\n😀\n"), ["é€😀", "😀"]],
  ["U+2028, U+0085 and NUL are not newlines", bytes("a\u2028b\u0085c\u0000d\n"), ["a\u2028b\u0085c\u0000d"]],
  ["invalid UTF-8", bytes("a\n", BAD, "\nb\n"), ["a", { fault: -32700 }, "b"]],
  [
    "a character cut off by the newline",
    bytes([0xe2, 0x82], "\n", [0xac], "\nb\n"),
    [{ fault: -32700 }, { fault: -32700 }, "b"],
  ],
  ["half a surrogate pair as UTF-8", bytes([0xed, 0xa0, 0x80], "\nb"), [{ fault: -32700 }, "b"]],
  ["a line of just the limit", bytes(`${"x".repeat(40)}\ny\n`), ["x".repeat(40), "y"]],
  ["a line over the limit", bytes(`a\n${"x".repeat(41)}\ny\n`), ["a", { fault: -32600 }, "y"]],
  ["a last line over the limit", bytes(`a\n${"x".repeat(95)}`), ["a", { fault: -32600 }]],
  [
    "two lines over the limit",
    bytes(`${"x".repeat(60)}\n${"y".repeat(90)}\nz`),
    [{ fault: -32600 }, { fault: -32600 }, "z"],
  ],
];

it.each(corpus)("LineReader: %s", (_name, stream, seen) => {
  expect(read([stream], 40)).toEqual(seen);
  expect(
    read(
      Array.from(stream, (byte) => Uint8Array.of(byte)),
      40,
    ),
  ).toEqual(seen);
  const text = JSON.stringify(seen);
  const differing: string[] = [];
  for (let cut = 0; cut <= stream.length; cut++) {
    for (let next = cut; next <= stream.length; next++) {
      const chunks = [stream.subarray(0, cut), stream.subarray(cut, next), stream.subarray(next)];
      const readNow = JSON.stringify(read(chunks, 40));
      if (readNow !== text) differing.push(`cut at ${cut} and ${next}: ${readNow}`);
    }
  }
  expect(differing).toEqual([]);
});

it("LineReader does not depend on how the stream is cut (20,000 random cases)", () => {
  const line = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.string({ unit: "binary", maxLength: 12 }).map((text) => bytes(text.replaceAll("\n", ""))),
    },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ maxLength: 12 }).map((raw) => Buffer.from(raw.filter((byte) => byte !== 10))),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(bytes(BOM), bytes("\r"), bytes(" "), bytes("x".repeat(39)), bytes("é".repeat(21))),
    },
  );
  const stream = fc.array(line, { maxLength: 6 });
  const sizes = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(stream, sizes, fc.boolean(), (lines, cuts, closed) => {
      const whole = Buffer.concat(
        lines.flatMap((one, at) => (at < lines.length - 1 || closed ? [one, Buffer.from("\n")] : [one])),
      );
      const chunks: Buffer[] = [];
      for (let at = 0, k = 0; at < whole.length; k++) {
        const size = Math.max(cuts[k % cuts.length]!, cuts.every((cut) => cut === 0) ? 1 : 0);
        chunks.push(whole.subarray(at, at + size));
        at += size;
      }
      const { reader: cut, seen } = reader(40);
      for (const chunk of chunks) {
        cut.push(chunk);
        if (cut.buffered > 40) throw new Error(`keeps ${cut.buffered}`);
      }
      cut.end();
      expect(seen).toEqual(expected(lines, 40));
    }),
    { numRuns: runs(20_000) },
  );
});

it("LineReader names the limit as soon as it is exceeded", () => {
  const { reader: lines, seen, faults } = reader(10);
  lines.push(Buffer.from("0123456789"));
  expect(seen).toEqual([]);
  expect(lines.buffered).toBe(10);
  lines.push(Buffer.from("a"));
  expect(faults).toEqual([
    {
      jsonrpc: "2.0",
      id: null,
      error: {
        code: -32600,
        message: "Message longer than 10 bytes (limits.messageBytes)",
        data: { kind: "invalid_request", details: "Message longer than 10 bytes (limits.messageBytes)" },
      },
    },
  ]);
  expect(lines.buffered).toBe(0);
  lines.push(Buffer.from("more\nok\n"));
  expect(seen).toEqual([{ fault: -32600 }, "ok"]);
});

it("LineReader reports a line over the limit with its id, as soon as that is known, and once", () => {
  const long = "x".repeat(100);
  const lines: [line: string, known: number, id: unknown, answerable: boolean][] = [
    [`{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":"${long}"}}`, 60, 5, true],
    [`{"method":"m","params":{"a":"${long}"},"jsonrpc":"2.0","id":"a"}`, 156, "a", true],
    [`{"result":{"a":"${long}","id":1},"jsonrpc":"2.0","id":5}`, 148, 5, false],
    [`{"method":"m","params":{"id":5,"a":"${long}"}}`, 138, null, false],
  ];
  for (const [line, known, id, answerable] of lines) {
    const faults: unknown[] = [];
    const reading = new LineReader({
      maxBytes: 60,
      onLine: (text) => faults.push(text),
      onFault: (fault, isAnswerable) => faults.push([at, fault.id, isAnswerable]),
    });
    let at = 0;
    for (const byte of Buffer.from(`${line}\nnext\n`)) {
      reading.push(Uint8Array.of(byte));
      expect(reading.buffered).toBeLessThanOrEqual(60);
      at += 1;
    }
    expect(faults).toEqual([[known, id, answerable], "next"]);
  }
});

it("LineReader reports invalid UTF-8", () => {
  const { reader: lines, faults } = reader();
  lines.push(bytes(BAD, "\n"));
  const data = { kind: "parse_error", details: "Invalid UTF-8" };
  expect(faults).toEqual([{ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error", data } }]);
});

it("LineReader copies a chunk, which may change afterwards", () => {
  const { reader: lines, seen } = reader();
  const chunk = Buffer.from("abc");
  lines.push(chunk);
  chunk.fill("x");
  lines.push(Buffer.from("d\n"));
  expect(seen).toEqual(["abcd"]);
});

it("LineReader reads a view into a larger buffer", () => {
  const { reader: lines, seen } = reader();
  lines.push(new Uint8Array(new TextEncoder().encode("..ab\ncd..").buffer, 2, 5));
  lines.end();
  expect(seen).toEqual(["ab", "cd"]);
});

/** Counts the bytes that are searched, copied and allocated while `run` runs. */
function work(run: () => void): { searched: number; copied: number; buffers: number[] } {
  const count = { searched: 0, copied: 0, buffers: [] as number[] };
  // Plain wrappers, because a spy would remember each of a million calls.
  const wrap = <T extends object>(
    owner: T,
    name: keyof T,
    note: (self: Buffer, args: unknown[], got: unknown) => void,
  ) => {
    const before = Object.getOwnPropertyDescriptor(owner, name);
    const original = owner[name] as (...args: unknown[]) => unknown;
    const counting = function (this: Buffer, ...args: unknown[]): unknown {
      const got = original.apply(this, args);
      note(this, args, got);
      return got;
    };
    Object.defineProperty(owner, name, { value: counting, configurable: true, writable: true });
    return (): void => {
      if (before === undefined) Reflect.deleteProperty(owner, name);
      else Object.defineProperty(owner, name, before);
    };
  };
  const undo = [
    wrap(Buffer.prototype, "indexOf", (self, [, from], found) => {
      count.searched += (found === -1 ? self.length : Number(found) + 1) - Number(from);
    }),
    wrap(Buffer.prototype, "copy", (_self, _args, copied) => {
      count.copied += Number(copied);
    }),
    wrap(Buffer, "allocUnsafeSlow", (_, [size]) => {
      count.buffers.push(Number(size));
    }),
  ];
  try {
    run();
  } finally {
    for (const one of undo) one();
  }
  return count;
}

it("the work of a LineReader is linear in the bytes: a line of 1 MB in chunks of one byte", () => {
  const size = 1_000_000;
  const { reader: lines, seen } = reader(size);
  const one = Buffer.from("x");
  const done = work(() => {
    for (let i = 0; i < size; i++) lines.push(one);
    lines.push(Buffer.from("\n"));
  });
  expect((seen[0] as string).length).toBe(size);
  expect(done.searched).toBe(size + 1);
  // Each byte once into the buffer, and once more when the buffer grows.
  expect(done.copied).toBeLessThan(2.1 * size);
  // Few buffers, none of them beyond the limit.
  expect(Math.max(...done.buffers)).toBe(size);
  expect(done.buffers.length).toBeLessThan(10);
});

it("the work of a LineReader copies nothing if chunks contain whole lines", () => {
  const { reader: lines, seen } = reader();
  const chunk = Buffer.from(`${"x".repeat(99)}\n`.repeat(500));
  const done = work(() => {
    lines.push(chunk);
  });
  expect(seen).toHaveLength(500);
  expect(done).toEqual({ searched: chunk.length, copied: 0, buffers: [] });
});

it("the work of a LineReader keeps no more than the limit of 100 MB without a newline in chunks of 4 KiB", () => {
  const limit = 4 * 1024 * 1024;
  const { reader: lines, seen } = reader(limit);
  const chunk = Buffer.alloc(4096, "x");
  let maxBuffered = 0;
  const done = work(() => {
    for (let i = 0; i < 25_600; i++) {
      lines.push(chunk);
      maxBuffered = Math.max(maxBuffered, lines.buffered);
    }
    lines.push(Buffer.from("\nok\n"));
  });
  expect(maxBuffered).toBe(limit);
  expect(seen).toEqual([{ fault: -32600 }, "ok"]);
  expect(done.copied).toBeLessThan(2 * limit);
  expect(Math.max(...done.buffers)).toBe(limit);
  expect(done.searched).toBe(25_600 * 4096 + 4);
});

/** The expected result for whole lines: the rules, stated plainly. */
function expected(lines: readonly Buffer[], maxBytes: number): Seen[] {
  return lines.flatMap((line, at): Seen[] => {
    if (line.length > maxBytes) return [{ fault: -32600 }];
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line);
    } catch {
      return [{ fault: -32700 }];
    }
    if (at === 0) text = text.replace(/^\ufeff/, "");
    text = text.replace(/\r$/, "");
    return text.trim() === "" ? [] : [text];
  });
}
