// Redirects that are followed, and those that are not; what stands below is a table, not a network.

import { describe, expect, it } from "vitest";
import { sameOrigin, type HttpResponse, type OutgoingRequest, type Requester } from "./requester.ts";

const BASE = "https://end.test:8443";

interface Stage {
  readonly requester: Requester;
  readonly asked: OutgoingRequest[];
  /** Bodies that were let go of. */
  discarded: number;
  closed: number;
}

/** An end that redirects from one path to another. */
function stage(redirects: Readonly<Record<string, readonly [status: number, location?: string]>>): Stage {
  const asked: OutgoingRequest[] = [];
  const requester = async (request: OutgoingRequest): Promise<HttpResponse> => {
    asked.push(request);
    const [status, location] = redirects[request.url.pathname] ?? [200];
    return {
      status,
      headers: location === undefined ? {} : { location },
      body: (async function* () {})(),
      read: async (_limit, make) => make(Buffer.alloc(0)),
      text: async () => "",
      discard: () => void (stage.discarded += 1),
    };
  };
  requester.close = () => void (stage.closed += 1);
  const stage: Stage = { requester, asked, discarded: 0, closed: 0 };
  return stage;
}

const ask = (method: OutgoingRequest["method"], path: string, rest: Partial<OutgoingRequest> = {}): OutgoingRequest => ({
  method,
  url: new URL(path, BASE),
  headers: { authorization: "Bearer secret" },
  ...rest,
});

const paths = ({ asked }: Stage): string[] => asked.map(({ url }) => `${url.pathname}${url.search}`);

describe("a redirect within the origin", () => {
  it.each([301, 302, 303, 307, 308])("with %d is followed for a GET", async (status) => {
    const end = stage({ "/a": [status, "/b?c=d"] });
    const { signal } = new AbortController();
    const answer = await sameOrigin(end.requester)(ask("GET", "/a", { signal }));
    expect(answer.status).toBe(200);
    expect(paths(end)).toEqual(["/a", "/b?c=d"]);
    expect(end.asked[1]).toMatchObject({ method: "GET", headers: { authorization: "Bearer secret" }, signal });
    expect(end.discarded).toBe(1);
  });

  it.each([307, 308])("with %d is followed for a POST, as it is", async (status) => {
    const end = stage({ "/a": [status, `${BASE}/b`] });
    await sameOrigin(end.requester)(ask("POST", "/a", { body: "{}" }));
    expect(end.asked[1]).toMatchObject({ method: "POST", body: "{}" });
    expect(paths(end)).toEqual(["/a", "/b"]);
  });

  it.each([
    ["POST", 301],
    ["POST", 302],
    ["POST", 303],
    ["DELETE", 301],
    ["DELETE", 303],
  ] as const)("of a %s with %d would make another request of it, and is refused", async (method, status) => {
    const end = stage({ "/a": [status, "/b"] });
    await expect(sameOrigin(end.requester)(ask(method, "/a"))).rejects.toMatchObject({
      kind: "http",
      mayHaveRun: false,
      message: `The end at end.test:8443 redirects a ${method} with ${status}, which would make a GET of it; connect to ${BASE}/b itself`,
    });
    expect(paths(end)).toEqual(["/a"]);
    expect(end.discarded).toBe(1);
  });

  it("is followed five times and no more", async () => {
    const most = stage({
      "/0": [307, "/1"],
      "/1": [307, "/2"],
      "/2": [307, "/3"],
      "/3": [307, "/4"],
      "/4": [307, "/5"],
    });
    expect((await sameOrigin(most.requester)(ask("GET", "/0"))).status).toBe(200);
    expect(most.asked).toHaveLength(6);
    const endless = stage({ "/a": [307, "/a"] });
    await expect(sameOrigin(endless.requester)(ask("POST", "/a"))).rejects.toMatchObject({
      kind: "http",
      mayHaveRun: false,
      message: expect.stringContaining("redirects more than 5 times"),
    });
    expect(endless.asked).toHaveLength(6);
    expect(endless.discarded).toBe(6);
    const once = stage({ "/a": [307, "/a"] });
    await expect(sameOrigin(once.requester, { most: 1 })(ask("GET", "/a"))).rejects.toThrow("more than 1 times");
    expect(once.asked).toHaveLength(2);
  });

  it("is held against the place that it came from", async () => {
    const end = stage({ "/a/b": [307, "c"], "/a/c": [307, "?d"] });
    await expect(sameOrigin(end.requester, { most: 2 })(ask("GET", "/a/b"))).rejects.toThrow();
    expect(paths(end)).toEqual(["/a/b", "/a/c", "/a/c?d"]);
  });

  it("takes no name and no password along", async () => {
    const end = stage({ "/a": [307, "https://me:secret@end.test:8443/b"] });
    await sameOrigin(end.requester)(ask("GET", "/a"));
    expect(end.asked[1]?.url.href).toBe(`${BASE}/b`);
  });
});

describe("a redirect elsewhere", () => {
  it.each([
    ["https://other.test/mcp?token=1", "https://other.test"],
    ["https://end.test/mcp", "https://end.test"],
    ["http://end.test:8443/mcp", "http://end.test:8443"],
    ["//sub.end.test:8443/", "https://sub.end.test:8443"],
    ["https://end.test:8443@other.test/", "https://other.test"],
    ["\\\\other.test/", "https://other.test"],
  ])("to %s is not followed, and the error names %s", async (location, origin) => {
    for (const method of ["GET", "POST"] as const) {
      const end = stage({ "/a": [307, location] });
      await expect(sameOrigin(end.requester)(ask(method, "/a"))).rejects.toMatchObject({
        kind: "http",
        mayHaveRun: false,
        message: `The end at end.test:8443 redirects to ${origin}; connect to that address if you trust it`,
      });
      expect(end.asked).toHaveLength(1);
      expect(end.discarded).toBe(1);
    }
  });

  it.each(["file:///etc/passwd", "data:text/plain,x", "https://", "http://[::1"])(
    "to %s is refused",
    async (location) => {
      const end = stage({ "/a": [302, location] });
      await expect(sameOrigin(end.requester)(ask("GET", "/a"))).rejects.toMatchObject({
        kind: "http",
        mayHaveRun: false,
      });
      expect(end.asked).toHaveLength(1);
    },
  );
});

describe("an answer that is no redirect", () => {
  it.each([
    [200, "/b"],
    [201, "/b"],
    [300, "/b"],
    [304, "/b"],
    [404, undefined],
    [307, undefined],
  ])("comes as it is: %d, location %s", async (status, location) => {
    const end = stage({ "/a": location === undefined ? [status] : [status, location] });
    const answer = await sameOrigin(end.requester)(ask("GET", "/a"));
    expect(answer.status).toBe(status);
    expect(end.discarded).toBe(0);
  });
});

it("closes the requester that it stands before", () => {
  const end = stage({});
  sameOrigin(end.requester).close();
  expect(end.closed).toBe(1);
});
