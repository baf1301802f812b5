// Bodies in one piece and in many, too long, too slow, broken off, or read by somebody before us.

import { request as clientRequest } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { visited } from "../../../test/support/visits.ts";
import type { NodeHttpRequest } from "./node-request.ts";
import { HttpError } from "./http-request.ts";

const MAX = 1_000;
const POST = ["POST /mcp HTTP/1.1", "Host: localhost"];

/** Answers with the body, or with why there is none. */
async function echo(visit: NodeHttpRequest, maxMs = 20_000): Promise<void> {
  try {
    visit.answer(200, { "content-type": "text/plain" }, await visit.body(MAX, maxMs));
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    visit.answer(error.status, error.headers, error.message);
  }
}

describe("a body", () => {
  it("costs no timer of its own", async () => {
    const each = vi.spyOn(globalThis, "setTimeout");
    const shared = vi.spyOn(globalThis, "setInterval");
    const { open } = await visited((visit) => void echo(visit));
    const caller = await open();
    for (let count = 0; count < 50; count += 1) {
      caller.send([...POST, "Content-Length: 5"], "hello");
      expect(await caller.answer()).toMatchObject({ status: 200, body: "hello" });
    }
    expect([each.mock.calls.length, shared.mock.calls.length <= 1]).toEqual([0, true]);
    vi.restoreAllMocks();
  });

  it("may be asked for late", async () => {
    const { open } = await visited((visit) => setImmediate(() => void echo(visit)));
    const caller = await open();
    caller.send([...POST, "Content-Length: 5"], "hello");
    expect((await caller.answer()).body).toBe("hello");
    caller.send([...POST, "Content-Length: 0"]);
    expect(await caller.answer()).toMatchObject({ status: 200, body: "", headers: { "content-length": "0" } });
  });

  it("comes in pieces, and with a character cut in two", async () => {
    const { open } = await visited((visit) => void echo(visit));
    const bytes = Buffer.from("gr\u00fc\u00dfe \u{1f600}");
    const caller = await open();
    caller.send([...POST, `Content-Length: ${bytes.length}`]);
    for (const byte of bytes) {
      caller.write(Uint8Array.of(byte));
      await new Promise(setImmediate);
    }
    expect(Buffer.from((await caller.answer()).body, "latin1")).toEqual(bytes);
  });

  it("comes in chunks", async () => {
    const { open } = await visited((visit) => void echo(visit));
    const caller = await open();
    caller.send([...POST, "Transfer-Encoding: chunked"], "3\r\nabc\r\n");
    await new Promise(setImmediate);
    caller.write("2\r\nde\r\n0\r\n\r\n");
    expect((await caller.answer()).body).toBe("abcde");
  });

  it("keeps a mark of byte order, for those who read the text", async () => {
    const { open } = await visited((visit) => void echo(visit));
    const caller = await open();
    caller.send([...POST, "Content-Length: 4"], "\xef\xbb\xbfx");
    expect((await caller.answer()).body).toBe("\xef\xbb\xbfx");
  });

  const notUtf8 = ["\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ab\xe2\x82", "\xe2\x28\xa1"];
  it.each(notUtf8)("that is not UTF-8 is refused: %j", async (bytes) => {
    const { open } = await visited((visit) => void echo(visit));
    const caller = await open();
    caller.send([...POST, `Content-Length: ${bytes.length}`], bytes);
    expect(await caller.answer()).toMatchObject({ status: 400, body: "The body is not UTF-8." });
    caller.send([...POST, "Content-Length: 2"], "ok");
    expect((await caller.answer()).body).toBe("ok");
  });

  it("of just the limit is taken; one byte more, declared or not, is refused and the connection ended", async () => {
    const { open } = await visited((visit) => void echo(visit));
    const first = await open();
    first.send([...POST, `Content-Length: ${MAX}`], "x".repeat(MAX));
    expect((await first.answer()).status).toBe(200);
    first.send([...POST, `Content-Length: ${MAX + 1}`], "x".repeat(MAX + 1));
    const refused = await first.answer();
    expect(refused).toMatchObject({ status: 413, headers: { connection: "close" } });
    expect(refused.body).toContain(`longer than ${MAX} bytes`);
    await first.closed;
    const second = await open();
    second.send([...POST, "Transfer-Encoding: chunked"], `3e9\r\n${"x".repeat(MAX + 1)}\r\n0\r\n\r\n`);
    expect((await second.answer()).status).toBe(413);
  });

  it("that is far too long is refused before it comes, and its sender can read why", async () => {
    const { port, open } = await visited((visit) => void echo(visit));
    const caller = await open();
    caller.send([...POST, "Content-Length: 1000000000"]);
    expect((await caller.answer()).status).toBe(413);
    // A client that writes everything first sees the answer as well, instead of a connection that was reset.
    const status = await new Promise((resolve, reject) => {
      const sending = clientRequest({ port, host: "127.0.0.1", method: "POST", path: "/mcp" }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sending.on("error", reject);
      sending.end(Buffer.alloc(8 * 1024 * 1024, 120));
    });
    expect(status).toBe(413);
  });

  it("without an end in chunks is refused at the limit", async () => {
    const { open } = await visited((visit) => void echo(visit));
    const caller = await open();
    caller.send([...POST, "Transfer-Encoding: chunked"]);
    const pump = setInterval(() => caller.write(`64\r\n${"x".repeat(100)}\r\n`), 1);
    expect((await caller.answer()).status).toBe(413);
    clearInterval(pump);
    caller.socket.end();
    await caller.closed;
  });

  it("that is too slow is refused", async () => {
    const { open } = await visited((visit) => void echo(visit, 30));
    const caller = await open();
    caller.send([...POST, "Content-Length: 10"], "abc");
    expect(await caller.answer()).toMatchObject({ status: 408, headers: { connection: "close" } });
  });

  it("that is compressed is refused", async () => {
    const { open } = await visited((visit) => void echo(visit));
    const caller = await open();
    caller.send([...POST, "Content-Encoding: gzip", "Content-Length: 3"], "abc");
    expect(await caller.answer()).toMatchObject({ status: 415, headers: { "accept-encoding": "identity" } });
    const plain = await open();
    plain.send([...POST, "Content-Encoding: Identity", "Content-Length: 3"], "abc");
    expect((await plain.answer()).body).toBe("abc");
  });

  it("that breaks off is nobody's", async () => {
    const outcome = new Promise<unknown>((resolve) => {
      void visited((visit) => {
        visit.body(MAX, 20_000).catch((error: unknown) => resolve([error, visit.isGone]));
      }).then(async ({ open }) => {
        const caller = await open();
        caller.send([...POST, "Content-Length: 10"], "abc");
        await new Promise(setImmediate);
        caller.destroy();
      });
    });
    expect(await outcome).toMatchObject([{ name: "HttpError", status: 400 }, true]);
  });

  const parsed: readonly (readonly [string, unknown, number, string])[] = [
    ["an object", { a: [1, "\u00fc"] }, 200, '{"a":[1,"\u00c3\u00bc"]}'],
    ["a text", '{"a":1}', 200, '{"a":1}'],
    ["bytes", Buffer.from('{"b":2}'), 200, '{"b":2}'],
    ["bytes that are not UTF-8", Buffer.from([0xff]), 400, "The body is not UTF-8."],
    ["too long an object", { a: "x".repeat(MAX) }, 413, `The body is longer than ${MAX} bytes (limits.messageBytes).`],
  ];
  it.each(parsed)("that a framework has read as %s is taken from it", async (_name, body, status, expected) => {
    const { open } = await visited((visit, request) => {
      request.resume().once("end", () => {
        (request as { body?: unknown }).body = body;
        void echo(visit);
      });
    });
    const caller = await open();
    // The framework has unpacked it, so how it was packed no longer matters.
    caller.send([...POST, "Content-Encoding: gzip", "Content-Length: 3"], "abc");
    expect(await caller.answer()).toMatchObject({ status, body: expected });
  });

  it("that somebody has read and not left is missed", async () => {
    const { open } = await visited((visit, request) => request.resume().once("end", () => void echo(visit)));
    const caller = await open();
    caller.send([...POST, "Content-Length: 3"], "abc");
    const { status, body } = await caller.answer();
    expect([status, body]).toEqual([500, expect.stringContaining("Mount the handler before any body parser")]);
  });

  it("that a framework only pretends to have is read all the same", async () => {
    const { open } = await visited((visit, request) => {
      (request as { body?: unknown }).body = {};
      void echo(visit);
    });
    const caller = await open();
    caller.send([...POST, "Content-Length: 3"], "abc");
    expect((await caller.answer()).body).toBe("abc");
  });
});
