// Redirects that are followed, and those that are not; without a network.

import { expect, it } from "vitest";
import { followSameOrigin } from "./redirects.ts";
import type { HttpResponse, ClientHttpRequest, Requester } from "./requester.ts";

const BASE = "https://server.test:8443";

interface RedirectServer {
  readonly requester: Requester;
  readonly requests: ClientHttpRequest[];
  /** Number of discarded bodies. */
  discarded: number;
  closed: number;
}

/** A server that redirects from one path to another. */
function redirectServer(
  redirects: Readonly<Record<string, readonly [status: number, location?: string]>>,
): RedirectServer {
  const requests: ClientHttpRequest[] = [];
  const requester = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    requests.push(request);
    const [status, location] = redirects[request.url.pathname] ?? [200];
    return {
      status,
      headers: location === undefined ? {} : { location },
      body: (async function* () {})(),
      read: async (_limit, make) => make(Buffer.alloc(0)),
      text: async () => "",
      discard: () => void (server.discarded += 1),
    };
  };
  requester.close = () => void (server.closed += 1);
  const server: RedirectServer = { requester, requests, discarded: 0, closed: 0 };
  return server;
}

const request = (
  method: ClientHttpRequest["method"],
  path: string,
  rest: Partial<ClientHttpRequest> = {},
): ClientHttpRequest => ({
  method,
  url: new URL(path, BASE),
  headers: { authorization: "Bearer secret" },
  ...rest,
});

const paths = ({ requests }: RedirectServer): string[] => requests.map(({ url }) => `${url.pathname}${url.search}`);

it.each([301, 302, 303, 307, 308])("a redirect within the origin with %d is followed for a GET", async (status) => {
  const server = redirectServer({ "/a": [status, "/b?c=d"] });
  const { signal } = new AbortController();
  const response = await followSameOrigin(server.requester)(request("GET", "/a", { signal }));
  expect(response.status).toBe(200);
  expect(paths(server)).toEqual(["/a", "/b?c=d"]);
  expect(server.requests[1]).toMatchObject({ method: "GET", headers: { authorization: "Bearer secret" }, signal });
  expect(server.discarded).toBe(1);
});

it.each([307, 308])("a redirect within the origin with %d is followed for a POST, unchanged", async (status) => {
  const server = redirectServer({ "/a": [status, `${BASE}/b`] });
  await followSameOrigin(server.requester)(request("POST", "/a", { body: "{}" }));
  expect(server.requests[1]).toMatchObject({ method: "POST", body: "{}" });
  expect(paths(server)).toEqual(["/a", "/b"]);
});

it.each([
  ["POST", 301],
  ["POST", 302],
  ["POST", 303],
  ["DELETE", 301],
  ["DELETE", 303],
] as const)(
  "a redirect within the origin of a %s with %d would change the method, and is refused",
  async (method, status) => {
    const server = redirectServer({ "/a": [status, "/b"] });
    await expect(followSameOrigin(server.requester)(request(method, "/a"))).rejects.toMatchObject({
      kind: "http",
      mayHaveRun: false,
      message: `The server at server.test:8443 redirects a ${method} with ${status}, which would turn it into a GET; connect to the address that it redirects to`,
    });
    expect(paths(server)).toEqual(["/a"]);
    expect(server.discarded).toBe(1);
  },
);

it("a redirect within the origin is followed at most five times", async () => {
  const most = redirectServer({
    "/0": [307, "/1"],
    "/1": [307, "/2"],
    "/2": [307, "/3"],
    "/3": [307, "/4"],
    "/4": [307, "/5"],
  });
  expect((await followSameOrigin(most.requester)(request("GET", "/0"))).status).toBe(200);
  expect(most.requests).toHaveLength(6);
  const endless = redirectServer({ "/a": [307, "/a"] });
  await expect(followSameOrigin(endless.requester)(request("POST", "/a"))).rejects.toMatchObject({
    kind: "http",
    mayHaveRun: false,
    message: expect.stringContaining("redirects more than 5 times"),
  });
  expect(endless.requests).toHaveLength(6);
  expect(endless.discarded).toBe(6);
});

it("a redirect within the origin is resolved against the redirecting URL", async () => {
  const server = redirectServer({ "/a/b": [307, "c"], "/a/c": [307, "?d"] });
  await expect(followSameOrigin(server.requester)(request("GET", "/a/b"))).rejects.toThrow();
  expect(paths(server).slice(0, 3)).toEqual(["/a/b", "/a/c", "/a/c?d"]);
});

it("a redirect within the origin drops the userinfo of its target", async () => {
  const server = redirectServer({ "/a": [307, "https://me:secret@server.test:8443/b"] });
  await followSameOrigin(server.requester)(request("GET", "/a"));
  expect(server.requests[1]?.url.href).toBe(`${BASE}/b`);
});

it.each([
  ["https://other.test/mcp?token=1", "https://other.test"],
  ["https://server.test/mcp", "https://server.test"],
  ["http://server.test:8443/mcp", "http://server.test:8443"],
  ["//sub.server.test:8443/", "https://sub.server.test:8443"],
  ["https://server.test:8443@other.test/", "https://other.test"],
  ["\\\\other.test/", "https://other.test"],
])("a redirect to another origin to %s is not followed, and the error names %s", async (location, origin) => {
  for (const method of ["GET", "POST"] as const) {
    const server = redirectServer({ "/a": [307, location] });
    await expect(followSameOrigin(server.requester)(request(method, "/a"))).rejects.toMatchObject({
      kind: "http",
      mayHaveRun: false,
      message: `The server at server.test:8443 redirects to ${origin}; connect to that address if you trust it`,
    });
    expect(server.requests).toHaveLength(1);
    expect(server.discarded).toBe(1);
  }
});

it.each(["file:///etc/passwd", "data:text/plain,x", "https://", "http://[::1"])(
  "a redirect to another origin to %s is refused",
  async (location) => {
    const server = redirectServer({ "/a": [302, location] });
    await expect(followSameOrigin(server.requester)(request("GET", "/a"))).rejects.toMatchObject({
      kind: "http",
      mayHaveRun: false,
    });
    expect(server.requests).toHaveLength(1);
  },
);

it.each([
  [200, "/b"],
  [201, "/b"],
  [300, "/b"],
  [304, "/b"],
  [404, undefined],
  [307, undefined],
])("a response that is not a redirect is returned unchanged: %d, location %s", async (status, location) => {
  const server = redirectServer({ "/a": location === undefined ? [status] : [status, location] });
  const response = await followSameOrigin(server.requester)(request("GET", "/a"));
  expect(response.status).toBe(status);
  expect(server.discarded).toBe(0);
});

it("closes the wrapped requester", () => {
  const server = redirectServer({});
  followSameOrigin(server.requester).close();
  expect(server.closed).toBe(1);
});
