// The body of an answer that came by node:http: read whole, read as it comes, or not wanted; and where it breaks.

import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { all, closeAll, closed, failure, later, listen } from "../../../test/support/http-ends.ts";
import { nodeRequester } from "./node-requester.ts";
import type { HttpResponse, OutgoingRequest } from "./requester.ts";

afterEach(closeAll);

interface Stage {
  ask(request?: Partial<OutgoingRequest>): Promise<HttpResponse>;
  readonly sockets: Socket[];
}

/** An end, and a requester for it. */
async function stage(listener: RequestListener): Promise<Stage> {
  const server = createServer(listener);
  const sockets: Socket[] = [];
  server.on("connection", (socket) => sockets.push(socket));
  const url = await listen(server);
  const requester = nodeRequester();
  later(() => requester.close());
  return { ask: (request = {}) => requester({ method: "GET", url, headers: {}, ...request }), sockets };
}

/** An answer that is written by hand, byte for byte. */
const raw =
  (act: (socket: Socket) => void): RequestListener =>
  ({ socket }: IncomingMessage) =>
    act(socket);

/** What has come is dealt with. */
async function turns(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise(setImmediate);
}

const WAYS: readonly [string, (answer: HttpResponse) => Promise<string>][] = [
  ["as text", (answer) => answer.text(1_000_000)],
  ["by its bytes", (answer) => answer.read(1_000_000, (bytes) => bytes.toString())],
  ["as it comes", (answer) => all(answer.body)],
];

