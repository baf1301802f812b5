// Which requests are retried after a network failure: reads, tools that declare it, and requests that were certainly not
// executed. Other calls are not retried, and their error says that they may have run.

import { expect, it } from "vitest";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import { cut, hangUp, runThenStatus, reset, status } from "../../support/faulty-server/faults.ts";
import type { FaultyServerOptions, Fault } from "../../support/faulty-server/server.ts";
import { expectHelpful, connectTo, startAndConnect, startServer, outcome, STYLES, textOf } from "./fixture.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

/** In parallel, since retries take some time. */
async function inEveryStyle(work: (options: FaultyServerOptions, style: string) => Promise<void>): Promise<void> {
  await Promise.all(Object.entries(STYLES).map(([style, options]) => work(options, style)));
}

it("in each style, a call to a stopped server has not run, and works when the server is back", () =>
  inEveryStyle(async (options, style) => {
    const { server, client } = await startAndConnect(options);
    await server.server.stop();
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expect(error, style).toMatchObject({ kind: "refused", mayHaveRun: false });
    expectHelpful(error);
    await server.server.start();
    expect(textOf(await client.callTool("run", { key: "a" })), style).toBe("ran a");
    expect(server.backend.runCount("a"), style).toBe(1);
  }));

it("in each style, a call works if the server is back after a moment", () =>
  inEveryStyle(async (options, style) => {
    const { server, client } = await startAndConnect(options);
    await server.server.stop();
    const call = outcome(client.callTool("run", { key: "a" }));
    await server.server.start();
    expect(textOf((await call).value ?? {}), style).toBe("ran a");
    expect(server.backend.runCount("a"), style).toBe(1);
  }));

const temporary: Readonly<Record<string, Fault>> = {
  "a closed connection": hangUp,
  "a reset": reset,
  "a cut after it ran": cut(0),
  "502": status(502),
  "503 after it ran": runThenStatus(503),
};

it.each(Object.entries(temporary))("in each style, a tool that may run again is retried after %s", (_name, fault) =>
  inEveryStyle(async (options, style) => {
    for (const tool of ["peek", "again"]) {
      const { server, client } = await startAndConnect(options);
      await client.listTools();
      server.inject("tools/call", fault);
      expect(textOf(await client.callTool(tool, { key: tool })), style).toBe(`ran ${tool}`);
      expect(server.backend.runCount(tool), style).toBeLessThanOrEqual(2);
    }
  }),
);

it("in each style, a tool is not retried if the client does not know that it may run again", () =>
  inEveryStyle(async (options, style) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", cut(0));
    const { error } = await outcome(client.callTool("peek", { key: "a" }));
    // In the stateless style, the list is read before the first call, for the headers that tools may need.
    const isKnown = server.operations.includes("tools/list");
    expect(isKnown, style).toBe(client.revision === NEWEST.name);
    if (isKnown) expect(error, style).toBeUndefined();
    else expect(error, style).toMatchObject({ kind: "closed", mayHaveRun: true });
    expect(server.backend.runCount("a"), style).toBe(isKnown ? 2 : 1);
  }));

it.runIf(IS_LONG)("in each style, a call whose retries failed may have run if one of the attempts may have", () =>
  inEveryStyle(async (options, style) => {
    const { server, client } = await startAndConnect(options);
    await client.listTools();
    server.inject("tools/call", async (request, serve) => {
      request.cutAfter(0);
      await serve();
      await server.server.stop();
    });
    const { error } = await outcome(client.callTool("peek", { key: "a" }));
    expect(server.backend.runCount("a"), style).toBe(1);
    expect(error, style).toMatchObject({ mayHaveRun: true });
    await server.server.start();
  }),
);

it("in each style lists and reads are retried", () =>
  inEveryStyle(async (options, style) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/list", hangUp);
    server.inject("resources/read", status(503));
    expect((await client.listTools()).tools.length, style).toBeGreaterThan(0);
    expect((await client.readResource("note://one")).contents, style).toHaveLength(1);
  }));

it.each(Object.entries({ "a closed connection": hangUp, "a reset": reset }))(
  "the probe of a connecting client is sent once more after %s",
  async (_name, fault) => {
    const server = await startServer(STYLES["stateless"]);
    server.inject("server/discover", fault);
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
  },
);

it.each(Object.entries(STYLES))(
  "many calls at once have their own outcomes when all connections break (%s)",
  async (_, options) => {
    const { server, client } = await startAndConnect(options);
    const keys = Array.from({ length: 20 }, (_none, n) => `k${n}`);
    const calls = keys.map((key) => outcome(client.callTool("hold", { key })));
    await server.until(() => keys.every((key) => server.backend.isHolding(key)));
    await server.server.hangUp();
    for (const key of keys) server.backend.release(key);
    const outcomes = await Promise.all(calls);
    for (const [n, { value, error }] of outcomes.entries()) {
      if (error === undefined) expect(textOf(value ?? {})).toBe(`ran k${n}`);
      else expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      expect(server.backend.runCount(`k${n}`)).toBe(1);
    }
    // Only streams with event ids can be resumed.
    const isResumed = options.session?.eventIds !== false && options.style === "session";
    expect(outcomes.filter(({ value }) => value !== undefined)).toHaveLength(isResumed ? 20 : 0);
    const client2 = await connectTo(server);
    expect(textOf(await client2.callTool("run", { key: "after" }))).toBe("ran after");
  },
);
