// One fault at a time, in each style: the call comes to one outcome that names what failed, its tool has not run twice,
// and when the fault is over the same client goes on as if nothing had been. What the end did before the fault is known
// here, because the end counts.

import { describe, expect, it } from "vitest";
import {
  cut,
  drip,
  endless,
  events,
  hangUp,
  instead,
  lost,
  misaddressed,
  misaddressedEvent,
  noisy,
  redirect,
  reset,
  silence,
  status,
  twice,
  typed,
} from "../support/faults.ts";
import type { EndOptions, Fault } from "../support/faulty-end.ts";
import { expectHelpful, joined, met, opened, outcome, STYLES, textOf } from "./stage.ts";

interface Row {
  readonly fault: Fault;
  /** How often the tool has run when the fault is over. */
  readonly runs: number;
  /** What the error is, where the call must fail. */
  readonly error?: object;
}

const says = (pattern: RegExp): unknown => expect.stringMatching(pattern);

const FAILS: Readonly<Record<string, Row>> = {
  "500 and a page": { fault: status(500), runs: 0, error: { kind: "http", status: 500, message: says(/HTTP 500/) } },
  "502 and a page": { fault: status(502), runs: 0, error: { kind: "http", status: 502, message: says(/try again/) } },
  "503 and a page": { fault: status(503), runs: 0, error: { kind: "http", status: 503, message: says(/try again/) } },
  "502 after it ran": { fault: lost(502), runs: 1, error: { kind: "http", status: 502, mayHaveRun: true } },
  "429": { fault: status(429), runs: 0, error: { kind: "http", status: 429, message: says(/fewer/) } },
  "413": { fault: status(413), runs: 0, error: { kind: "http", status: 413, mayHaveRun: false } },
  "403 and a page": { fault: status(403), runs: 0, error: { kind: "unauthorized", mayHaveRun: false } },
  "the end hanging up": { fault: hangUp, runs: 0, error: { kind: "closed", mayHaveRun: true } },
  "the end resetting the connection": { fault: reset, runs: 0, error: { kind: "closed", mayHaveRun: true } },
  "no byte of an answer": { fault: cut(0), runs: 1, error: { kind: "closed", mayHaveRun: true } },
  "half a head": { fault: cut(20), runs: 1, error: { kind: "closed", mayHaveRun: true } },
  "a page in place of an answer": {
    fault: instead("<html>Sign in</html>", { "content-type": "text/html" }),
    runs: 0,
    error: { kind: "http", message: says(/text\/html.*endpoint/) },
  },
  "an answer typed text/plain": { fault: typed("text/plain"), runs: 1, error: { kind: "http" } },
  "an answer without a type": { fault: instead("{}", {}), runs: 0, error: { kind: "http" } },
  "JSON that is cut off but whole by its length": {
    fault: instead('{"jsonrpc":"2.0","id'),
    runs: 0,
    error: { kind: "protocol" },
  },
  "JSON that is no message": { fault: instead('{"hello":"there"}'), runs: 0, error: { kind: "protocol" } },
  "nothing where JSON should be": { fault: instead(""), runs: 0, error: { kind: "protocol" } },
  "an answer to somebody else": { fault: misaddressed, runs: 0, error: { kind: "protocol" } },
  "an event to somebody else": { fault: misaddressedEvent, runs: 0, error: { kind: "closed" } },
  "a stream that ends without a word": { fault: events(() => []), runs: 0, error: { kind: "closed" } },
  "a stream of comments alone": { fault: events(() => [": hello\n\n", ":\n\n"]), runs: 0, error: { kind: "closed" } },
  "an event stream of a page": { fault: events(() => ["<html>\n\n</html>\n\n"]), runs: 0, error: { kind: "closed" } },
};

const WORKS: Readonly<Record<string, Row>> = {
  "an answer that drips": { fault: drip, runs: 1 },
  "a body that never ends": { fault: endless, runs: 1 },
  "noise on the stream": { fault: noisy, runs: 1 },
};

