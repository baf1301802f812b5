// Requests with node:http up to the response head, and their errors. Servers are mostly raw sockets, because they have to
// misbehave.

import { getEventListeners } from "node:events";
import { createServer as createHttpsServer } from "node:https";
import type { LookupFunction } from "node:net";
import { afterEach, expect, it } from "vitest";
import { cert, key } from "../../../test/support/http/tls-certificate.ts";
import {
  closeAll,
  untilClosed,
  failure,
  get,
  manualServer,
  closeLater,
  listen,
  OK,
  post,
} from "../../../test/support/http/local-servers.ts";
import { nodeRequester, type NodeRequesterOptions } from "./node-requester.ts";
import type { Requester } from "./requester.ts";

afterEach(closeAll);

function requesterFor(options?: NodeRequesterOptions): Requester {
  const requester = nodeRequester(options);
  closeLater(() => requester.close());
  return requester;
}

it("a request is sent as given, uncompressed and with its length", async () => {
  const { url, requests } = await manualServer(({ socket }) => socket.write(OK));
  const answer = await requesterFor()(
    post(new URL("/a/b?c=d%20e#f", url), {
      headers: { "content-type": "application/json", "Accept-Encoding": "gzip" },
      body: '"\u20ac"',
    }),
  );
  expect(answer.status).toBe(200);
  expect(await answer.text(10)).toBe("ok");
  const [head = "", body] = (requests[0]?.text ?? "").split("\r\n\r\n");
  const [line, ...headers] = head.toLowerCase().split("\r\n");
  expect(line).toBe("post /a/b?c=d%20e http/1.1");
  expect(headers).toContain(`host: ${url.host}`);
  expect(headers).toContain("content-type: application/json");
  expect(headers).toContain("content-length: 5");
  expect(headers.filter((one) => one.startsWith("accept-encoding"))).toEqual(["accept-encoding: identity"]);
  expect(body).toBe('"\u20ac"');
});

it("a request does not send the userinfo of its URL", async () => {
  const { url, requests } = await manualServer(({ socket }) => socket.write(OK));
  url.username = "somebody";
  url.password = "secret";
  await (await requesterFor()(get(url))).text(10);
  expect(requests[0]?.text).not.toMatch(/authorization|secret|somebody/i);
});

