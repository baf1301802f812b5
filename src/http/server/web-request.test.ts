// Visits by way of a web-standard request, with nothing but a Request and a Response.

import { describe, expect, it } from "vitest";
import type { StreamSink } from "./http-request.ts";
import { WebHttpRequest } from "./web-request.ts";

const MAX = 1_000;
const ADDRESS = "http://localhost:3000/mcp";

function post(body: RequestInit["body"], headers: Record<string, string> = {}): WebHttpRequest {
  return new WebHttpRequest(new Request(ADDRESS, { method: "POST", body: body ?? null, headers, duplex: "half" }));
}

function pieces(...chunks: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
    },
  });
}

describe("what a visit says of its request", () => {
  it("is where it goes and what it brings", () => {
    const visit = new WebHttpRequest(
      new Request("http://localhost:3000/a%2fb?x=1?", { headers: { Host: "other.example", "X-Many": "a" } }),
    );
    expect(visit).toMatchObject({ method: "GET", path: "/a%2fb", query: "x=1?", origin: "http://other.example" });
    expect(visit.headers).toMatchObject({ host: "other.example", "x-many": "a" });
    expect(visit.headers["toString"]).toBeDefined();
    expect(visit.ambiguous).toBe(false);
  });

  it("takes the host of its address where there is no header for it", () => {
    const visit = new WebHttpRequest(new Request("https://mcp.example/"));
    expect([visit.headers["host"], visit.origin, visit.path]).toEqual(["mcp.example", "https://mcp.example", "/"]);
  });

  it.each(["host", "origin", "content-type", "authorization", "mcp-session-id"])(
    "is ambiguous with two of %s",
    (name) => {
      const headers = new Headers([
        [name, "a"],
        [name, "b"],
      ]);
      expect(new WebHttpRequest(new Request(ADDRESS, { headers })).ambiguous).toBe(true);
      expect(new WebHttpRequest(new Request(ADDRESS, { headers: { [name]: "a" } })).ambiguous).toBe(false);
    },
  );
});

describe("a body", () => {
  it("comes whole, in pieces, or not at all", async () => {
    expect(await post('{"a":"\u00fc"}').body(MAX, 20_000)).toBe('{"a":"\u00fc"}');
    const bytes = new TextEncoder().encode("\u{1f600}");
    expect(await post(pieces(bytes.slice(0, 2), bytes.slice(2), "!")).body(MAX, 20_000)).toBe("\u{1f600}!");
    expect(await post(null).body(MAX, 20_000)).toBe("");
    expect(await post(pieces("\ufeffx")).body(MAX, 20_000)).toBe("\ufeffx");
  });

  it("may be as long as the limit, and no longer", async () => {
    expect(await post(pieces("x".repeat(MAX))).body(MAX, 20_000)).toHaveLength(MAX);
    await expect(post(pieces("x".repeat(MAX), "x")).body(MAX, 20_000)).rejects.toMatchObject({ status: 413 });
    await expect(post("x", { "content-length": "1001" }).body(MAX, 20_000)).rejects.toMatchObject({ status: 413 });
  });

  it("is not read any further once it is refused", async () => {
    let reason: string | undefined;
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(400));
      },
      cancel() {
        reason = "cancelled";
      },
    });
    await expect(post(endless).body(MAX, 20_000)).rejects.toMatchObject({ status: 413 });
    await new Promise(setImmediate);
    expect([reason, sent < 10]).toEqual(["cancelled", true]);
  });

  it("that is too slow is refused", async () => {
    await expect(post(new ReadableStream()).body(MAX, 20)).rejects.toMatchObject({ status: 408 });
  });

  it.each([[[0xff]], [[0xe2, 0x82]], [[0xc0, 0xaf]]])("that is not UTF-8 is refused: %j", async (bytes) => {
    await expect(post(pieces(Uint8Array.from(bytes))).body(MAX, 20_000)).rejects.toMatchObject({ status: 400 });
  });

  it("that is compressed is refused", async () => {
    const visit = post("x", { "content-encoding": "gzip" });
    await expect(visit.body(MAX, 20_000)).rejects.toMatchObject({ status: 415 });
    expect(await post("x", { "content-encoding": "identity" }).body(MAX, 20_000)).toBe("x");
  });

  it("that breaks off, or that somebody has read, is missed", async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new Error("reset"));
      },
    });
    await expect(post(broken).body(MAX, 20_000)).rejects.toMatchObject({ status: 400 });
    const request = new Request(ADDRESS, { method: "POST", body: "x" });
    await request.text();
    await expect(new WebHttpRequest(request).body(MAX, 20_000)).rejects.toMatchObject({ status: 500 });
  });
});