describe.each(Object.entries(STYLES))("a call in %s", (_, options) => {
  it.each(Object.entries(FAILS))("fails by %s, once, and the next one works", async (_name, { fault, runs, error }) => {
    const { end, client } = await met(options);
    await client.listTools();
    end.lay("tools/call", fault);
    const { error: failure } = await outcome(client.callTool("run", { key: "a" }));
    expect(failure).toMatchObject(error ?? {});
    expectHelpful(failure);
    expect(end.desk.runsOf("a")).toBe(runs);
    expect(end.count("tools/call")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.desk.runsOf("b")).toBe(1);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("run");
  });

  it.each(Object.entries(WORKS))("works in spite of %s", async (_name, { fault, runs }) => {
    const { end, client } = await met(options);
    end.lay("tools/call", fault);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(runs);
    expect(end.count("tools/call")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("takes the first of two answers", async () => {
    const { end, client } = await met(options);
    end.lay("tools/call", twice);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("the first answer");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is given up where the end stays silent, and the connection is let go of", async () => {
    const { end, client } = await met(options);
    end.lay("tools/call", silence);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeout: 100 }));
    expect(error).toMatchObject({ kind: "timeout", message: expect.stringContaining("100 ms") });
    const [silent] = end.visits.filter(({ what }) => what === "tools/call");
    await end.until(() => silent?.gone.aborted === true);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is given up where the end says half of it and stays silent", async () => {
    const { end, client } = await met(options);
    end.lay("tools/call", (visit, serve) => {
      const { write } = visit;
      let left = 150;
      visit.write = (text) => {
        write.call(visit, text.slice(0, left));
        left = Math.max(0, left - text.length);
      };
      return serve();
    });
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeout: 100 }));
    expect(error).toMatchObject({ kind: "timeout" });
    expect(end.desk.runsOf("a")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is cancelled by its caller, and the end hears of it", async () => {
    const { end, client } = await met(options);
    const stop = new AbortController();
    const call = outcome(client.callTool("hold", { key: "a" }, { signal: stop.signal }));
    await end.until(() => end.desk.isHolding("a"));
    stop.abort(new Error("enough"));
    expect((await call).error).toMatchObject({ kind: "cancelled" });
    const [held] = end.visits.filter(({ what }) => what === "tools/call");
    await end.until(() => held?.gone.aborted === true);
    if (options.style === "session") {
      expect(end.desk.heard).toContainEqual(expect.objectContaining({ method: "notifications/cancelled" }));
    } else expect(end.asked).not.toContain("notifications/cancelled");
    end.desk.release("a");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("does not follow a redirect to another origin", async () => {
    const { end, client } = await met(options);
    const other = await opened(options);
    for (const code of [301, 302, 303, 307, 308]) {
      end.lay(
        "tools/call",
        redirect(code, () => other.url),
      );
      const { error } = await outcome(client.callTool("run", { key: `to ${code}` }));
      expectHelpful(error);
      expect(error?.message).toMatch(/redirect/i);
      expect(error?.message).toContain(new URL(other.url).host);
    }
    expect(other.visits).toEqual([]);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is not sent round in circles", async () => {
    const { end, client } = await met(options);
    end.lay(
      "tools/call",
      redirect(307, ({ path }) => `${path}?more`),
      1_000,
    );
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error?.message).toMatch(/redirect/i);
    expect(end.count("tools/call")).toBeLessThan(50);
    end.clear();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it.each([307, 308])("follows %i on the same origin, with all that it brought", async (code) => {
    const { end, client } = await met(options);
    end.lay(
      "tools/call",
      redirect(code, () => "/mcp?moved"),
    );
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    const [first, second] = end.visits.filter(({ what }) => what === "tools/call");
    expect(second?.path).toBe("/mcp?moved");
    expect(second?.text).toBe(first?.text);
    expect(end.desk.runsOf("a")).toBe(1);
  });

  it("works when a connection that was kept was closed meanwhile", async () => {
    const { end, client } = await met(options);
    await client.callTool("run", { key: "a" });
    await end.server.hangUp();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.desk.runsOf("b")).toBe(1);
  });

  it("is not sent twice where a connection is closed just as it is used again", async () => {
    const { end, client } = await met(options);
    await client.listTools();
    for (let n = 0; n < 10; n += 1) {
      await client.callTool("peek", { key: "to have a connection" });
      let closed = false;
      end.server.onReuse = () => {
        if (closed) return false;
        closed = true;
        return true;
      };
      const { value, error } = await outcome(client.callTool("run", { key: `r${n}` }));
      end.server.onReuse = () => false;
      if (error !== undefined) expect(error).toMatchObject({ kind: "closed" });
      else expect(textOf(value ?? {})).toBe(`ran r${n}`);
      expect(end.desk.runsOf(`r${n}`)).toBeLessThanOrEqual(1);
      expect(textOf(await client.callTool("run", { key: `after ${n}` }))).toBe(`ran after ${n}`);
    }
  });

  it("takes ten megabytes", async () => {
    const { client } = await met(options);
    const bytes = 10 * 1024 * 1024;
    expect(textOf(await client.callTool("big", { key: "a", bytes })).length).toBe(bytes);
  });
});

/** Tries are apart by some time, so the styles are tried side by side. */
async function inEveryStyle(work: (options: EndOptions, style: string) => Promise<void>): Promise<void> {
  await Promise.all(Object.entries(STYLES).map(([style, options]) => work(options, style)));
}

