// Requests by node:http, from the first byte to the head of the answer, and what is said where there is none. Ends
// are mostly written by hand, because what is asked here is what happens when they misbehave.

import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer } from "node:net";
import type { AddressInfo, LookupFunction, Server, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { cert, key } from "../../../test/support/certificate.ts";
import type { LinkError } from "../../core/errors.ts";
import { nodeRequester } from "./node-requester.ts";
import type { NodeRequesterOptions } from "./node-requester.ts";
import type { HttpRequest, Requester } from "./requester.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function listen(server: Server, scheme = "http"): Promise<URL> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

interface Seen {
  readonly socket: Socket;
  /** Of all connections, from 1. */
  readonly connection: number;
  /** By this connection, from 1. */
  readonly turn: number;
  readonly text: string;
}

/** An end that is asked with small requests, each of which comes in one piece. */
async function end(answer: (seen: Seen) => void): Promise<{ url: URL; seen: Seen[] }> {
  const seen: Seen[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const connection = connections;
    let turn = 0;
    socket.on("data", (chunk) => {
      turn += 1;
      const one = { socket, connection, turn, text: chunk.toString() };
      seen.push(one);
      answer(one);
    });
  });
  return { url: await listen(server), seen };
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

function requesterFor(options?: NodeRequesterOptions): Requester {
  const requester = nodeRequester(options);
  closing.unshift(() => requester.close());
  return requester;
}

const get = (url: URL, rest: Partial<HttpRequest> = {}): HttpRequest => ({ method: "GET", url, headers: {}, ...rest });
const post = (url: URL, rest: Partial<HttpRequest> = {}): HttpRequest => ({
  method: "POST",
  url,
  headers: {},
  body: "{}",
  ...rest,
});

/** However it ended. */
function closed(socket: Socket | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (socket === undefined || socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}

async function failure(promise: Promise<unknown>): Promise<LinkError> {
  const error: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toMatchObject({ name: "LinkError" });
  return error as LinkError;
}

describe("a request", () => {
  it("goes out as it is given, uncompressed and with its length", async () => {
    const { url, seen } = await end(({ socket }) => socket.write(OK));
    const answer = await requesterFor()(
      post(new URL("/a/b?c=d%20e#f", url), {
        headers: { "content-type": "application/json", "Accept-Encoding": "gzip" },
        body: '"\u20ac"',
      }),
    );
    expect(answer.status).toBe(200);
    expect(await answer.text(10)).toBe("ok");
    const [head = "", body] = (seen[0]?.text ?? "").split("\r\n\r\n");
    const [line, ...headers] = head.toLowerCase().split("\r\n");
    expect(line).toBe("post /a/b?c=d%20e http/1.1");
    expect(headers).toContain(`host: ${url.host}`);
    expect(headers).toContain("content-type: application/json");
    expect(headers).toContain("content-length: 5");
    expect(headers.filter((one) => one.startsWith("accept-encoding"))).toEqual(["accept-encoding: identity"]);
    expect(body).toBe('"\u20ac"');
  });

  it("does not send what stands before the @ of its address", async () => {
    const { url, seen } = await end(({ socket }) => socket.write(OK));
    url.username = "somebody";
    url.password = "secret";
    await (await requesterFor()(get(url))).text(10);
    expect(seen[0]?.text).not.toMatch(/authorization|secret|somebody/i);
  });

  it("has an answer whose headers are joined where they come several times", async () => {
    const { url } = await end(({ socket }) =>
      socket.write(
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nwww-authenticate: Bearer\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 0\r\n\r\n",
      ),
    );
    const answer = await requesterFor()(get(url));
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe("Basic, Bearer");
    expect(answer.headers["set-cookie"]).toBe("a=1, b=2");
    answer.discard();
  });

  it("finds its end by the lookup that is given, for names", async () => {
    const { url } = await end(({ socket }) => socket.write(OK));
    const asked: string[] = [];
    const lookup: LookupFunction = (name, options, callback) => {
      asked.push(name);
      if (options.all === true) callback(null, [{ address: "127.0.0.1", family: 4 }]);
      else callback(null, "127.0.0.1", 4);
    };
    url.hostname = "end.test";
    const answer = await requesterFor({ lookup })(get(url));
    expect(await answer.text(10)).toBe("ok");
    expect(asked).toEqual(["end.test"]);
  });

  it("goes by TLS where that is asked, and the certificate is one that is trusted", async () => {
    const url = await listen(
      createHttpsServer({ key, cert }, (_request, response) => response.end("safe")),
      "https",
    );
    const answer = await requesterFor({ ca: cert })(get(url));
    expect(await answer.text(10)).toBe("safe");
  });
});

describe("a connection", () => {
  it("is used again for the next request", async () => {
    const { url, seen } = await end(({ socket }) => socket.write(OK));
    const requester = requesterFor();
    for (let count = 0; count < 3; count += 1) await (await requester(post(url))).text(10);
    expect(seen.map(({ connection, turn }) => [connection, turn])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ]);
  });

  it("is not kept where the end says that it will not keep it for a second", async () => {
    const { url, seen } = await end(({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n"),
    );
    const requester = requesterFor();
    for (let count = 0; count < 2; count += 1) await (await requester(post(url))).text(10);
    expect(seen.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it("is let go of when its requester is closed, and kept no more after that", async () => {
    const { url, seen } = await end(({ socket }) => socket.write(OK));
    const requester = requesterFor();
    await (await requester(get(url))).text(10);
    const over = closed(seen[0]?.socket);
    requester.close();
    await over;
    await (await requester(get(url))).text(10);
    await closed(seen[1]?.socket);
    expect(seen.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it.each([
    ["that is idle", `await (await ask({ method: "GET", url, headers: {} })).text(10);`],
    [
      "whose answer nobody wants",
      `(await ask({ method: "GET", url: new URL("/endless", url), headers: {} })).discard();`,
    ],
  ])(
    "%s does not keep the process alive",
    async (_what, script) => {
      const url = await listen(
        createHttpServer((request, response) => {
          response.writeHead(200, { "keep-alive": "timeout=600" });
          if (request.url === "/endless") response.write("a");
          else response.end("ok");
        }),
      );
      const module = JSON.stringify(new URL("node-requester.ts", import.meta.url));
      const child = spawn(
        process.execPath,
        [
          ...["--import", "tsx", "--input-type=module", "-e"],
          `const { nodeRequester } = await import(${module});
           const ask = nodeRequester(), url = new URL("${url.href}");
           ${script}
           console.log("asked");`,
        ],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      closing.unshift(() => child.kill("SIGKILL"));
      const output: Buffer[] = [];
      child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
      const [code] = await once(child, "close");
      expect([code, Buffer.concat(output).toString()]).toEqual([0, "asked\n"]);
    },
    // An idle connection is kept for 30 s at most: waiting for that would be too late here.
    20_000,
  );
});

describe("a connection that the end has let go of", () => {
  /** Answers the first request of a connection, and hangs up at the second. */
  const fickle = ({ socket, turn }: Seen): void => {
    if (turn === 1) socket.write(OK);
    else socket.destroy();
  };

  it("is replaced by another for a GET, once", async () => {
    const { url, seen } = await end(fickle);
    const requester = requesterFor();
    await (await requester(get(url))).text(10);
    const answer = await requester(get(url));
    expect(await answer.text(10)).toBe("ok");
    expect(seen.map(({ connection, turn }) => [connection, turn])).toEqual([
      [1, 1],
      [1, 2],
      [2, 1],
    ]);
  });

  it("is not replaced for a POST, which may have run", async () => {
    const { url, seen } = await end(fickle);
    const requester = requesterFor();
    await (await requester(post(url))).text(10);
    expect(await failure(requester(post(url)))).toMatchObject({ kind: "closed", mayHaveRun: true });
    expect(seen).toHaveLength(2);
  });

  it("is not replaced where it was new", async () => {
    const { url, seen } = await end(({ socket }) => socket.destroy());
    expect(await failure(requesterFor()(get(url)))).toMatchObject({ kind: "closed", mayHaveRun: true });
    expect(seen).toHaveLength(1);
  });
});

describe("a request that fails", () => {
  it("has surely not run where nothing listens", async () => {
    const { url } = await end(() => {});
    for (const close of closing.splice(0)) await close();
    const error = await failure(requesterFor()(post(url)));
    expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
    expect(error.message).toContain(`Nothing listens at ${url.host}`);
  });

  it("has surely not run where there is no such name", async () => {
    const lookup: LookupFunction = (_name, _options, callback) =>
      callback(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }), []);
    const error = await failure(requesterFor({ lookup })(post(new URL("http://no.test/"))));
    expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
    expect(error.message).toContain("The name no.test was not found");
  });

  it("has surely not run where the end does not speak TLS", async () => {
    const { url, seen } = await end(({ socket }) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    url.protocol = "https:";
    const error = await failure(requesterFor()(post(url)));
    expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
    expect(error.message).toContain(`No safe connection to ${url.host}`);
    expect(seen).toHaveLength(1);
  });

  it("has surely not run where the end hangs up during the handshake", async () => {
    const { url } = await end(({ socket }) => socket.destroy());
    url.protocol = "https:";
    expect(await failure(requesterFor()(post(url)))).toMatchObject({ kind: "refused", mayHaveRun: false });
  });

  it("has surely not run where the certificate is not trusted", async () => {
    let asked = 0;
    const server = createHttpsServer({ key, cert }, (_request, response) => {
      asked += 1;
      response.end();
    });
    const error = await failure(requesterFor()(post(await listen(server, "https"))));
    expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
    expect(error.message).toMatch(/No safe connection to .*SELF_SIGNED.*check its certificate/);
    expect(asked).toBe(0);
  });

  it("has surely not run where the connection is not made in time", async () => {
    const { url } = await end(() => {});
    url.protocol = "https:";
    const error = await failure(requesterFor({ connectMs: 20 })(post(url)));
    expect(error).toMatchObject({ kind: "timeout", mayHaveRun: false });
    expect(error.message).toContain(`${url.host} took no connection within 20 ms`);
  });

  it("has surely not run where it cannot be written, and the error keeps what was in it", async () => {
    const { url, seen } = await end(() => {});
    const error = await failure(requesterFor()(post(url, { headers: { authorization: "Bearer sec\nret" } })));
    expect(error).toMatchObject({ kind: "http", mayHaveRun: false });
    expect(error.message).toContain("authorization");
    expect(error.message).not.toContain("ret");
    expect(await failure(requesterFor()(get(new URL("ftp://end.test/"))))).toMatchObject({ mayHaveRun: false });
    expect(seen).toHaveLength(0);
  });

  it("may have run where the end hangs up before it has answered", async () => {
    for (const said of ["", "HTTP/1.1 200 OK\r\ncontent-le"]) {
      const { url } = await end(({ socket }) => socket.end(said));
      const error = await failure(requesterFor()(post(url)));
      expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      expect(error.message).toContain(`The end at ${url.host} closed the connection before it answered`);
    }
  });

  it("says so where the answer is no HTTP, or its head has no end", async () => {
    const { url } = await end(({ socket }) => socket.write("SSH-2.0-OpenSSH_9.0\r\n"));
    const error = await failure(requesterFor()(post(url)));
    expect(error).toMatchObject({ kind: "http", mayHaveRun: true });
    expect(error.message).toContain("no HTTP");
    const other = await end(({ socket }) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(40_000)}\r\n\r\n`));
    const long = await failure(requesterFor()(post(other.url)));
    expect(long).toMatchObject({ kind: "http", mayHaveRun: true });
    expect(long.message).toContain("head");
  });

  it("says so where the answer is compressed", async () => {
    const { url, seen } = await end(({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 100\r\n\r\nabc"),
    );
    const error = await failure(requesterFor()(post(url)));
    expect(error).toMatchObject({ kind: "http", mayHaveRun: true });
    expect(error.message).toContain("compressed (gzip)");
    await closed(seen[0]?.socket);
  });
});

describe("a signal", () => {
  it("that is aborted already sends nothing", async () => {
    const { url, seen } = await end(() => {});
    const signal = AbortSignal.abort(new Error("not now"));
    const error = await failure(requesterFor()(post(url, { signal })));
    expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: false, cause: { message: "not now" } });
    expect(seen).toHaveLength(0);
  });

  it("ends a request that waits for its answer", async () => {
    const ending = new AbortController();
    const { url, seen } = await end(() => ending.abort());
    const error = await failure(requesterFor()(post(url, { signal: ending.signal })));
    expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: true });
    await closed(seen[0]?.socket);
    expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
  });

  it("ends a request that has no connection yet, which has not run then", async () => {
    for (const later of [(act: () => void): unknown => act(), (act: () => void): unknown => setImmediate(act)]) {
      const ending = new AbortController();
      const requester = requesterFor({ lookup: () => later(() => ending.abort()) });
      const error = await failure(requester(post(new URL("http://late.test/"), { signal: ending.signal })));
      expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: false });
      expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
    }
  });

  it("is not listened to any more when the answer is read, or the request has failed", async () => {
    const { signal } = new AbortController();
    const { url } = await end(({ socket, turn }) => (turn === 1 ? socket.write(OK) : socket.destroy()));
    const requester = requesterFor();
    const answer = await requester(post(url, { signal }));
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await answer.text(10);
    await failure(requester(post(url, { signal })));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});
