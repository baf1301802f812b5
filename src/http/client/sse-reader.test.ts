// Parsing server-sent events, however the bytes are split; memory is measured in sse-reader-memory.test.ts.

import fc from "fast-check";
import { expect, it } from "vitest";
import { SseReader, readSse, type ServerSentEvent } from "./sse-reader.ts";
import { formatEvent } from "../server/sse-writer.ts";

/** An event with its data as a string, without the fields that it lacks. */
interface Heard {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

interface Told {
  events: Heard[];
  /** Oversized events. */
  long: Heard[];
  retries: number[];
}

function heard({ id, event, data }: ServerSentEvent): Heard {
  return { ...(id !== undefined && { id }), ...(event !== undefined && { event }), data: data.toString() };
}

function read(chunks: readonly (string | Uint8Array)[], maxBytes?: number): Told {
  const told: Told = { events: [], long: [], retries: [] };
  const reader = new SseReader({
    ...(maxBytes === undefined ? {} : { maxBytes }),
    onEvent: (event) => (event.skipped === undefined ? told.events : told.long).push(heard(event)),
    onRetry: (ms) => told.retries.push(ms),
  });
  for (const chunk of chunks) reader.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  reader.release();
  return told;
}

/** Every way to split it in two, and into single bytes. */
function cuts(bytes: Buffer): Buffer[][] {
  const all = [[bytes], [...bytes].map((_byte, index) => bytes.subarray(index, index + 1))];
  for (let at = 0; at <= bytes.length; at += 1) all.push([bytes.subarray(0, at), bytes.subarray(at)]);
  return all;
}

it("readSse reads a body to its end", async () => {
  const events: Heard[] = [];
  const body = (async function* () {
    yield Buffer.from("data: on");
    yield Buffer.from("e\n\ndata: two\n\n");
  })();
  await expect(readSse(body, { onEvent: (event) => events.push(heard(event)) })).resolves.toBeUndefined();
  expect(events).toEqual([{ data: "one" }, { data: "two" }]);
});

it("readSse drops an incomplete event", async () => {
  const body = (async function* () {
    yield Buffer.from("data: one\n\nid: 7\ndata: two\n");
  })();
  const events: Heard[] = [];
  await expect(readSse(body, { onEvent: (event) => events.push(heard(event)) })).resolves.toBeUndefined();
  expect(events).toEqual([{ data: "one" }]);
});

it("readSse fails as the body does", async () => {
  const body = (async function* () {
    yield Buffer.from("data: one\n\n");
    throw new Error("broken");
  })();
  const events: Heard[] = [];
  await expect(readSse(body, { onEvent: (event) => events.push(heard(event)) })).rejects.toThrow("broken");
  expect(events).toEqual([{ data: "one" }]);
});

it("readSse closes the body if the callback throws", async () => {
  let isEnded = false;
  const body = (async function* () {
    try {
      yield Buffer.from("data: one\n\n");
      yield Buffer.from("data: two\n\n");
    } finally {
      isEnded = true;
    }
  })();
  const onEvent = (): void => {
    throw new Error("not that");
  };
  await expect(readSse(body, { onEvent })).rejects.toThrow("not that");
  expect(isEnded).toBe(true);
});

const cases: readonly [what: string, text: string, told: Partial<Told>][] = [
  ["of one line", "data: x\n\n", { events: [{ data: "x" }] }],
  ["without a space", "data:x\n\n", { events: [{ data: "x" }] }],
  ["with two spaces", "data:  x\n\n", { events: [{ data: " x" }] }],
  ["of many lines", "data: a\ndata: b\ndata\ndata: c\n\n", { events: [{ data: "a\nb\n\nc" }] }],
  ["with all fields", "id: 1\nevent: message\ndata: x\n\n", { events: [{ id: "1", event: "message", data: "x" }] }],
  ["with lines that end with CR LF", "id: 1\r\ndata: x\r\n\r\n", { events: [{ id: "1", data: "x" }] }],
  ["with lines that end with CR", "id: 1\rdata: x\r\r", { events: [{ id: "1", data: "x" }] }],
  [
    "with mixed line endings",
    "id: 1\r\ndata: x\rdata: y\n\r\ndata: z\n\r",
    {
      events: [{ id: "1", data: "x\ny" }, { data: "z" }],
    },
  ],
  ["behind a byte order mark", "\uFEFFdata: x\n\n", { events: [{ data: "x" }] }],
  ["with a byte order mark that is not first", "data: x\n\n\uFEFFdata: y\n\n", { events: [{ data: "x" }] }],
  ["behind a lone byte order mark", "\uFEFF\n\uFEFFdata: x\n\ndata: y\n\n", { events: [{ data: "y" }] }],
  ["among comments", ": hello\n:\ndata: x\n: again\ndata: y\n\n", { events: [{ data: "x\ny" }] }],
  ["with an id that has a NUL", "id: a\0b\ndata: x\n\n", { events: [{ data: "x" }] }],
  ["with an id that is reset", "id\ndata: x\n\n", { events: [{ id: "", data: "x" }] }],
  ["with an id alone", "id: 5\n\ndata: x\n\n", { events: [{ id: "5", data: "" }, { data: "x" }] }],
  ["with empty data", "id: 5\ndata:\n\n", { events: [{ id: "5", data: "" }] }],
  ["with neither id nor data", "event: ping\n\n\n\ndata: x\n\n", { events: [{ data: "x" }] }],
  ["with a reconnection time", "retry: 1500\ndata: x\n\n", { events: [{ data: "x" }], retries: [1500] }],
  ["with invalid reconnection times", "retry: 1.5\nretry: -1\nretry: 1e3\nretry:\nretry: 9999999999999999\n\n", {}],
  [
    "with unknown fields",
    "datum: x\nDATA: y\ndata : z\nid1: 4\nverylongname: x\ndata: x\n\n",
    {
      events: [{ data: "x" }],
    },
  ],
  ["that has not ended", "data: x\n", {}],
  ["whose line has not ended", "data: x\n\ndat", { events: [{ data: "x" }] }],
  ["that has only an id so far", "id: 4\n", {}],
  ["that has only a type so far", "event: x\n", {}],
  ["before a comment that has not ended", "data: x\n\n: comm", { events: [{ data: "x" }] }],
  ["in other scripts", "data: \u00e9\u20ac\u{1F600}\n\n", { events: [{ data: "\u00e9\u20ac\u{1F600}" }] }],
];

it.each(cases)("an event: %s", (_what, text, told) => {
  const expected = { events: [], long: [], retries: [], ...told };
  for (const chunks of cuts(Buffer.from(text))) expect(read(chunks)).toEqual(expected);
});

it("an event is reported as soon as its last line ends, even with a lone carriage return", () => {
  const events: Heard[] = [];
  const reader = new SseReader({ onEvent: (event) => events.push(heard(event)) });
  reader.push(Buffer.from("data: x\r\r"));
  expect(events).toEqual([{ data: "x" }]);
  reader.push(Buffer.from("\ndata: y\r"));
  reader.push(Buffer.from("\n\r"));
  expect(events).toEqual([{ data: "x" }, { data: "y" }]);
});

it("an event does not change when its chunk is overwritten", () => {
  const chunk = Buffer.from("data: one\n");
  const events: Heard[] = [];
  const reader = new SseReader({ onEvent: (event) => events.push(heard(event)) });
  reader.push(chunk);
  chunk.fill(0);
  reader.push(Buffer.from("\n"));
  expect(events).toEqual([{ data: "one" }]);
});

it("an event replaces invalid UTF-8 with U+FFFD", () => {
  expect(read([Buffer.from([...Buffer.from("data: a"), 0xff, ...Buffer.from("b\n\n")])]).events).toEqual([
    { data: "a\uFFFDb" },
  ]);
});

it("an event is read from any byte array", () => {
  const bytes = new Uint8Array([0, 0, ...Buffer.from("data: x\n\n"), 0]);
  expect(read([bytes.subarray(2, -1)]).events).toEqual([{ data: "x" }]);
});

const LONG = `${"x".repeat(1_100_000)}\u20ac`;

/** The reader, and what it reported. It overwrites what it is given. */
function telling(): { reader: SseReader; told: unknown[] } {
  const told: unknown[] = [];
  const reader = new SseReader({
    onEvent: (event) => {
      const { data, ...rest } = heard(event);
      told.push([data === LONG ? "long" : data, rest]);
      event.data.fill(0);
    },
  });
  return { reader, told };
}

const TEXT = Buffer.from(`event: a\nid: 1\ndata: ${LONG}\n\ndata: short\n\ndata: ${LONG}\n\n`);
const TOLD = [
  ["long", { id: "1", event: "a" }],
  ["short", {}],
  ["long", {}],
];

it("a long event is passed as bytes that may be overwritten", () => {
  const { reader, told } = telling();
  for (let at = 0; at < TEXT.length; at += 50_000) reader.push(TEXT.subarray(at, at + 50_000));
  expect(told).toEqual(TOLD);
});

it("a long event does not modify the chunk that contained it", () => {
  const { reader, told } = telling();
  const chunk = Buffer.from(TEXT);
  reader.push(chunk);
  expect(told).toEqual(TOLD);
  expect(chunk.equals(TEXT)).toBe(true);
});

it("a long event is dropped if the callback throws", () => {
  const told: string[] = [];
  let calls = 0;
  const reader = new SseReader({
    onEvent: ({ data }) => {
      calls += 1;
      if (data.length > 100) throw new Error("no");
      told.push(data.toString());
    },
  });
  expect(() => reader.push(TEXT)).toThrow("no");
  reader.push(Buffer.from("data: next\n\n"));
  expect([calls, told]).toEqual([2, ["next"]]);
});

it("an oversized event is reported without its data, and the next one is read", () => {
  const text = `data: ${"x".repeat(11)}\nid: 1\nevent: e\n\ndata: next\n\n`;
  for (const chunks of cuts(Buffer.from(text))) {
    const told = read(chunks, 10);
    expect(told.events).toEqual([{ data: "next" }]);
    expect(told.long).toEqual([{ id: "1", event: "e", data: "" }]);
  }
});

it("an oversized event is longer than the limit, in one line or in many", () => {
  for (const text of ["data: 0123456789\nid: 7\n\n", "data: 0123\ndata: 56789\nid: 7\n\n"]) {
    for (const chunks of cuts(Buffer.from(text))) {
      const { events, long } = read(chunks, 10);
      expect(long).toEqual([]);
      expect(events[0]?.data).toHaveLength(10);
      expect(events[0]?.id).toBe("7");
    }
  }
});

it("an oversized event is reported once, however many of its lines are too long", () => {
  const text = `data: 0123\ndata: 456789\nid: 1\ndata: ${"y".repeat(30)}\ndata: z\n\nid: 2\n\n`;
  for (const chunks of cuts(Buffer.from(text))) {
    const { events, long } = read(chunks, 10);
    expect(events).toEqual([{ id: "2", data: "" }]);
    expect(long).toEqual([{ id: "1", data: "" }]);
  }
});

it("an oversized event is reported with the id of its message, wherever that is, and no data", () => {
  for (const [head, tail] of [
    ['{"jsonrpc":"2.0","id":7,"result":{"x":"', '"}}'],
    ['{"result":{"x":"', '"},"jsonrpc":"2.0","id":7}'],
  ]) {
    const long: unknown[] = [];
    const reader = new SseReader({
      maxBytes: 100_000,
      onEvent: ({ data, skipped }) => long.push([data.length, skipped?.id, skipped?.isAnswerable]),
    });
    reader.push(Buffer.from(`data: ${head}`));
    for (let count = 0; count < 1_000; count += 1) reader.push(Buffer.alloc(10_000, "x"));
    reader.push(Buffer.from(`${tail}\n\n`));
    expect(long).toEqual([[0, 7, false]]);
  }
});

it("an oversized event is not a long comment or a long unknown field", () => {
  const text = `:${"c".repeat(50)}\nnone: ${"n".repeat(50_000)}\ndata: x\n\n`;
  const { events, long } = read([text.slice(0, 20), text.slice(20, 40_000), text.slice(40_000)], 10);
  expect(long).toEqual([]);
  expect(events).toEqual([{ data: "x" }]);
});

it("an oversized event has no id that is too long for a header", () => {
  expect(read([`id: ${"i".repeat(8 * 1024 + 1)}\ndata: x\n\n`]).events).toEqual([{ data: "x" }]);
});

const text = fc.string({ unit: "binary", maxLength: 40 });
const line = text.map((value) => value.replaceAll(/[\r\n]/g, "_"));
const field = line.map((value) => value.replaceAll("\0", "_"));
const written = fc.record(
  { id: field, event: field.filter((value) => value !== ""), data: fc.array(line, { minLength: 1, maxLength: 4 }) },
  { requiredKeys: [] },
);

it("the same events are read from our own SSE writer, however the bytes are split", () => {
  const parts = fc.array(fc.integer({ min: 0, max: 10_000 }), { maxLength: 8 });
  fc.assert(
    fc.property(fc.array(written, { maxLength: 5 }), fc.constantFrom("\n", "\r\n", "\r"), parts, (events, end, at) => {
      const sent = events.map(({ data, ...rest }) => ({ ...rest, ...(data && { data: data.join("\n") }) }));
      const bytes = Buffer.from(sent.map(formatEvent).join("").replaceAll("\n", end));
      const places = at.map((place) => (bytes.length === 0 ? 0 : place % bytes.length)).toSorted((a, b) => a - b);
      const chunks = [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
      const expected = sent
        .filter(({ id, data }) => id !== undefined || data !== undefined)
        .map((event) => ({ ...event, data: event.data ?? "" }));
      // A lone surrogate is written as U+FFFD.
      const asRead = JSON.parse(JSON.stringify(expected), (_key, value) =>
        typeof value === "string" ? Buffer.from(value).toString() : value,
      );
      expect(read(chunks)).toEqual({ events: asRead, long: [], retries: [] });
    }),
    { numRuns: 300 },
  );
});

it("the same events are read from any bytes, however they are split", () => {
  const piece = fc.constantFrom(
    "data: ",
    "id: ",
    "event:",
    "retry: 5",
    ": ",
    "\n",
    "\r",
    "\n\n",
    "x",
    "\u20ac",
    "\uFEFF",
    "\0",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 1, max: 12 }), (pieces, maxBytes) => {
      const bytes = Buffer.from(pieces.join(""));
      const whole = read([bytes], maxBytes);
      for (const chunks of cuts(bytes)) {
        const told = read(chunks, maxBytes);
        // How much of an oversized event is reported depends on the chunk in which the limit was exceeded.
        const heads = (one: Told): unknown => one.long.map(({ id, event }) => ({ id, event }));
        expect({ ...told, long: heads(told) }).toEqual({ ...whole, long: heads(whole) });
      }
    }),
    { numRuns: 300 },
  );
});
