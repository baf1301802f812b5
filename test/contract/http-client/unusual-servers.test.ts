// What ends may do that is neither quite right nor quite wrong, and what becomes of a client whose end changes under it:
// ids that no header can hold as they are, times that no timer can, streams that say things again, another style after
// a restart.

import { describe, expect, it } from "vitest";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { silence } from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import { expectHelpful, joined, met, OLD, opened, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

/** Ends the connection of a stream after so many messages. */
const breaksAfter =
  (messages: number): Fault =>
  (visit, serve) => {
    const { chunk } = visit;
    let said = 0;
    visit.chunk = (text) => {
      if (said >= messages) return;
      chunk.call(visit, text);
      if (text.includes('"jsonrpc"')) said += 1;
      if (said >= messages) visit.hangUp();
    };
    return serve();
  };

describe("events", () => {
  it("may have ids in any script, which come back as they are", async () => {
    for (const mark of ["-ü", "-漢", "-🙂", "- with spaces", "-\u007f"]) {
      const { end, client } = await met({ style: "session", session: { mark, retryMs: 10 } });
      end.lay("tools/call", breaksAfter(1));
      const { value, error } = await outcome(
        client.callTool("run", { key: "a", steps: 3 }, { onProgress: () => undefined, timeoutMs: 3_000 }),
      );
      // A control character cannot stand in a header in any way: that call fails, and says that it may have run.
      if (error === undefined) expect(textOf(value ?? {}), mark).toBe("ran a");
      else {
        expect(mark).toBe("-\u007f");
        expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      }
      expect(end.desk.runsOf("a")).toBe(1);
    }
  });

  it("that come again when a stream is taken up are not heard again", async () => {
    const { end, client } = await met({ style: "session", session: { replaysAll: true, retryMs: 10 } });
    end.lay("tools/call", breaksAfter(3));
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
    expect(textOf(await client.callTool("run", { key: "a", steps: 5 }, { onProgress }))).toBe("ran a");
    expect(steps).toEqual([1, 2, 3, 4, 5]);
  });

  it.each([2 ** 31, 2 ** 40, 1e21])("that ask to wait for %d ms are waited for, not hurried after", async (retryMs) => {
    const { end, client } = await met({ style: "session", session: { retryMs } });
    await end.untilHeard();
    end.visits.find(({ what }) => what === "GET")?.hangUp();
    for (let n = 0; n < 20; n += 1) await client.callTool("run", { key: `k${n}` });
    expect(end.count("GET")).toBe(1);
  });
});

describe("a session", () => {
  it("that was forgotten is begun anew for a listen too", async () => {
    const { end, client } = await met(SESSION);
    end.sessions.forget();
    let wake: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (wake = resolve));
    await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
    await end.until(() => [...end.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    await end.untilHeard();
    end.touch();
    await heard;
  });

  it("needs no answer to its GET to be used", async () => {
    const end = await opened(SESSION);
    end.lay("GET", silence, 10);
    const client = await joined(end);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it("with an empty name has none", async () => {
    const end = await opened({ style: "session", session: { sessionIds: false } });
    end.lay("initialize", (visit, serve) => {
      const { answer } = visit;
      visit.answer = (code, body, headers) => answer.call(visit, code, body, { ...headers, "mcp-session-id": "" });
      return serve();
    });
    const client = await joined(end);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    await client.close();
    expect(end.asked).not.toContain("DELETE");
    expect(end.visits.filter(({ headers }) => headers["mcp-session-id"] !== undefined)).toEqual([]);
  });

  it("may be begun anew in another revision", async () => {
    const older = REVISIONS.filter(({ style }) => style === "session").at(-2)?.name;
    const { end, client } = await met(SESSION);
    expect(client.revision).toBe(NEWEST_SESSION.name);
    end.sessions.forget();
    end.lay("initialize", (visit, serve) => {
      const { answer } = visit;
      visit.answer = (code, body, headers) => {
        const text = JSON.stringify(body).replaceAll(NEWEST_SESSION.name, older ?? "");
        answer.call(visit, code, JSON.parse(text) as object, headers);
      };
      return serve();
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(client.revision).toBe(older);
    expect(end.visits.at(-1)?.headers["mcp-protocol-version"]).toBe(older);
  });
});

describe("an end that comes back in another style", () => {
  it.each([
    ["sessions", "stateless"],
    ["sessions", "old"],
    ["exchanges", "session"],
    ["exchanges", "old"],
  ] as const)("after %s as %s fails the calls of who knew it, and says so; who asks anew finds it", async (was, is) => {
    const { end, client } = await met(STYLES[was]);
    await end.restart(is);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 5_000 }));
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(end.desk.runsOf("a")).toBe(0);
    await client.close();
    expect(textOf(await (await joined(end)).callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("after the old pair of addresses too", async () => {
    const { end, client } = await met(OLD);
    await end.restart("stateless");
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 5_000 }));
    expectHelpful(error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(end.desk.runsOf("a")).toBe(0);
  });
});

describe("a listen in exchanges", () => {
  it("is over when the end says so, and is not opened again", async () => {
    const { end, client } = await met({ style: "stateless" });
    end.lay("subscriptions/listen", async (visit, serve) => {
      await serve();
      const result = { resultType: "complete" };
      visit.chunk(`data: ${JSON.stringify({ jsonrpc: "2.0", id: visit.json?.["id"], result })}\n\n`);
      visit.end();
    });
    const subscription = await client.listen({ toolsListChanged: true });
    await subscription.ended;
    await client.callTool("run", { key: "a" });
    expect(end.count("subscriptions/listen")).toBe(1);
  });

  it("that is closed is closed at the end too", async () => {
    const { end, client } = await met({ style: "stateless" });
    const subscription = await client.listen({ toolsListChanged: true });
    const [visit] = end.visits.filter(({ what }) => what === "subscriptions/listen");
    await subscription.close();
    await end.until(() => visit?.gone.aborted === true);
  });
});

describe("a client", () => {
  it("may be one of many that come at once", async () => {
    for (const options of [SESSION, STYLES["exchanges"] ?? {}, OLD]) {
      const end = await opened(options);
      const clients = await Promise.all(Array.from({ length: 10 }, () => joined(end)));
      const results = await Promise.all(clients.map((client, n) => client.callTool("run", { key: `k${n}` })));
      expect(results.map(textOf)).toEqual(clients.map((_, n) => `ran k${n}`));
      if (options !== STYLES["exchanges"]) expect(end.sessions.opened).toBe(10);
    }
  });
});
