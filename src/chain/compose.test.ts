// Links on a handler: their order, what they may do, and what becomes of one that does what it should not. The others,
// and the requests of others, never notice.

import { expect, it, vi } from "vitest";
import { call, loneCaller, text } from "../../test/support/lone-caller.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Link, Middleware, Notification } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { compose } from "./compose.ts";

const link = (name: string, run: Middleware): Link => ({ name, run });
const echo: Handler = async (request) => text(String(request.params["name"]));
const through: Link = link("through", (request, context, next) => next(request, context));

/** What a request gets that is answered with an error. */
async function failureOf(links: readonly Link[], end: Handler = echo): Promise<unknown> {
  const outcome = await compose(links, end)(call("a"), loneCaller().context).then(
    () => "no failure",
    (error: unknown) => error,
  );
  return outcome;
}

it("is the handler itself where there are no links", () => {
  expect(compose([], echo)).toBe(echo);
});

it("passes through the links in order, and back in the other", async () => {
  const seen: string[] = [];
  const noting = (name: string): Link =>
    link(name, async (request, context, next) => {
      seen.push(`${name} in`);
      const result = await next(
        { ...request, params: { ...request.params, name: `${String(request.params["name"])}${name}` } },
        context,
      );
      seen.push(`${name} out`);
      return { ...result, [name]: true };
    });
  const result = await compose([noting("a"), noting("b")], echo)(Object.freeze(call("x")), loneCaller().context);
  expect(seen).toEqual(["a in", "b in", "b out", "a out"]);
  expect(result).toEqual({ ...text("xab"), a: true, b: true });
});

it("lets a link answer by itself, call next again, and call it late", async () => {
  const { context } = loneCaller();
  const end = vi.fn(echo);
  expect(await compose([link("mute", async () => text("mine"))], end)(call("a"), context)).toEqual(text("mine"));
  expect(end).not.toHaveBeenCalled();
  const twice = link("twice", async (request, own, next) => {
    await next(request, own);
    return next(request, own);
  });
  expect(await compose([twice, through], end)(call("a"), context)).toEqual(text("a"));
  expect(end).toHaveBeenCalledTimes(2);
});

it("hears of a forgotten failure, so that it ends no process", async () => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  try {
    const forgetful = link("forgetful", async (request, context, next) => {
      void next(request, context);
      void next(undefined as never, context);
      return text("mine");
    });
    const failing: Handler = async () => Promise.reject(new Error("nobody listens"));
    expect(await compose([forgetful, through], failing)(call("a"), loneCaller().context)).toEqual(text("mine"));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).not.toHaveBeenCalled();
  } finally {
    process.off("unhandledRejection", unhandled);
  }
});

it("names a link that failed by accident, at once or later, once", async () => {
  const early = link("early", () => {
    throw new TypeError("x is undefined");
  });
  const late = link("late", async () => Promise.reject(new Error("later")));
  for (const [broken, words] of [
    [early, "The link early failed: x is undefined"],
    [late, "The link late failed: later"],
  ] as const) {
    const error = (await failureOf([through, through, broken, through])) as McpError;
    expect(error).toBeInstanceOf(McpError);
    expect(error.message).toBe(words);
    expect(error.data).toEqual({ kind: "internal_error", middlewareName: broken.name });
  }
});

it("survives what bites when it is looked at", async () => {
  const hostile = new Proxy(new Error("no"), {
    getPrototypeOf: () => {
      throw new Error("bitten");
    },
    get: () => {
      throw new Error("bitten");
    },
  });
  const error = await failureOf([link("biter", () => Promise.reject(hostile))]);
  expect(error).toMatchObject({ data: { middlewareName: "biter" } });
});

it("leaves alone what a link passes on, and what it chose to answer", async () => {
  const accident = new Error("of the end");
  expect(await failureOf([through, through], () => Promise.reject(accident))).toBe(accident);
  const lost = new ConnectionError("closed", "The end is gone");
  expect(await failureOf([through], () => Promise.reject(lost))).toBe(lost);
  const chosen = McpError.of("access_denied", "Not today");
  expect(await failureOf([through, link("guard", () => Promise.reject(chosen))])).toBe(chosen);
});

