// A reader that stands still, on a real socket: it is cut off, and it cost no more memory than it was allowed.

import { expect, it } from "vitest";
import { visited } from "../../../test/support/visits.ts";
import { SseWriter, formatEvent } from "./sse.ts";

const MIB = 1024 * 1024;

it("a reader that does not read is cut at the limit, and another one gets everything", async () => {
  const streams: SseWriter[] = [];
  const over: string[] = [];
  const { open } = await visited((visit) => {
    const limits = { unreadBytes: 2 * MIB, lingeringBytes: MIB, lingeringMs: 60_000, keepAliveMs: 60_000 };
    const stream = new SseWriter(visit.stream({}), limits, (how) => over.push(`${visit.path} ${how}`));
    visit.onGone(() => over.push(`${visit.path} gone`));
    streams.push(stream);
  });
  const [stalled, reading] = [await open(), await open()];
  for (const [caller, path] of [
    [stalled, "/stalled"],
    [reading, "/reading"],
  ] as const) {
    caller.send([`GET ${path} HTTP/1.1`, "Host: localhost"]);
    await caller.head();
  }
  stalled.socket.pause();
  let received = 0;
  reading.socket.on("data", (text: string) => {
    received += text.length;
  });

  const event = formatEvent({ data: "x".repeat(64 * 1024) });
  let most = 0;
  let sent = 0;
  const [first, second] = streams as [SseWriter, SseWriter];
  while (!first.isOver) {
    first.send(event);
    second.send(event);
    sent += 1;
    most = Math.max(most, first.waiting);
    // What it takes and does not read the system has, up to some MiB.
    expect(sent).toBeLessThan(4_000);
    while (second.waiting > 0) await new Promise(setImmediate);
  }
  expect(over).toEqual(["/stalled cut"]);
  expect(most).toBeLessThan(2 * MIB + 2 * event.length);
  expect(second.isOver).toBe(false);
  await expect.poll(() => received).toBeGreaterThanOrEqual(sent * event.length);
  second.end();
  expect(over).toEqual(["/stalled cut", "/reading ended"]);
  expect(first.waiting).toBe(0);
});
