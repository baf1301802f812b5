// The wire format of events, and disconnecting slow readers.

import fc from "fast-check";
import { expect, it } from "vitest";
import { SseWriter, formatEvent } from "./sse-writer.ts";
import type { SseEvent, StreamLimits } from "./sse-writer.ts";
import type { StreamSink } from "./http-request.ts";
import { runs } from "../../../test/support/thoroughness.ts";

const LIMITS: StreamLimits = { unreadBytes: 1_000, lingeringBytes: 100, lingeringMs: 10_000, keepAliveMs: 15_000 };

class Recorder implements StreamSink {
  text = "";
  bufferedBytes = 0;
  acts: string[] = [];
  write(text: string): void {
    this.text += text;
    this.bufferedBytes += text.length;
  }
  end(): undefined {
    this.acts.push("end");
  }
  destroy(): void {
    this.acts.push("destroyed");
  }
}

/** Parses a stream as the standard says: id, type and data of each event. */
function read(text: string): { id: string; event: string; data: string; retry?: number }[] {
  const events: { id: string; event: string; data: string; retry?: number }[] = [];
  let id = "";
  let event = "message";
  let retry: number | undefined;
  let data: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.length > 0) {
        events.push({ id, event, data: data.join("\n"), ...(retry === undefined ? undefined : { retry }) });
      }
      event = "message";
      data = [];
      continue;
    }
    if (line.startsWith(":")) continue;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "event") event = value;
    else if (field === "retry" && /^\d+$/.test(value)) retry = Number(value);
    else if (field === "data") data.push(value);
  }
  return events;
}

const rows: readonly [string, SseEvent, string][] = [
  ["nothing but data", { data: "{}" }, "data: {}\n\n"],
  [
    "all parts",
    { id: "a-1", event: "message", retry: 500, data: "x" },
    "id: a-1\nevent: message\nretry: 500\ndata: x\n\n",
  ],
  ["data that is empty", { id: "a-0", data: "" }, "id: a-0\ndata: \n\n"],
  ["no data at all", { retry: 3_000 }, "retry: 3000\n\n"],
  ["a line feed", { data: "a\nb" }, "data: a\ndata: b\n\n"],
  ["a carriage return", { data: "a\rb" }, "data: a\ndata: b\n\n"],
  ["both together", { data: "a\r\nb" }, "data: a\ndata: b\n\n"],
  ["breaks at the start and end", { data: "\na\n" }, "data: \ndata: a\ndata: \n\n"],
  ["a time with a fraction", { retry: 10.2 }, "retry: 11\n\n"],
  ["other line separators", { data: "a\u2028b\u0085c" }, "data: a\u2028b\u0085c\n\n"],
];
it.each(rows)("a formatted event: %s", (_name, parts, expected) => {
  expect(formatEvent(parts)).toBe(expected);
});

it.each(["a\nb", "a\rb", "a\0b"])("a formatted event refuses an id or a type that is not a single line: %j", (text) => {
  expect(() => formatEvent({ id: text, data: "" })).toThrow("the id of an event must be a single line");
  expect(() => formatEvent({ event: text, data: "" })).toThrow("the event of an event must be a single line");
});

it("a formatted event parses to the same data", () => {
  const parts = fc.record({
    id: fc.stringMatching(/^[!-~]{1,8}$/),
    event: fc.stringMatching(/^[a-z]{1,8}$/),
    data: fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[a\r\n: ]{0,20}$/)),
  });
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 5 }), (events) => {
      const expected = events.map((event) => ({ ...event, data: event.data.replaceAll(/\r\n|\r/g, "\n") }));
      expect(read(events.map((event) => formatEvent(event)).join(""))).toEqual(expected);
    }),
    { numRuns: runs(500) },
  );
});

it("an SSE writer writes events, and ends once", () => {
  const sink = new Recorder();
  const over: string[] = [];
  const stream = new SseWriter(sink, LIMITS, () => over.push("closed"));
  stream.send(formatEvent({ data: "1" }));
  expect(stream.heldBytes).toBe(9);
  stream.end();
  stream.end();
  stream.destroy();
  stream.send(formatEvent({ data: "2" }));
  expect(sink.text).toBe("data: 1\n\n");
  expect(sink.acts).toEqual(["end"]);
  expect(over).toEqual(["closed"]);
  expect(stream.isClosed).toBe(true);
});

it("an SSE writer disconnects at once if too much is unread before an event, however long the last event was", () => {
  const sink = new Recorder();
  const over: string[] = [];
  const stream = new SseWriter(sink, LIMITS, () => over.push("closed"));
  stream.send("x".repeat(1_000));
  stream.send("y".repeat(5_000));
  expect(stream.isClosed).toBe(false);
  stream.send("z");
  expect(sink.acts).toEqual(["destroyed"]);
  expect(over).toEqual(["closed"]);
  expect(sink.text).toHaveLength(6_000);
});

it("an SSE writer disconnects if much stays unread for too long", () => {
  const sink = new Recorder();
  const stream = new SseWriter(sink, LIMITS);
  stream.send("x".repeat(101));
  stream.tick(1_000);
  stream.tick(10_999);
  expect(stream.isClosed).toBe(false);
  stream.tick(11_000);
  expect(sink.acts).toEqual(["destroyed"]);
});

it("an SSE writer restarts the time when the reader has caught up", () => {
  const sink = new Recorder();
  const stream = new SseWriter(sink, LIMITS);
  stream.send("x".repeat(101));
  stream.tick(1_000);
  sink.bufferedBytes = 100;
  stream.tick(6_000);
  sink.bufferedBytes = 101;
  stream.tick(7_000);
  stream.tick(16_999);
  expect(stream.isClosed).toBe(false);
  stream.tick(17_000);
  expect(stream.isClosed).toBe(true);
});

it("an SSE writer sends a comment after a silence only", () => {
  const sink = new Recorder();
  const stream = new SseWriter(sink, LIMITS);
  for (let now = 0; now <= 14_000; now += 1_000) stream.tick(now);
  expect(sink.text).toBe("");
  stream.tick(15_000);
  expect(sink.text).toBe(":\n\n");
  stream.tick(16_000);
  stream.tick(25_000);
  stream.send("data: 1\n\n");
  stream.tick(31_000);
  stream.tick(45_000);
  expect(sink.text).toBe(":\n\ndata: 1\n\n");
  stream.tick(46_000);
  expect(sink.text).toBe(":\n\ndata: 1\n\n:\n\n");
});