describe.each(WAYS)("a body that is read %s", (_way, read) => {
  it.each<[string, (response: ServerResponse) => void]>([
    ["in one piece", (response) => response.end("h\u00e9llo")],
    [
      "in pieces that split a character",
      (response) => {
        const bytes = Buffer.from("h\u00e9llo");
        response.write(bytes.subarray(0, 2));
        setImmediate(() => response.end(bytes.subarray(2)));
      },
    ],
    ["with its length", (response) => response.writeHead(200, { "content-length": 6 }).end("h\u00e9llo")],
    [
      "to the end of the connection",
      (response) => {
        response.socket?.end("HTTP/1.0 200 OK\r\n\r\nh\u00e9llo");
      },
    ],
  ])("comes whole %s", async (_how, answer) => {
    const { ask } = await stage((_request, response) => answer(response));
    expect(await read(await ask())).toBe("h\u00e9llo");
  });

  it("is empty where there is none", async () => {
    const { ask } = await stage((_request, response) => response.writeHead(202).end());
    const answer = await ask({ method: "POST", body: "{}" });
    expect(answer.status).toBe(202);
    expect(await read(answer)).toBe("");
  });

  it("is whole where it is read late", async () => {
    const { ask } = await stage((_request, response) => response.end("late"));
    const answer = await ask();
    await turns();
    expect(await read(answer)).toBe("late");
  });

  it.each([
    ["of its length", (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")],
    [
      "of its chunks",
      (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    ],
    ["of a chunk", (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nabc")],
    [
      "by a reset",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc", () => socket.resetAndDestroy());
      },
    ],
  ])("rejects where the connection breaks before the end %s", async (_what, act) => {
    const { ask } = await stage(raw(act));
    const answer = await ask();
    const error = await failure(read(answer));
    expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
    expect(error.message).toMatch(/^The connection to 127\.0\.0\.1:\d+ broke before the end of the answer/);
  });

  it("rejects where what comes is no HTTP any more", async () => {
    const { ask } = await stage(
      raw((socket) => socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n")),
    );
    expect(await failure(ask().then(read))).toMatchObject({ mayHaveRun: true });
  });

  it("rejects when its signal is aborted, and listens to it no more", async () => {
    const ending = new AbortController();
    const { ask, sockets } = await stage((_request, response) => response.write("abc"));
    const answer = await ask({ signal: ending.signal });
    const reading = failure(read(answer));
    ending.abort(new Error("enough"));
    expect(await reading).toMatchObject({ kind: "cancelled", mayHaveRun: true, cause: { message: "enough" } });
    await closed(sockets[0]);
    expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
  });

  it("rejects where its signal was aborted before it was read", async () => {
    const ending = new AbortController();
    const { ask, sockets } = await stage((_request, response) => response.write("abc"));
    const answer = await ask({ signal: ending.signal });
    ending.abort();
    await closed(sockets[0]);
    expect(await failure(read(answer))).toMatchObject({ kind: "cancelled" });
  });

  it("leaves its connection for the next request", async () => {
    const { ask, sockets } = await stage((_request, response) => response.end("x".repeat(200_000)));
    for (let count = 0; count < 3; count += 1) expect(await read(await ask())).toHaveLength(200_000);
    expect(sockets).toHaveLength(1);
  });
});

describe("text", () => {
  it("may be as long as the limit, counted in bytes", async () => {
    const { ask } = await stage((_request, response) => response.end("\u20ac".repeat(10)));
    expect(await (await ask()).text(30)).toHaveLength(10);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["says so", (response) => response.writeHead(200, { "content-length": 31 }).end("x".repeat(31))],
    ["does not say so", (response) => response.end("x".repeat(31))],
    [
      "never ends",
      (response) => {
        response.on("error", () => {});
        const more = (): void => {
          while (!response.destroyed && response.write("x".repeat(20))) continue;
          response.once("drain", more);
        };
        more();
      },
    ],
  ])("that is longer and %s is not read, and its connection is ended", async (_how, answer) => {
    const { ask, sockets } = await stage((_request, response) => answer(response));
    const error = await failure((await ask()).text(30));
    expect(error).toMatchObject({ kind: "http" });
    expect(error.message).toContain("longer than the limit of 30 bytes");
    await closed(sockets[0]);
  });

  it("has no byte order mark", async () => {
    const { ask } = await stage((_request, response) => response.end("\uFEFF{}"));
    expect(await (await ask()).text(10)).toBe("{}");
  });
});

describe("what is made of a body", () => {
  it("is handed on, and the bytes are let go of", async () => {
    const { ask } = await stage((_request, response) => response.end("x".repeat(500_000)));
    let seen: Buffer | undefined;
    const made = await (await ask()).read(500_000, (bytes) => (seen = bytes).length);
    expect([made, seen?.length]).toEqual([500_000, 0]);
  });

  it("may fail", async () => {
    const { ask, sockets } = await stage((_request, response) => response.end("x".repeat(500_000)));
    const reading = (await ask()).read(500_000, () => {
      throw new TypeError("no use");
    });
    await expect(reading).rejects.toThrow("no use");
    expect(await (await ask()).text(500_000)).toHaveLength(500_000);
    expect(sockets).toHaveLength(1);
  });
});

describe("a body that is read as it comes", () => {
  it("is whole where it is long, and each chunk is good until the next one is asked for", async () => {
    const bytes = Buffer.from(Array.from({ length: 500_000 }, (_, at) => at).join(" "));
    const { ask } = await stage((_request, response) => response.end(bytes));
    const copies: Buffer[] = [];
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await ask()).body) {
      await new Promise(setImmediate);
      copies.push(Buffer.from(chunk));
      chunks.push(chunk);
    }
    expect(Buffer.concat(copies).equals(bytes)).toBe(true);
    expect(chunks.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(bytes.length / 2);
  });

  it("is held up while nobody takes it", async () => {
    const total = 64 * 1024 * 1024;
    const chunk = Buffer.alloc(64 * 1024);
    let sent = 0;
    const { ask } = await stage((_request, response) => {
      const more = (): void => {
        while (sent < total) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    });
    let received = 0;
    let most = 0;
    for await (const { length } of (await ask()).body) {
      received += length;
      most = Math.max(most, sent - received);
      await new Promise(setImmediate);
    }
    expect(received).toBe(total);
    // What the two ends of a connection keep by themselves is some megabytes.
    expect(most).toBeLessThan(total / 4);
  });

  it("gives out what came before the break, and then the break", async () => {
    const { ask } = await stage((_request, response) => {
      response.write("abc");
      setImmediate(() => response.destroy());
    });
    const reader = (await ask()).body[Symbol.asyncIterator]();
    const { value } = await reader.next();
    expect(Buffer.from(value as Uint8Array).toString()).toBe("abc");
    await failure(reader.next());
    await failure(reader.next());
  });

  it("ends its connection where nobody wants the rest", async () => {
    const { ask, sockets } = await stage((_request, response) => response.write("abc"));
    for await (const chunk of (await ask()).body) {
      expect(chunk).toHaveLength(3);
      break;
    }
    await closed(sockets[0]);
  });
});

describe("a body that is not wanted", () => {
  it("leaves its connection for the next request where it is short", async () => {
    const { ask, sockets } = await stage((request, response) => {
      if (request.method === "POST") response.writeHead(202).end();
      else response.end("not wanted");
    });
    for (const method of ["POST", "GET", "GET"] as const) {
      (await ask({ method })).discard();
      await turns();
    }
    expect(sockets).toHaveLength(1);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["an event stream", (response) => response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n")],
    ["long", (response) => response.writeHead(200, { "content-length": 1_000_000 }).write("x")],
    ["longer than it looked", (response) => response.write("x".repeat(100_000))],
    ["slow to end", (response) => response.write("x")],
  ])("ends its connection where it is %s", async (_what, answer) => {
    const { ask, sockets } = await stage((_request, response) => answer(response));
    const before = await ask();
    const over = closed(sockets[0]);
    before.discard();
    await over;
  });

  it("keeps the connection of an event stream that ends as soon as all is said", async () => {
    const { ask, sockets } = await stage((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
      setImmediate(() => response.end());
    });
    for (let count = 0; count < 3; count += 1) {
      const answer = await ask();
      const reader = answer.body[Symbol.asyncIterator]();
      await reader.next();
      answer.discard();
      expect(await reader.next()).toMatchObject({ done: true });
      await turns();
    }
    expect(sockets).toHaveLength(1);
  });

  it("may be one that is just being read", async () => {
    const { ask, sockets } = await stage((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n");
    });
    const answer = await ask();
    const reader = answer.body[Symbol.asyncIterator]();
    await reader.next();
    const waiting = failure(reader.next());
    answer.discard();
    expect(await waiting).toMatchObject({ kind: "closed" });
    await closed(sockets[0]);
  });

  it("may be broken off without harm", async () => {
    const { ask, sockets } = await stage(
      raw((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")),
    );
    const answer = await ask();
    answer.discard();
    await closed(sockets[0]);
    answer.discard();
    expect(answer.status).toBe(200);
  });
});