it("says at which link a local error was made, and keeps what it says", async () => {
  const made = new ConnectionError("refused", "no room", { mayHaveRun: false, status: 503 });
  const error = (await failureOf([through, link("full", () => Promise.reject(made))])) as ConnectionError;
  expect(error.message).toBe("At the link full: no room");
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false, status: 503, cause: made });
});

it("takes the end of the call for no fault of the link", async () => {
  const caller = loneCaller();
  const waiting = link(
    "waiting",
    (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  const outcome = compose([waiting], echo)(call("a"), caller.context);
  caller.leave("enough");
  await expect(outcome).rejects.toBe("enough");
});

it("names a link that answers with no result, or passes on no request", async () => {
  const silent = await failureOf([link("silent", (async () => undefined) as never)]);
  expect(silent).toMatchObject({ message: expect.stringContaining("The link silent answered tools/call") as string });
  const maker = await failureOf([link("log", (() => through) as never)]);
  expect(maker).toMatchObject({ message: expect.stringContaining("call it") as string });
  for (const wrong of [undefined, {}, { method: "x" }, { method: 1, params: {} }]) {
    const empty = await failureOf([link("empty", (_request, context, next) => next(wrong as never, context)), through]);
    expect(empty).toMatchObject({ message: expect.stringContaining("The link empty called next without") as string });
  }
  const bare = await failureOf([link("bare", (request, _context, next) => next(request, {} as never)), through]);
  expect(bare).toMatchObject({ message: expect.stringContaining("The link bare called next without") as string });
});

it("lets no link trip over an end that answers with no result", async () => {
  const reading = link("reading", async (request, context, next) => ({
    seen: Object.keys(await next(request, context)),
  }));
  expect(await failureOf([reading], (async () => undefined) as never)).toMatchObject({
    kind: "protocol",
    message: "The end answered tools/call with something that is no result",
  });
});

it("ends the request of a link that fails over a notification, and spares the end", async () => {
  const failing = (fail: () => unknown): Link =>
    link("hearing", (request, context, next) => next(request, { ...context, notify: fail }));
  const fails = [
    () => {
      throw new Error("deaf");
    },
    () => Promise.reject(new Error("deaf")),
  ];
  const listen = { method: "subscriptions/listen", params: { notifications: {} } };
  for (const fail of fails) {
    for (const request of [call("a"), listen]) {
      const caller = loneCaller();
      let inner: AbortSignal | undefined;
      const end: Handler = (_request, context) => {
        inner = context.signal;
        expect(() => context.notify({ method: "notifications/progress" })).not.toThrow();
        return new Promise(() => undefined);
      };
      const outcome = compose([through, failing(fail)], end)(request, caller.context);
      const error = await outcome.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ message: "The link hearing failed at notifications/progress: deaf" });
      // What would stand for ever is ended; a call comes to its end by itself.
      expect(inner?.aborted).toBe(request === listen);
      expect(caller.said).toEqual([]);
    }
  }
});

it("passes a changed context on, each call of next with its own signal", async () => {
  const caller = loneCaller();
  const stop = new AbortController();
  const heard: Notification[] = [];
  const signals: AbortSignal[] = [];
  const listening = link("listening", async (request, context, next) => {
    const own = { ...context, signal: stop.signal, notify: (said: Notification) => void heard.push(said) };
    const first = next(request, own).catch(() => text("first"));
    stop.abort();
    await first;
    return next(request, { ...context, notify: own.notify });
  });
  const end: Handler = async (_request, context) => {
    signals.push(context.signal);
    context.notify({ method: "notifications/message" });
    return text("done");
  };
  expect(await compose([listening], end)(call("a"), caller.context)).toEqual(text("done"));
  expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  expect(heard).toHaveLength(2);
});