describe("an answer", () => {
  it("is the response, and the only one", async () => {
    const visit = post("x");
    visit.answer(201, { "content-type": "application/json" }, '"\u00fc"');
    visit.answer(500, {}, "no");
    visit.stream({}).write("no");
    const response = await visit.response;
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
      201,
      "application/json",
      '"\u00fc"',
    ]);
  });

  it.each([202, 204])("may have no body: %i", async (status) => {
    const visit = post("x");
    visit.answer(status, {});
    const response = await visit.response;
    expect([response.status, response.body]).toEqual([status, null]);
  });
});

describe("a stream", () => {
  async function begun(headers: Record<string, string> = {}): Promise<{
    visit: WebHttpRequest;
    sink: StreamSink;
    response: Response;
    reader: ReadableStreamDefaultReader<Uint8Array>;
  }> {
    const visit = post("x");
    const sink = visit.stream(headers);
    const response = await visit.response;
    return { visit, sink, response, reader: (response.body as ReadableStream<Uint8Array>).getReader() };
  }

  async function text(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | undefined> {
    const { value } = await reader.read();
    return value === undefined ? undefined : new TextDecoder().decode(value);
  }

  it("begins with its head, and carries what is encodeResponse until its end", async () => {
    const { sink, response, reader } = await begun({ "mcp-session-id": "s" });
    expect(Object.fromEntries(response.headers)).toEqual({
      "cache-control": "no-cache, no-transform",
      "content-type": "text/event-stream",
      "mcp-session-id": "s",
      "x-accel-buffering": "no",
    });
    const first = text(reader);
    sink.write("data: 1\n\n");
    expect(await first).toBe("data: 1\n\n");
    sink.write("data: \u00fc\n\n");
    sink.end();
    sink.write("late");
    sink.end();
    sink.cut();
    expect([await text(reader), await text(reader)]).toEqual(["data: \u00fc\n\n", undefined]);
  });

  it("counts the bytes that nobody has taken", async () => {
    const { sink, reader } = await begun();
    expect(sink.waiting).toBe(0);
    sink.write("\u00fc\u00fc");
    sink.write("abc");
    expect(sink.waiting).toBe(7);
    await reader.read();
    expect(sink.waiting).toBe(3);
    await reader.read();
    expect(sink.waiting).toBe(0);
    const next = reader.read();
    sink.write("taken at once");
    expect(sink.waiting).toBe(0);
    await next;
  });

  it("loses what nobody has taken when it is cut", async () => {
    const { visit, sink, reader } = await begun();
    const gone: string[] = [];
    visit.onGone(() => gone.push("gone"));
    sink.write("lost");
    sink.cut();
    await expect(reader.read()).rejects.toThrow("cut");
    expect([gone, sink.waiting]).toEqual([[], 0]);
  });

  it("tells when its reader leaves", async () => {
    const { visit, sink, reader } = await begun();
    const gone: string[] = [];
    visit.onGone(() => gone.push("gone"));
    await reader.cancel();
    expect([gone, visit.isGone]).toEqual([["gone"], true]);
    sink.write("nobody");
    sink.end();
    sink.cut();
    expect(gone).toEqual(["gone"]);
  });
});

describe("a caller that hangs up", () => {
  function visitWith(controller: AbortController): WebHttpRequest {
    return new WebHttpRequest(new Request(ADDRESS, { signal: controller.signal }));
  }

  it("is noticed once, by the last who asked, and leaves no runtime waiting", async () => {
    const controller = new AbortController();
    const visit = visitWith(controller);
    const gone: string[] = [];
    visit.onGone(() => gone.push("first"));
    visit.onGone(() => gone.push("last"));
    controller.abort();
    expect([gone, visit.isGone]).toEqual([["last"], true]);
    visit.onGone(() => gone.push("late"));
    expect(gone).toEqual(["last", "late"]);
    visit.answer(200, {}, "nobody");
    expect((await visit.response).status).toBe(499);
  });

  it("is not one that was answered, whatever the runtime says afterwards", () => {
    const controller = new AbortController();
    const visit = visitWith(controller);
    const gone: string[] = [];
    visit.onGone(() => gone.push("gone"));
    visit.answer(200, {});
    controller.abort();
    expect([gone, visit.isGone]).toEqual([[], false]);
  });
});