describe("in every style", () => {
  it("a call that cannot be sent because nobody is there has not run, and works when the end is back", () =>
    inEveryStyle(async (options, style) => {
      const { end, client } = await met(options);
      await end.server.stop();
      const { error } = await outcome(client.callTool("run", { key: "a" }));
      expect(error, style).toMatchObject({ kind: "refused", mayHaveRun: false });
      expectHelpful(error);
      await end.server.start();
      expect(textOf(await client.callTool("run", { key: "a" })), style).toBe("ran a");
      expect(end.desk.runsOf("a"), style).toBe(1);
    }));

  it("a call goes on where the end was away for a moment before it was sent", () =>
    inEveryStyle(async (options, style) => {
      const { end, client } = await met(options);
      await end.server.stop();
      const call = outcome(client.callTool("run", { key: "a" }));
      await end.server.start();
      expect(textOf((await call).value ?? {}), style).toBe("ran a");
      expect(end.desk.runsOf("a"), style).toBe(1);
    }));

  const passing: Readonly<Record<string, Fault>> = {
    "hanging up": hangUp,
    "a reset": reset,
    "a cut after it ran": cut(0),
    "502": status(502),
    "503 after it ran": lost(503),
  };

  it.each(Object.entries(passing))("a tool that says that it may be is sent again after %s", (_name, fault) =>
    inEveryStyle(async (options, style) => {
      for (const tool of ["peek", "again"]) {
        const { end, client } = await met(options);
        await client.listTools();
        end.lay("tools/call", fault);
        expect(textOf(await client.callTool(tool, { key: tool })), style).toBe(`ran ${tool}`);
        expect(end.desk.runsOf(tool), style).toBeLessThanOrEqual(2);
      }
    }),
  );

  it("a tool is not sent again that has not said so to us", () =>
    inEveryStyle(async (options, style) => {
      const { end, client } = await met(options);
      end.lay("tools/call", cut(0));
      const { error } = await outcome(client.callTool("peek", { key: "a" }));
      expect(error, style).toMatchObject({ kind: "closed", mayHaveRun: true });
      expect(end.desk.runsOf("a"), style).toBe(1);
    }));

  it("what was tried again and failed at last may have run, if any of the tries may", () =>
    inEveryStyle(async (options, style) => {
      const { end, client } = await met(options);
      await client.listTools();
      end.lay("tools/call", async (visit, serve) => {
        visit.cutAfter(0);
        await serve();
        await end.server.stop();
      });
      const { error } = await outcome(client.callTool("peek", { key: "a" }));
      expect(end.desk.runsOf("a"), style).toBe(1);
      expect(error, style).toMatchObject({ mayHaveRun: true });
      await end.server.start();
    }));

  it("lists and reads are sent again", () =>
    inEveryStyle(async (options, style) => {
      const { end, client } = await met(options);
      end.lay("tools/list", hangUp);
      end.lay("resources/read", status(503));
      expect((await client.listTools()).tools.length, style).toBeGreaterThan(0);
      expect((await client.readResource("note://one")).contents, style).toHaveLength(1);
    }));
});

describe.each(["exchanges", "sessions"])("a call in %s by a fetch of the program's own", (style) => {
  const options = STYLES[style] ?? {};

  it.each(Object.entries(FAILS))("fails by %s, once, and the next one works", async (_name, { fault, runs, error }) => {
    const { end, client } = await met(options, { fetch });
    await client.listTools();
    end.lay("tools/call", fault);
    const { error: failure } = await outcome(client.callTool("run", { key: "a" }));
    expect(failure).toMatchObject(error ?? {});
    expectHelpful(failure);
    expect(end.desk.runsOf("a")).toBe(runs);
    expect(end.count("tools/call")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.desk.runsOf("b")).toBe(1);
  });

  it.each(Object.entries(WORKS))("works in spite of %s", async (_name, { fault, runs }) => {
    const { end, client } = await met(options, { fetch });
    end.lay("tools/call", fault);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(runs);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});

describe("many calls at once", () => {
  it.each(Object.entries(STYLES))(
    "in %s each come to their own outcome when all connections break",
    async (_, options) => {
      const { end, client } = await met(options);
      const keys = Array.from({ length: 20 }, (_none, n) => `k${n}`);
      const calls = keys.map((key) => outcome(client.callTool("hold", { key }, { timeout: 5_000 })));
      await end.until(() => keys.every((key) => end.desk.isHolding(key)));
      await end.server.hangUp();
      for (const key of keys) end.desk.release(key);
      const outcomes = await Promise.all(calls);
      for (const [n, { value, error }] of outcomes.entries()) {
        if (error === undefined) expect(textOf(value ?? {})).toBe(`ran k${n}`);
        else expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
        expect(end.desk.runsOf(`k${n}`)).toBe(1);
      }
      // Only where events have ids can what was missed be had.
      const isResumed = options.session?.eventIds !== false && options.style === "session";
      expect(outcomes.filter(({ value }) => value !== undefined)).toHaveLength(isResumed ? 20 : 0);
      const client2 = await joined(end);
      expect(textOf(await client2.callTool("run", { key: "after" }))).toBe("ran after");
    },
  );
});