it("a request has a response whose repeated headers are joined", async () => {
  const { url } = await manualServer(({ socket }) =>
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

it("a request uses the given lookup for names", async () => {
  const { url } = await manualServer(({ socket }) => socket.write(OK));
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

it("a request uses TLS for https, with a trusted certificate", async () => {
  const url = await listen(
    createHttpsServer({ key, cert }, (_request, response) => response.end("safe")),
    "https",
  );
  const answer = await requesterFor({ ca: cert })(get(url));
  expect(await answer.text(10)).toBe("safe");
});

it("a request that fails has not run if nothing listens", async () => {
  const { url } = await manualServer(() => {});
  await closeAll();
  const error = await failure(requesterFor()(post(url)));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toContain(`Nothing listens at ${url.host}`);
});

it("a request that fails has not run if the name does not exist", async () => {
  const lookup: LookupFunction = (_name, _options, callback) =>
    callback(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }), []);
  const error = await failure(requesterFor({ lookup })(post(new URL("http://no.test/"))));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toContain("The host no.test was not found");
});

it("a request that fails has not run if the server does not speak TLS", async () => {
  const { url, requests } = await manualServer(({ socket }) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  url.protocol = "https:";
  const error = await failure(requesterFor()(post(url)));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toContain(`No secure connection to ${url.host}`);
  expect(requests).toHaveLength(1);
});

it("a request that fails has not run if the server closes the connection during the TLS handshake", async () => {
  const { url } = await manualServer(({ socket }) => socket.destroy());
  url.protocol = "https:";
  expect(await failure(requesterFor()(post(url)))).toMatchObject({ kind: "refused", mayHaveRun: false });
});

it("a request that fails has not run if the certificate is not trusted", async () => {
  let asked = 0;
  const server = createHttpsServer({ key, cert }, (_request, response) => {
    asked += 1;
    response.end();
  });
  const error = await failure(requesterFor()(post(await listen(server, "https"))));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toMatch(/No secure connection to .*SELF_SIGNED.*check its certificate/);
  expect(asked).toBe(0);
});

it("a request that fails has not run if the connection times out", async () => {
  const { url } = await manualServer(() => {});
  url.protocol = "https:";
  const error = await failure(requesterFor({ connectTimeoutMs: 20 })(post(url)));
  expect(error).toMatchObject({ kind: "timeout", mayHaveRun: false });
  expect(error.message).toContain(`${url.host} did not accept a connection within 20 ms`);
});

it("a request that fails has not run if it cannot be written, and the error does not show header values", async () => {
  const { url, requests } = await manualServer(() => {});
  const error = await failure(requesterFor()(post(url, { headers: { authorization: "Bearer sec\nret" } })));
  expect(error).toMatchObject({ kind: "http", mayHaveRun: false });
  expect(error.message).toContain("authorization");
  expect(error.message).not.toContain("ret");
  expect(await failure(requesterFor()(get(new URL("ftp://end.test/"))))).toMatchObject({ mayHaveRun: false });
  expect(requests).toHaveLength(0);
});

it("a request that fails may have run if the server closes the connection before it responds", async () => {
  for (const said of ["", "HTTP/1.1 200 OK\r\ncontent-le"]) {
    const { url } = await manualServer(({ socket }) => socket.end(said));
    const error = await failure(requesterFor()(post(url)));
    expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
    expect(error.message).toContain(`The server at ${url.host} closed the connection before it responded`);
  }
});

it("a request that fails reports a response that is not HTTP or has too long a head", async () => {
  const { url } = await manualServer(({ socket }) => socket.write("SSH-2.0-OpenSSH_9.0\r\n"));
  const error = await failure(requesterFor()(post(url)));
  expect(error).toMatchObject({ kind: "http", mayHaveRun: true });
  expect(error.message).toContain("is not valid HTTP");
  const other = await manualServer(({ socket }) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(40_000)}\r\n\r\n`));
  const long = await failure(requesterFor()(post(other.url)));
  expect(long).toMatchObject({ kind: "http", mayHaveRun: true });
  expect(long.message).toContain("head");
});

it("a request that fails reports an unexpected upgrade", async () => {
  const { url, requests } = await manualServer(({ socket }) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
  );
  const error = await failure(requesterFor()(post(url)));
  expect(error).toMatchObject({ kind: "http", status: 101 });
  expect(error.message).toContain("another protocol");
  await untilClosed(requests[0]?.socket);
});

it("a request that fails ignores an empty Content-Encoding", async () => {
  const { url } = await manualServer(({ socket }) =>
    socket.write("HTTP/1.1 200 OK\r\ncontent-encoding:\r\ncontent-length: 2\r\n\r\nok"),
  );
  expect(await (await requesterFor()(post(url))).text(10)).toBe("ok");
});

it("a request that fails reports a compressed response", async () => {
  const { url, requests } = await manualServer(({ socket }) =>
    socket.write("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 100\r\n\r\nabc"),
  );
  const error = await failure(requesterFor()(post(url)));
  expect(error).toMatchObject({ kind: "http", mayHaveRun: true });
  expect(error.message).toContain("compressed (gzip)");
  await untilClosed(requests[0]?.socket);
});

it("a signal that is already aborted sends nothing", async () => {
  const { url, requests } = await manualServer(() => {});
  const signal = AbortSignal.abort(new Error("not now"));
  const error = await failure(requesterFor()(post(url, { signal })));
  expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: false, cause: { message: "not now" } });
  expect(requests).toHaveLength(0);
});

it("a signal aborts a request that waits for its response", async () => {
  const ending = new AbortController();
  const { url, requests } = await manualServer(() => ending.abort());
  const error = await failure(requesterFor()(post(url, { signal: ending.signal })));
  expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: true });
  await untilClosed(requests[0]?.socket);
  expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
});

it("a signal aborts a request without a connection, which has not run then", async () => {
  for (const later of [(act: () => void): unknown => act(), (act: () => void): unknown => setImmediate(act)]) {
    const ending = new AbortController();
    const requester = requesterFor({ lookup: () => later(() => ending.abort()) });
    const error = await failure(requester(post(new URL("http://late.test/"), { signal: ending.signal })));
    expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: false });
    expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
  }
});

it("a signal has no listener left when the response is read or the request has failed", async () => {
  const { signal } = new AbortController();
  const { url } = await manualServer(({ socket, index }) => (index === 1 ? socket.write(OK) : socket.destroy()));
  const requester = requesterFor();
  const answer = await requester(post(url, { signal }));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  await answer.text(10);
  await failure(requester(post(url, { signal })));
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});
