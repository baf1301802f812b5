// One fault at a time, in each style: the call comes to one outcome that names what failed, its tool has not run twice,
// and when the fault is over the same client goes on as if nothing had been. What the end did before the fault is known
// here, because the end counts.

import { describe, expect, it } from "vitest";
import { redirect, silence, answerTwice } from "../../support/faulty-server/faults.ts";
import { FAILS, WORKS } from "./fault-table.ts";
import { expectHelpful, startAndConnect, startServer, outcome, STYLES, textOf } from "./fixture.ts";

describe.each(Object.entries(STYLES))("a call in %s", (_, options) => {
  it.each(Object.entries(FAILS))("fails by %s, once, and the next one works", async (_name, { fault, runs, error }) => {
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
  });

  it.each(Object.entries(WORKS))("works in spite of %s", async (_name, { fault, runs }) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", fault);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(runs);
    expect(server.count("tools/call")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("takes the first of two answers", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", answerTwice);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("the first answer");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is given up where the end stays silent, and the connection is let go of", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", silence);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 100 }));
    expect(error).toMatchObject({ kind: "timeout", message: expect.stringContaining("100 ms") });
    const [silent] = server.requests.filter(({ operation }) => operation === "tools/call");
    await server.until(() => silent?.closed.aborted === true);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is given up where the end says half of it and stays silent", async () => {
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

  it("is cancelled by its caller, and the end hears of it", async () => {
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

  it("does not follow a redirect to another origin", async () => {
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

  it("is not sent round in circles", async () => {
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

  it.each([307, 308])("follows %i on the same origin, with all that it brought", async (code) => {
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

  it("works when a connection that was kept was closed meanwhile", async () => {
    const { server, client } = await startAndConnect(options);
    await client.callTool("run", { key: "a" });
    await server.server.hangUp();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.backend.runCount("b")).toBe(1);
  });

  it("is not sent twice where a connection is closed just as it is used again", async () => {
    const { server, client } = await startAndConnect(options);
    await client.listTools();
    for (let n = 0; n < 10; n += 1) {
      await client.callTool("peek", { key: "to have a connection" });
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

describe.each(["exchanges", "sessions"])("a call in %s by a fetch of the program's own", (style) => {
  const options = STYLES[style] ?? {};

  it.each(Object.entries(FAILS))("fails by %s, once, and the next one works", async (_name, { fault, runs, error }) => {
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
  });

  it.each(Object.entries(WORKS))("works in spite of %s", async (_name, { fault, runs }) => {
    const { server, client } = await startAndConnect(options, { fetch });
    server.inject("tools/call", fault);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(runs);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});
