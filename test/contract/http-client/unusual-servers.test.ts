// What ends may do that is neither quite right nor quite wrong, and what becomes of a client whose end changes under it:
// ids that no header can hold as they are, times that no timer can, streams that say things again, another style after
// a restart.

import { describe, expect, it } from "vitest";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { silence } from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import { expectHelpful, connectTo, startAndConnect, LEGACY_SSE, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

/** Ends the connection of a stream after so many messages. */
const breaksAfter =
  (messages: number): Fault =>
  (request, serve) => {
    const { chunk } = request;
    let said = 0;
    request.chunk = (text) => {
      if (said >= messages) return;
      chunk.call(request, text);
      if (text.includes('"jsonrpc"')) said += 1;
      if (said >= messages) request.hangUp();
    };
    return serve();
  };

describe("events", () => {
  it("may have ids in any script, which come back as they are", async () => {
    for (const mark of ["-ü", "-漢", "-🙂", "- with spaces", "-\u007f"]) {
      const { server, client } = await startAndConnect({ style: "session", session: { idSuffix: mark, retryMs: 10 } });
      server.inject("tools/call", breaksAfter(1));
      const { value, error } = await outcome(
        client.callTool("run", { key: "a", steps: 3 }, { onProgress: () => undefined, timeoutMs: 3_000 }),
      );
      // A control character cannot stand in a header in any way: that call fails, and says that it may have run.
      if (error === undefined) expect(textOf(value ?? {}), mark).toBe("ran a");
      else {
        expect(mark).toBe("-\u007f");
        expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      }
      expect(server.backend.runCount("a")).toBe(1);
    }
  });

  it("that come again when a stream is taken up are not heard again", async () => {
    const { server, client } = await startAndConnect({ style: "session", session: { replaysAll: true, retryMs: 10 } });
    server.inject("tools/call", breaksAfter(3));
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
    expect(textOf(await client.callTool("run", { key: "a", steps: 5 }, { onProgress }))).toBe("ran a");
    expect(steps).toEqual([1, 2, 3, 4, 5]);
  });

  it.each([2 ** 31, 2 ** 40, 1e21])("that ask to wait for %d ms are waited for, not hurried after", async (retryMs) => {
    const { server, client } = await startAndConnect({ style: "session", session: { retryMs } });
    await server.untilSubscribed();
    server.requests.find(({ operation }) => operation === "GET")?.hangUp();
    for (let n = 0; n < 20; n += 1) await client.callTool("run", { key: `k${n}` });
    expect(server.count("GET")).toBe(1);
  });
});

describe("a session", () => {
  it("that was forgotten is begun anew for a listen too", async () => {
    const { server, client } = await startAndConnect(SESSION);
    server.sessions.forget();
    let wake: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (wake = resolve));
    await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
    await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    await server.untilSubscribed();
    server.updateNote();
    await heard;
  });

  it("needs no answer to its GET to be used", async () => {
    const server = await startServer(SESSION);
    server.inject("GET", silence, 10);
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it("with an empty name has none", async () => {
    const server = await startServer({ style: "session", session: { sessionIds: false } });
    server.inject("initialize", (request, serve) => {
      const { answer } = request;
      request.answer = (code, body, headers) => answer.call(request, code, body, { ...headers, "mcp-session-id": "" });
      return serve();
    });
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    await client.close();
    expect(server.operations).not.toContain("DELETE");
    expect(server.requests.filter(({ headers }) => headers["mcp-session-id"] !== undefined)).toEqual([]);
  });

  it("may be begun anew in another revision", async () => {
    const older = REVISIONS.filter(({ style }) => style === "session").at(-2)?.name;
    const { server, client } = await startAndConnect(SESSION);
    expect(client.revision).toBe(NEWEST_SESSION.name);
    server.sessions.forget();
    server.inject("initialize", (request, serve) => {
      const { answer } = request;
      request.answer = (code, body, headers) => {
        const text = JSON.stringify(body).replaceAll(NEWEST_SESSION.name, older ?? "");
        answer.call(request, code, JSON.parse(text) as object, headers);
      };
      return serve();
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(client.revision).toBe(older);
    expect(server.requests.at(-1)?.headers["mcp-protocol-version"]).toBe(older);
  });
});

describe("an end that comes back in another style", () => {
  it.each([
    ["sessions", "stateless"],
    ["sessions", "old"],
    ["exchanges", "session"],
    ["exchanges", "old"],
  ] as const)("after %s as %s fails the calls of who knew it, and says so; who asks anew finds it", async (was, is) => {
    const { server, client } = await startAndConnect(STYLES[was]);
    await server.restart(is);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 5_000 }));
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(server.backend.runCount("a")).toBe(0);
    await client.close();
    expect(textOf(await (await connectTo(server)).callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("after the old pair of addresses too", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    await server.restart("stateless");
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 5_000 }));
    expectHelpful(error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(server.backend.runCount("a")).toBe(0);
  });
});

describe("a listen in exchanges", () => {
  it("is over when the end says so, and is not opened again", async () => {
    const { server, client } = await startAndConnect({ style: "stateless" });
    server.inject("subscriptions/listen", async (request, serve) => {
      await serve();
      const result = { resultType: "complete" };
      request.chunk(`data: ${JSON.stringify({ jsonrpc: "2.0", id: request.json?.["id"], result })}\n\n`);
      request.end();
    });
    const subscription = await client.listen({ toolsListChanged: true });
    await subscription.ended;
    await client.callTool("run", { key: "a" });
    expect(server.count("subscriptions/listen")).toBe(1);
  });

  it("that is closed is closed at the end too", async () => {
    const { server, client } = await startAndConnect({ style: "stateless" });
    const subscription = await client.listen({ toolsListChanged: true });
    const [visit] = server.requests.filter(({ operation }) => operation === "subscriptions/listen");
    await subscription.close();
    await server.until(() => visit?.closed.aborted === true);
  });
});

describe("a client", () => {
  it("may be one of many that come at once", async () => {
    for (const options of [SESSION, STYLES["exchanges"] ?? {}, LEGACY_SSE]) {
      const server = await startServer(options);
      const clients = await Promise.all(Array.from({ length: 10 }, () => connectTo(server)));
      const results = await Promise.all(clients.map((client, n) => client.callTool("run", { key: `k${n}` })));
      expect(results.map(textOf)).toEqual(clients.map((_, n) => `ran k${n}`));
      if (options !== STYLES["exchanges"]) expect(server.sessions.opened).toBe(10);
    }
  });
});
