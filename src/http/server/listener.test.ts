// A real port: what it refuses before there is a visit, what it shows as its address, and how it ends.

import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RawHttp } from "../../../test/support/raw-http.ts";
import { opened } from "../../../test/support/visits.ts";
import { listen } from "./listener.ts";
import type { Listener, ListenLimits } from "./listener.ts";
import type { NodeHttpRequest } from "./node-request.ts";
import type { StreamSink } from "./http-request.ts";

const LIMITS: ListenLimits = { headerBytes: 4_096, headerMs: 20_000, bodyMs: 20_000 };
const GET = ["GET / HTTP/1.1", "Host: localhost"];

async function listening(
  onVisit: (visit: NodeHttpRequest) => void,
  limits: Partial<ListenLimits> = {},
  host = "127.0.0.1",
): Promise<Listener & { open(): Promise<RawHttp> }> {
  const listener = await listen({ host, port: 0, limits: { ...LIMITS, ...limits }, onVisit });
  onTestFinished(() => listener.close(0));
  return { ...listener, open: () => opened(listener.port, new URL(listener.url).hostname.replace(/^\[|\]$/g, "")) };
}

const hello = (visit: NodeHttpRequest): void => visit.answer(200, {}, "hello");

describe("an address", () => {
  it.each([
    ["127.0.0.1", "127.0.0.1"],
    ["0.0.0.0", "127.0.0.1"],
    ["::1", "[::1]"],
    ["[::1]", "[::1]"],
    ["::", "[::1]"],
  ])("%s is shown so that it can be called", async (host, shown) => {
    const listener = await listening(hello, {}, host);
    expect(listener.url).toBe(`http://${shown}:${listener.port}`);
    const response = await fetch(`${listener.url}/mcp`);
    expect(await response.text()).toBe("hello");
  });

  it("of a name is the address that it has here", async () => {
    const listener = await listening(hello, {}, "localhost");
    expect(listener.url).toMatch(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d+$/);
    expect((await fetch(listener.url)).status).toBe(200);
  });
});

describe("a port that cannot be had", () => {
  const attempt = (host: string, port: number): Promise<Listener> =>
    listen({ host, port, limits: LIMITS, onVisit: hello });

  it("is named, with what to do", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as AddressInfo;
    await expect(attempt("127.0.0.1", port)).rejects.toMatchObject({
      name: "ConnectionError",
      kind: "refused",
      message: `Port ${port} on 127.0.0.1 is in use: end the program that has it, or choose another port (0 for any).`,
      cause: { code: "EADDRINUSE" },
    });
  });

  it("may be on an address of another machine", async () => {
    await expect(attempt("192.0.2.1", 0)).rejects.toMatchObject({
      kind: "refused",
      message: "192.0.2.1 is no address of this machine, so port 0 cannot be opened there: choose another host.",
    });
  });

  it("may be on a name that leads nowhere", async () => {
    await expect(attempt("nowhere.invalid", 0)).rejects.toMatchObject({
      kind: "refused",
      message: expect.stringContaining("nowhere.invalid"),
    });
  });
});

