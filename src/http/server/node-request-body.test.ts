// Bodies in one chunk and in many, too long, too slow, incomplete, or already read by a framework.

import { request as clientRequest } from "node:http";
import { expect, it, vi } from "vitest";
import { nodeHttpServer } from "../../../test/support/http/node-http-server.ts";
import type { NodeHttpRequest } from "./node-request.ts";
import { HttpError } from "./http-request.ts";

const MAX = 1_000;
const POST = ["POST /mcp HTTP/1.1", "Host: localhost"];

/** Responds with the body, or with the error. */
function echo(httpRequest: NodeHttpRequest, bodyMs = 20_000): void {
  const onBody = (text: string): void => void httpRequest.respond(200, { "content-type": "text/plain" }, text);
  const onError = (error: unknown): void => {
    if (!(error instanceof HttpError)) throw error;
    httpRequest.respond(error.status, error.headers, error.message);
  };
  httpRequest.readBody({ messageBytes: MAX, bodyMs }, { onBody: onBody, onError: onError });
}

it("a body costs no timer of its own", async () => {
  const each = vi.spyOn(globalThis, "setTimeout");
  const shared = vi.spyOn(globalThis, "setInterval");
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  for (let count = 0; count < 50; count += 1) {
    caller.send([...POST, "Content-Length: 5"], "hello");
    expect(await caller.answer()).toMatchObject({ status: 200, body: "hello" });
  }
  expect(each).not.toHaveBeenCalled();
  // The shared one ends when it has nothing to watch, so it may start again on a machine that stalls.
  expect(shared.mock.calls.length).toBeLessThan(10);
  vi.restoreAllMocks();
});

it("a body may be read late", async () => {
  const { open } = await nodeHttpServer((httpRequest) => setImmediate(() => echo(httpRequest)));
  const caller = await open();
  caller.send([...POST, "Content-Length: 5"], "hello");
  expect((await caller.answer()).body).toBe("hello");
  caller.send([...POST, "Content-Length: 0"]);
  expect(await caller.answer()).toMatchObject({ status: 200, body: "", headers: { "content-length": "0" } });
});

it("a body arrives in pieces, with a split character", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const bytes = Buffer.from("gr\u00fc\u00dfe \u{1f600}");
  const caller = await open();
  caller.send([...POST, `Content-Length: ${bytes.length}`]);
  for (const byte of bytes) {
    caller.write(Uint8Array.of(byte));
    await new Promise(setImmediate);
  }
  expect(Buffer.from((await caller.answer()).body, "latin1")).toEqual(bytes);
});

it("a body arrives chunked", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  caller.send([...POST, "Transfer-Encoding: chunked"], "3\r\nabc\r\n");
  await new Promise(setImmediate);
  caller.write("2\r\nde\r\n0\r\n\r\n");
  expect((await caller.answer()).body).toBe("abcde");
});

it("a body keeps a byte order mark", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  caller.send([...POST, "Content-Length: 4"], "\xef\xbb\xbfx");
  expect((await caller.answer()).body).toBe("\xef\xbb\xbfx");
});

const notUtf8 = ["\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ab\xe2\x82", "\xe2\x28\xa1"];
it.each(notUtf8)("a body that is not UTF-8 is rejected: %j", async (bytes) => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  caller.send([...POST, `Content-Length: ${bytes.length}`], bytes);
  expect(await caller.answer()).toMatchObject({ status: 400, body: "The body is not valid UTF-8." });
  caller.send([...POST, "Content-Length: 2"], "ok");
  expect((await caller.answer()).body).toBe("ok");
});

it("a body may have the length of the limit; one byte more is rejected and closes the connection", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
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

it("a body that is far too long is rejected before it arrives, and its sender can read why", async () => {
  const { port, open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  caller.send([...POST, "Content-Length: 1000000000"]);
  expect((await caller.answer()).status).toBe(413);
  // A client that writes everything first sees the response as well, instead of a reset connection.
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

it("a body that is chunked and endless is rejected at the limit", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  caller.send([...POST, "Transfer-Encoding: chunked"]);
  const pump = setInterval(() => caller.write(`64\r\n${"x".repeat(100)}\r\n`), 1);
  expect((await caller.answer()).status).toBe(413);
  clearInterval(pump);
  caller.socket.end();
  await caller.closed;
});

it("a body that is too slow is rejected", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest, 30));
  const caller = await open();
  caller.send([...POST, "Content-Length: 10"], "abc");
  expect(await caller.answer()).toMatchObject({ status: 408, headers: { connection: "close" } });
});

it("a body that is compressed is rejected", async () => {
  const { open } = await nodeHttpServer((httpRequest) => echo(httpRequest));
  const caller = await open();
  caller.send([...POST, "Content-Encoding: gzip", "Content-Length: 3"], "abc");
  expect(await caller.answer()).toMatchObject({ status: 415, headers: { "accept-encoding": "identity" } });
  const plain = await open();
  plain.send([...POST, "Content-Encoding: Identity", "Content-Length: 3"], "abc");
  expect((await plain.answer()).body).toBe("abc");
});

it("a body that is incomplete is rejected", async () => {
  const outcome = new Promise<unknown>((resolve) => {
    void nodeHttpServer((httpRequest) => {
      const onError = (error: unknown): void => resolve([error, httpRequest.isDisconnected]);
      httpRequest.readBody({ messageBytes: MAX, bodyMs: 20_000 }, { onBody: resolve, onError: onError });
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
  ["a string", '{"a":1}', 200, '{"a":1}'],
  ["bytes", Buffer.from('{"b":2}'), 200, '{"b":2}'],
  ["bytes that are not UTF-8", Buffer.from([0xff]), 400, "The body is not valid UTF-8."],
  ["too long an object", { a: "x".repeat(MAX) }, 413, `Message longer than ${MAX} bytes (limits.messageBytes)`],
];
it.each(parsed)(
  "a body that a framework has read as %s is taken from request.body",
  async (_name, body, status, expected) => {
    const { open } = await nodeHttpServer((httpRequest, request) => {
      request.resume().once("end", () => {
        (request as { body?: unknown }).body = body;
        echo(httpRequest);
      });
    });
    const caller = await open();
    // The framework has decompressed it, so its encoding no longer matters.
    caller.send([...POST, "Content-Encoding: gzip", "Content-Length: 3"], "abc");
    expect(await caller.answer()).toMatchObject({ status, body: expected });
  },
);

it("a body that was consumed and not left in request.body is an error", async () => {
  const { open } = await nodeHttpServer((httpRequest, request) =>
    request.resume().once("end", () => echo(httpRequest)),
  );
  const caller = await open();
  caller.send([...POST, "Content-Length: 3"], "abc");
  const { status, body } = await caller.answer();
  expect([status, body]).toEqual([500, expect.stringContaining("Mount the handler before any body parser")]);
});

it("a body that a framework has not read is read despite an empty request.body", async () => {
  const { open } = await nodeHttpServer((httpRequest, request) => {
    (request as { body?: unknown }).body = {};
    echo(httpRequest);
  });
  const caller = await open();
  caller.send([...POST, "Content-Length: 3"], "abc");
  expect((await caller.answer()).body).toBe("abc");
});
