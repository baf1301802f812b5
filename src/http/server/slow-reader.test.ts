// A stalled client on a real socket is disconnected, and costs no more memory than allowed.

import { expect, it } from "vitest";
import { nodeHttpServer } from "../../../test/support/http/node-http-server.ts";
import { SseWriter, formatEvent } from "./sse-writer.ts";

const MIB = 1024 * 1024;

it("a client that does not read is disconnected at the limit, and another one gets everything", async () => {
  const streams: SseWriter[] = [];
  const over: string[] = [];
  const { open } = await nodeHttpServer((httpRequest) => {
    const limits = { unreadBytes: 2 * MIB, lingeringBytes: MIB, lingeringMs: 60_000, keepAliveMs: 60_000 };
    const stream = new SseWriter(httpRequest.stream({}), limits, () => over.push(`${httpRequest.path} closed`));
    httpRequest.onDisconnect({ disconnect: () => over.push(`${httpRequest.path} gone`) });
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
  while (!first.isClosed) {
    first.send(event);
    second.send(event);
    sent += 1;
    most = Math.max(most, first.heldBytes);
    // The system buffers up to some MiB of unread data.
    expect(sent).toBeLessThan(4_000);
    while (second.heldBytes > 0) await new Promise(setImmediate);
  }
  expect(over).toEqual(["/stalled closed"]);
  expect(most).toBeLessThan(2 * MIB + 2 * event.length);
  expect(second.isClosed).toBe(false);
  await expect.poll(() => received).toBeGreaterThanOrEqual(sent * event.length);
  second.end();
  expect(over).toEqual(["/stalled closed", "/reading closed"]);
  expect(first.heldBytes).toBe(0);
});