describe("what is no request", () => {
  it.each([
    ["no HTTP at all", "hello\r\n\r\n", 400],
    ["no name of a header", "GET / HTTP/1.1\r\n: x\r\n\r\n", 400],
    ["a space before a colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400],
    ["a folded line", "GET / HTTP/1.1\r\nHost: x\r\n\tfolded\r\n\r\n", 400],
    ["two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400],
    [
      "a length beside chunks",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
    ],
    ["a length that is none", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400],
    ["chunks of another kind", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, x\r\n\r\n", 400],
    ["headers that are too long", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(100_000)}\r\n\r\n`, 431],
    ["headers that are too many", `GET / HTTP/1.1\r\nHost: x\r\n${"X: x\r\n".repeat(50_000)}\r\n`, 431],
  ])("%s", async (_name, text, status) => {
    let visits = 0;
    const { open } = await listening(() => {
      visits += 1;
    });
    const caller = await open();
    caller.write(text);
    expect(await caller.answer()).toMatchObject({ status, headers: { connection: "close" } });
    await caller.closed;
    expect(visits).toBe(0);
  });

  it("in the middle of a body ends that request", async () => {
    const bodies: unknown[] = [];
    const { open } = await listening(
      (visit) => void visit.body(100, 20_000).catch((error: unknown) => bodies.push(error)),
    );
    const caller = await open();
    caller.send(["POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"], "1\r\na\r\nxyz\r\n");
    expect((await caller.answer()).status).toBe(400);
    caller.socket.end();
    await caller.closed;
    await expect.poll(() => bodies).toMatchObject([{ name: "HttpError", status: 400 }]);
  });

  it("behind a request that is still at work is not taken for its answer", async () => {
    const { open } = await listening(() => {});
    const caller = await open();
    caller.send(GET).write("garbage\r\n\r\n");
    expect(await caller.rest()).toBe("");
  });

  it("is a head that does not come in time", async () => {
    const { open } = await listening(hello, { headerMs: 100 });
    const caller = await open();
    caller.write("GET / HTTP/1.1\r\nHost: x\r\n");
    expect((await caller.answer()).status).toBe(408);
  });

  it("is a body that does not come in time, also where nobody asks for it", async () => {
    const { open } = await listening(() => {}, { headerMs: 50, bodyMs: 50 });
    const caller = await open();
    caller.send(["POST / HTTP/1.1", "Host: x", "Content-Length: 10"], "abc");
    expect((await caller.answer()).status).toBe(408);
  });
});

describe("a request", () => {
  it("without Host is a visit all the same, for others to sendError", async () => {
    const { open } = await listening((visit) => visit.answer(400, {}, String(visit.headers["host"])));
    const caller = await open();
    caller.send(["GET / HTTP/1.1"]);
    expect(await caller.answer()).toMatchObject({ status: 400, body: "undefined" });
  });

  it("shows all of a header that came twice", async () => {
    const { open } = await listening((visit) => visit.answer(200, {}, `${visit.headers["host"]} ${visit.ambiguous}`));
    const caller = await open();
    caller.send(["GET / HTTP/1.1", "Host: a", "Host: b"]);
    expect((await caller.answer()).body).toBe("a, b true");
  });

  it("whose sender asks first is told to go on only where its body is wanted", async () => {
    const { open } = await listening((visit) => {
      visit.body(10, 20_000).then(
        (text) => visit.answer(200, {}, text),
        () => visit.answer(413, {}),
      );
    });
    const caller = await open();
    caller.send(["POST / HTTP/1.1", "Host: x", "Expect: 100-continue", "Content-Length: 5"]);
    expect((await caller.head()).status).toBe(100);
    caller.write("hello");
    expect((await caller.answer()).body).toBe("hello");
    caller.send(["POST / HTTP/1.1", "Host: x", "Expect: 100-continue", "Content-Length: 50"]);
    expect((await caller.head()).status).toBe(413);
  });
});

describe("closing", () => {
  it("ends idle connections at once, and half-sent heads with them", async () => {
    const listener = await listening(hello);
    const [idle, half, fresh] = [await listener.open(), await listener.open(), await listener.open()];
    await idle.send(GET).answer();
    await half.send(GET).answer();
    half.write("GET / HTT");
    await listener.close(60_000);
    await Promise.all([idle.closed, half.closed, fresh.closed]);
    await expect(opened(listener.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  it("lets an answer come that is still to be given, and says that it is the last", async () => {
    const visits: NodeHttpRequest[] = [];
    const listener = await listening((visit) => visits.push(visit));
    const caller = await listener.open();
    caller.send(GET);
    await expect.poll(() => visits.length).toBe(1);
    const closed = listener.close(60_000);
    visits[0]?.answer(200, {}, "after all");
    expect(await caller.answer()).toMatchObject({ body: "after all", headers: { connection: "close" } });
    await closed;
    await caller.closed;
  });

  it("lets an answer be read to its end that is already given", async () => {
    const length = 32 * 1024 * 1024;
    const listener = await listening((visit) => visit.answer(200, {}, "x".repeat(length)));
    const caller = await listener.open();
    caller.send(GET);
    await caller.head();
    caller.socket.pause();
    const closed = listener.close(60_000);
    caller.socket.resume();
    const rest = await caller.rest();
    expect(rest).toHaveLength(length);
    await closed;
  });

  it("answers what still comes on a connection that is at work", async () => {
    const visits: NodeHttpRequest[] = [];
    const listener = await listening((visit) => visits.push(visit));
    const caller = await listener.open();
    caller.send(GET);
    await expect.poll(() => visits.length).toBe(1);
    const closed = listener.close(60_000);
    caller.send(GET);
    await expect.poll(() => visits.length).toBe(2);
    visits[1]?.answer(503, {});
    visits[0]?.answer(200, {}, "first");
    expect((await caller.answer()).body).toBe("first");
    await closed;
  });

  it("waits for nobody longer than its grace", async () => {
    const sinks: StreamSink[] = [];
    const gone: string[] = [];
    const listener = await listening((visit) => {
      sinks.push(visit.stream({}));
      visit.onGone(() => gone.push("gone"));
    });
    const caller = await listener.open();
    caller.send(GET);
    await caller.head();
    await Promise.all([listener.close(20), listener.close(60_000)]);
    await caller.closed;
    expect(gone).toEqual(["gone"]);
  });
});
