// Requests with a given `fetch`: Node's own against real servers, and fakes for what that one does not do.

import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import { afterEach, expect, it } from "vitest";
import { readText, closeAll, failure, get, listen, post } from "../../../test/support/http/local-servers.ts";
import { ConnectionError } from "../../core/errors.ts";
import { fetchRequester } from "./fetch-requester.ts";
import type { Fetch } from "./fetch-requester.ts";
import { followSameOrigin } from "./redirects.ts";

afterEach(closeAll);

const end = (listener: RequestListener): Promise<URL> => listen(createServer(listener));
const ANYWHERE = new URL("https://end.test/mcp?token=hidden");

it("a request with Node's own fetch is sent as given, and its response is returned unchanged", async () => {
  const url = await end((request, response) => {
    const seen = [request.method, request.url, request.headers["x-one"]];
    response.writeHead(201, { "x-seen": seen.join(" ") });
    void readText(request).then((body) => response.end(`<${body}>`));
  });
  const requester = fetchRequester(fetch);
  const answer = await requester(post(new URL("?a=b", url), { headers: { "x-one": "1" }, body: "h\u00e9" }));
  expect(answer.status).toBe(201);
  expect(answer.headers["x-seen"]).toBe("POST /mcp?a=b 1");
  expect(await answer.text(100)).toBe("<h\u00e9>");
  expect(await readText((await requester(get(url))).body)).toBe("<>");
  expect(await (await requester(get(url))).read(100, ({ length }) => length)).toBe(2);
  requester.close();
});

it("a request with Node's own fetch follows no redirect by itself", async () => {
  const url = await end((request, response) => {
    if (request.url === "/mcp") response.writeHead(307, { location: "/there" }).end();
    else response.end("there");
  });
  const requester = fetchRequester(fetch);
  const answer = await requester(post(url));
  expect([answer.status, answer.headers["location"]]).toEqual([307, "/there"]);
  answer.discard();
  expect(await (await followSameOrigin(requester)(post(url))).text(10)).toBe("there");
});

it("a request with Node's own fetch has not run if nothing listens", async () => {
  const url = await end(() => {});
  await closeAll();
  const error = await failure(fetchRequester(fetch)(post(url)));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toContain(`Nothing listens at ${url.host}`);
});

it("a request with Node's own fetch may have run if the server closes the connection", async () => {
  const url = await end((request) => request.socket.destroy());
  expect(await failure(fetchRequester(fetch)(post(url)))).toMatchObject({ kind: "closed", mayHaveRun: true });
});

it("a request with Node's own fetch has a body that rejects if it breaks", async () => {
  const url = await end((_request, response) => {
    response.write("abc");
    setImmediate(() => response.destroy());
  });
  const requester = fetchRequester(fetch);
  expect(await failure(requester(get(url)).then(({ body }) => readText(body)))).toMatchObject({ kind: "closed" });
  expect(await failure(requester(get(url)).then((answer) => answer.text(10)))).toMatchObject({ kind: "closed" });
});

it("a request with Node's own fetch is aborted by its signal before and after the head, and leaves no listener", async () => {
  const url = await end((request, response) => {
    if (request.url === "/mcp") ending.abort();
    else response.write("abc");
  });
  let ending = new AbortController();
  const requester = fetchRequester(fetch);
  expect(await failure(requester(post(url, { signal: ending.signal })))).toMatchObject({
    kind: "cancelled",
    mayHaveRun: true,
  });
  ending = new AbortController();
  const answer = await requester(get(new URL("/slow", url), { signal: ending.signal }));
  const reading = failure(readText(answer.body));
  ending.abort();
  expect(await reading).toMatchObject({ kind: "cancelled" });
});

const failing =
  (error: unknown): Fetch =>
  () =>
    Promise.reject(error);
const answering = (...chunks: string[]): Fetch => {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
    },
  });
  return async () => new Response(body);
};

it("a fetch of another kind that ignores signals is abandoned when one is aborted", async () => {
  const ending = new AbortController();
  let isCancelled = false;
  let answer: (response: Response) => void = () => {};
  const silent: Fetch = () => new Promise((resolve) => (answer = resolve));
  const waiting = failure(fetchRequester(silent)(post(ANYWHERE, { signal: ending.signal })));
  ending.abort(new Error("enough"));
  expect(await waiting).toMatchObject({ kind: "cancelled", mayHaveRun: true, cause: { message: "enough" } });
  expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
  answer(new Response(new ReadableStream({ cancel: () => void (isCancelled = true) })));
  await new Promise(setImmediate);
  expect(isCancelled).toBe(true);
});

