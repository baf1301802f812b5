// One fault at a time, in each style: the call has one outcome that names the failure, its tool does not run twice, and the
// same client works afterwards.

import { describe, expect, it } from "vitest";
import { redirect, silence, answerTwice } from "../../support/faulty-server/faults.ts";
import { sampleOf } from "../../support/thoroughness.ts";
import { FAILING_CALLS, WORKING_CALLS } from "./fault-table.ts";
import { expectHelpful, startAndConnect, startServer, outcome, STYLES, textOf } from "./fixture.ts";

/** On a machine that stalls, a call may time out before the server has got it. */
const RETRIES = { retry: 5 };

describe.each(sampleOf(3, Object.entries(STYLES)))("a call (%s)", (_, options) => {
  it.each(Object.entries(FAILING_CALLS))(
    "a call fails after %s, and the next one works",
    async (_name, { fault, runs, error }) => {
      const { server, client } = await startAndConnect(options);
      await client.listTools();
      server.inject("tools/call", fault);
      const { error: failure } = await outcome(client.callTool("run", { key: "a" }));
      expect(failure).toMatchObject(error ?? {});
      expectHelpful(failure);
      expect(server.backend.runCount("a")).toBe(runs);
      expect(server.count("tools/call")).toBe(1);
      expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
      expect(server.backend.runCount("b")).toBe(1);
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain("run");
    },
  );

  it.each(Object.entries(WORKING_CALLS))("a call works despite %s", async (_name, { fault, runs }) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", fault);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(runs);
    expect(server.count("tools/call")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a call takes the first of two answers", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", answerTwice);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("the first answer");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a call times out if the server does not answer, and its connection is closed", RETRIES, async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", silence);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 100 }));
    expect(error).toMatchObject({ kind: "timeout", message: expect.stringContaining("100 ms") });
    const [unanswered] = server.requests.filter(({ operation }) => operation === "tools/call");
    expect(unanswered).toBeDefined();
    await server.until(() => unanswered?.closed.aborted === true);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a call times out if the server sends only a part of the answer", RETRIES, async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", (request, serve) => {
      const { write } = request;
      let left = 150;
      request.write = (text) => {
        write.call(request, text.slice(0, left));
        left = Math.max(0, left - text.length);
      };
      return serve();
    });
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 100 }));
    expect(error).toMatchObject({ kind: "timeout" });
    expect(server.backend.runCount("a")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a call can be cancelled, and the server is notified", async () => {
    const { server, client } = await startAndConnect(options);
    const stop = new AbortController();
    const call = outcome(client.callTool("hold", { key: "a" }, { signal: stop.signal }));
    await server.until(() => server.backend.isHolding("a"));
    stop.abort(new Error("enough"));
    expect((await call).error).toMatchObject({ kind: "cancelled" });
    const [held] = server.requests.filter(({ operation }) => operation === "tools/call");
    await server.until(() => held?.closed.aborted === true);
    if (options.style === "session") {
      expect(server.backend.received).toContainEqual(expect.objectContaining({ method: "notifications/cancelled" }));
    } else expect(server.operations).not.toContain("notifications/cancelled");
    server.backend.release("a");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a call does not follow a redirect to another origin", async () => {
    const { server, client } = await startAndConnect(options);
    const other = await startServer(options);
    for (const code of [301, 302, 303, 307, 308]) {
      server.inject(
        "tools/call",
        redirect(code, () => other.url),
      );
      const { error } = await outcome(client.callTool("run", { key: `to ${code}` }));
      expectHelpful(error);
      expect(error?.message).toMatch(/redirect/i);
      expect(error?.message).toContain(new URL(other.url).host);
    }
    expect(other.requests).toEqual([]);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a call fails after too many redirects", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject(
      "tools/call",
      redirect(307, ({ path }) => `${path}?more`),
      1_000,
    );
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error?.message).toMatch(/redirect/i);
    expect(server.count("tools/call")).toBeLessThan(50);
    server.clearFaults();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it.each([307, 308])("a call follows %i on the same origin with the same body", async (code) => {
    const { server, client } = await startAndConnect(options);
    server.inject(
      "tools/call",
      redirect(code, () => "/mcp?moved"),
    );
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    const [first, second] = server.requests.filter(({ operation }) => operation === "tools/call");
    expect(second?.path).toBe("/mcp?moved");
    expect(second?.text).toBe(first?.text);
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("a call works if the server has closed the idle connection", async () => {
    const { server, client } = await startAndConnect(options);
    await client.callTool("run", { key: "a" });
    await server.server.hangUp();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.backend.runCount("b")).toBe(1);
  });

  it("a call is not sent twice if the connection is closed while it is reused", async () => {
    const { server, client } = await startAndConnect(options);
    await client.listTools();
    for (let n = 0; n < 10; n += 1) {
      await client.callTool("peek", { key: "opens a connection" });
      let closed = false;
      server.server.onReuse = () => {
        if (closed) return false;
        closed = true;
        return true;
      };
      const { value, error } = await outcome(client.callTool("run", { key: `r${n}` }));
      server.server.onReuse = () => false;
      if (error !== undefined) expect(error).toMatchObject({ kind: "closed" });
      else expect(textOf(value ?? {})).toBe(`ran r${n}`);
      expect(server.backend.runCount(`r${n}`)).toBeLessThanOrEqual(1);
      expect(textOf(await client.callTool("run", { key: `after ${n}` }))).toBe(`ran after ${n}`);
    }
  });
});

describe.each(sampleOf(1, ["stateless", "sessions"]))("a call with a custom fetch (%s)", (style) => {
  const options = STYLES[style] ?? {};

  it.each(Object.entries(FAILING_CALLS))(
    "a call with a custom fetch fails after %s, and the next one works",
    async (_name, { fault, runs, error }) => {
      const { server, client } = await startAndConnect(options, { fetch });
      await client.listTools();
      server.inject("tools/call", fault);
      const { error: failure } = await outcome(client.callTool("run", { key: "a" }));
      expect(failure).toMatchObject(error ?? {});
      expectHelpful(failure);
      expect(server.backend.runCount("a")).toBe(runs);
      expect(server.count("tools/call")).toBe(1);
      expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
      expect(server.backend.runCount("b")).toBe(1);
    },
  );

  it.each(Object.entries(WORKING_CALLS))(
    "a call with a custom fetch works despite %s",
    async (_name, { fault, runs }) => {
      const { server, client } = await startAndConnect(options, { fetch });
      server.inject("tools/call", fault);
      expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
      expect(server.backend.runCount("a")).toBe(runs);
      expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    },
  );
});