it("a fetch of another kind has bodies that reject and are cancelled with the signal", async () => {
  const ending = new AbortController();
  const answer = await fetchRequester(answering("abc"))(get(ANYWHERE, { signal: ending.signal }));
  const reader = answer.body[Symbol.asyncIterator]();
  expect(Buffer.from((await reader.next()).value as Uint8Array).toString()).toBe("abc");
  const waiting = failure(reader.next());
  ending.abort();
  expect(await waiting).toMatchObject({ kind: "cancelled" });
  expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
});

it("a fetch of another kind has bodies that can be discarded before and while they are read", async () => {
  let cancelled = 0;
  const endless: Fetch = async () =>
    new Response(
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(Buffer.from("abc")),
        cancel: () => void (cancelled += 1),
      }),
    );
  const requester = fetchRequester(endless);
  (await requester(get(ANYWHERE))).discard();
  expect(cancelled).toBe(1);
  const answer = await requester(get(ANYWHERE));
  const reading = readText(answer.body);
  await new Promise(setImmediate);
  answer.discard();
  expect(await reading).toBe("abc");
  expect(cancelled).toBe(2);
});

it("a fetch of another kind is not called if the signal is already aborted", async () => {
  let calls = 0;
  const counting: Fetch = async () => {
    calls += 1;
    return new Response();
  };
  const error = await failure(fetchRequester(counting)(post(ANYWHERE, { signal: AbortSignal.abort() })));
  expect(error).toMatchObject({ kind: "cancelled", mayHaveRun: false });
  expect(calls).toBe(0);
});

it("a fetch of another kind reads text up to the limit", async () => {
  expect(await (await fetchRequester(async () => new Response("\uFEFF12345"))(get(ANYWHERE))).text(8)).toBe("12345");
  expect(await (await fetchRequester(async () => new Response(null))(get(ANYWHERE))).text(8)).toBe("");
  const error = await failure((await fetchRequester(answering("12345", "67"))(get(ANYWHERE))).text(6));
  expect(error).toMatchObject({ kind: "http" });
  expect(error.message).toContain("longer than the limit of 6 bytes");
});

it("a fetch of another kind may hide the target of a redirect", async () => {
  const hiding: Fetch = async () => ({ type: "opaqueredirect", status: 0 }) as unknown as Response;
  expect(await failure(fetchRequester(hiding)(post(ANYWHERE)))).toMatchObject({ kind: "http", mayHaveRun: false });
});

it("a fetch of another kind may fail with its own message, without the URL", async () => {
  const error = await failure(fetchRequester(failing(new TypeError("Failed to fetch")))(post(ANYWHERE)));
  expect(error).toMatchObject({ kind: "closed", mayHaveRun: true, cause: { message: "Failed to fetch" } });
  expect(error.message).toContain("end.test:443");
  expect(error.message).not.toContain("hidden");
  const own = new ConnectionError("refused", "not there");
  expect(await failure(fetchRequester(failing(own))(post(ANYWHERE)))).toBe(own);
});

it.each([
  [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, "refused", false],
  [{ code: "ENETUNREACH", syscall: "connect" }, "refused", false],
  [{ code: "EHOSTUNREACH", syscall: "read" }, "closed", true],
  [{ code: "ETIMEDOUT", syscall: "connect" }, "timeout", false],
  [{ code: "ETIMEDOUT", syscall: "read" }, "closed", true],
  [{ code: "UND_ERR_CONNECT_TIMEOUT" }, "timeout", false],
  [{ code: "UND_ERR_HEADERS_TIMEOUT" }, "closed", true],
  [{ code: "UND_ERR_SOCKET" }, "closed", true],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "refused", false],
  [{ code: "ERR_TLS_CERT_ALTNAME_INVALID" }, "refused", false],
  [{ code: "ERR_SSL_WRONG_VERSION_NUMBER" }, "closed", true],
  [{ errors: [{ code: "ECONNREFUSED", syscall: "connect" }] }, "refused", false],
])(
  "a fetch of another kind that fails with %o fails with %s, and may have run: %s",
  async (cause, kind, mayHaveRun) => {
    const error = new TypeError("fetch failed", { cause });
    expect(await failure(fetchRequester(failing(error))(post(ANYWHERE)))).toMatchObject({ kind, mayHaveRun });
  },
);
