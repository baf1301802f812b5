// Middleware on a handler: its order, what it may do, and that its mistakes affect neither other middleware nor other
// requests.

import { expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Middleware, Notification } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { compose, type ChainEntry } from "./compose.ts";

const entry = (name: string, middleware: Middleware): ChainEntry => ({ name, middleware });
const echo: Handler = async (request) => textResult(String(request.params["name"]));
const through = entry("through", (request, context, next) => next(request, context));

/** The error of a call through the middleware. */
async function failureOf(entries: readonly ChainEntry[], upstream: Handler = echo): Promise<unknown> {
  const outcome = await compose(entries, upstream)(callRequest("a"), fakeContext().context).then(
    () => "no failure",
    (error: unknown) => error,
  );
  return outcome;
}

it("returns the handler itself without middleware", () => {
  expect(compose([], echo)).toBe(echo);
});

it("runs the middleware in order, and returns in reverse order", async () => {
  const seen: string[] = [];
  const noting = (name: string): ChainEntry =>
    entry(name, async (request, context, next) => {
      seen.push(`${name} in`);
      const result = await next(
        { ...request, params: { ...request.params, name: `${String(request.params["name"])}${name}` } },
        context,
      );
      seen.push(`${name} out`);
      return { ...result, [name]: true };
    });
  const result = await compose([noting("a"), noting("b")], echo)(
    Object.freeze(callRequest("x")),
    fakeContext().context,
  );
  expect(seen).toEqual(["a in", "b in", "b out", "a out"]);
  expect(result).toEqual({ ...textResult("xab"), a: true, b: true });
});

it("checks the params that middleware has changed", async () => {
  const upstream = vi.fn(echo);
  const nameless = entry("nameless", ({ method }, context, next) => next({ method, params: {} }, context));
  expect(await failureOf([nameless, through], upstream)).toMatchObject({
    kind: "invalid_params",
    message: "Invalid params for tools/call: `name` must be a string",
  });
  expect(upstream).not.toHaveBeenCalled();
});

it("lets middleware answer by itself, and call next twice", async () => {
  const { context } = fakeContext();
  const upstream = vi.fn(echo);
  expect(await compose([entry("mute", async () => textResult("mine"))], upstream)(callRequest("a"), context)).toEqual(
    textResult("mine"),
  );
  expect(upstream).not.toHaveBeenCalled();
  const twice = entry("twice", async (request, own, next) => {
    await next(request, own);
    return next(request, own);
  });
  expect(await compose([twice, through], upstream)(callRequest("a"), context)).toEqual(textResult("a"));
  expect(upstream).toHaveBeenCalledTimes(2);
});

it("handles the rejection of a forgotten promise", async () => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  try {
    const forgetful = entry("forgetful", async (request, context, next) => {
      void next(request, context);
      void next(undefined as never, context);
      return textResult("mine");
    });
    const failing: Handler = async () => Promise.reject(new Error("not awaited"));
    expect(await compose([forgetful, through], failing)(callRequest("a"), fakeContext().context)).toEqual(
      textResult("mine"),
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).not.toHaveBeenCalled();
  } finally {
    process.off("unhandledRejection", unhandled);
  }
});

it("names the middleware that threw, once, also if it threw asynchronously", async () => {
  const early = entry("early", () => {
    throw new TypeError("x is undefined");
  });
  const late = entry("late", async () => Promise.reject(new Error("later")));
  for (const [broken, words] of [
    [early, "The middleware early failed: x is undefined"],
    [late, "The middleware late failed: later"],
  ] as const) {
    const error = (await failureOf([through, through, broken, through])) as McpError;
    expect(error).toBeInstanceOf(McpError);
    expect(error.message).toBe(words);
    expect(error.data).toEqual({ kind: "internal_error", middlewareName: broken.name });
  }
});

it("survives a thrown Proxy whose traps throw", async () => {
  const hostile = new Proxy(new Error("no"), {
    getPrototypeOf: () => {
      throw new Error("trapped");
    },
    get: () => {
      throw new Error("trapped");
    },
  });
  const error = await failureOf([entry("hostile", () => Promise.reject(hostile))]);
  expect(error).toMatchObject({ data: { middlewareName: "hostile" } });
});

it("names the middleware whose content is not an array of blocks, but passes on what the upstream sent", async () => {
  for (const content of ["oops", [null], { type: "text", text: "x" }]) {
    const error = await failureOf([through, entry("odd", async () => ({ content })), through]);
    expect(error).toMatchObject({
      message: expect.stringMatching(/^The middleware odd returned `content` that is not an array of content blocks/),
      data: { middlewareName: "odd" },
    });
    const copying = entry("copying", async (request, context, next) => ({ ...(await next(request, context)) }));
    const handler = compose([through, copying], async () => ({ content }));
    expect(await handler(callRequest("a"), fakeContext().context)).toEqual({ content });
  }
});

it("passes on the content of any call of next, though others failed or never end", async () => {
  const content = "of the third";
  const answers = [new Promise<never>(() => undefined), Promise.reject(new Error("no")), Promise.resolve({ content })];
  const trying = entry("trying", async (request, context, next) => {
    void next(request, context);
    await expect(next(request, context)).rejects.toThrow("no");
    return { ...(await next(request, context)) };
  });
  const handler = compose([trying], () => answers.shift() ?? Promise.reject(new Error("too many")));
  expect(await handler(callRequest("a"), fakeContext().context)).toEqual({ content });
});

it("leaves errors from next and chosen McpErrors as they are", async () => {
  const accident = new Error("of the upstream");
  expect(await failureOf([through, through], () => Promise.reject(accident))).toBe(accident);
  const lost = new ConnectionError("closed", "The upstream is gone");
  expect(await failureOf([through], () => Promise.reject(lost))).toBe(lost);
  const chosen = McpError.of("access_denied", "Not today");
  expect(await failureOf([through, entry("guard", () => Promise.reject(chosen))])).toBe(chosen);
});

it("names the middleware in a ConnectionError and keeps its fields", async () => {
  const made = new ConnectionError("refused", "no room", { mayHaveRun: false, status: 503 });
  const error = (await failureOf([through, entry("full", () => Promise.reject(made))])) as ConnectionError;
  expect(error.message).toBe("In the middleware full: no room");
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false, status: 503, cause: made });
});

it("passes on the reason of the abort as it is", async () => {
  const caller = fakeContext();
  const waiting = entry(
    "waiting",
    (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  const outcome = compose([waiting], echo)(callRequest("a"), caller.context);
  caller.abort("enough");
  await expect(outcome).rejects.toBe("enough");
});

it("names middleware that returns no result or calls next without a request", async () => {
  const silent = await failureOf([entry("silent", (async () => undefined) as never)]);
  expect(silent).toMatchObject({
    message: expect.stringContaining("The middleware silent answered tools/call") as string,
  });
  const maker = await failureOf([entry("log", (() => through.middleware) as never)]);
  expect(maker).toMatchObject({ message: expect.stringContaining("use what that returns") as string });
  for (const wrong of [undefined, {}, { method: "x" }, { method: 1, params: {} }]) {
    const empty = await failureOf([
      entry("empty", (_request, context, next) => next(wrong as never, context)),
      through,
    ]);
    expect(empty).toMatchObject({
      message: expect.stringContaining("The middleware empty must call next(request, context)") as string,
    });
  }
  const bare = await failureOf([entry("bare", (request, _context, next) => next(request, {} as never)), through]);
  expect(bare).toMatchObject({
    message: expect.stringContaining("The middleware bare must call next(request, context)") as string,
  });
});

it("fails the request, not the upstream, if notify throws", async () => {
  const failing = (fail: () => unknown): ChainEntry =>
    entry("hearing", (request, context, next) => next(request, { ...context, notify: fail }));
  const fails = [
    () => {
      throw new Error("broken");
    },
    () => Promise.reject(new Error("broken")),
  ];
  const listen = { method: "subscriptions/listen", params: { notifications: {} } };
  for (const fail of fails) {
    for (const request of [callRequest("a"), listen]) {
      const caller = fakeContext();
      let inner: AbortSignal | undefined;
      const upstream: Handler = (_request, context) => {
        inner = context.signal;
        expect(() => context.notify({ method: "notifications/progress" })).not.toThrow();
        return new Promise(() => undefined);
      };
      const outcome = compose([through, failing(fail)], upstream)(request, caller.context);
      const error = await outcome.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ message: "The middleware hearing failed at notifications/progress: broken" });
      // A subscription is aborted; a call ends by itself.
      expect(inner?.aborted).toBe(request === listen);
      expect(caller.notifications).toEqual([]);
    }
  }
});

it("fails the request if notify throws in a later call of next", async () => {
  const late = entry("late", async (request, context, next) => {
    await next(request, context);
    const broken = (): never => {
      throw new Error("broken");
    };
    return next(request, { ...context, notify: broken });
  });
  const upstream: Handler = async (_request, context) => {
    context.notify({ method: "notifications/progress" });
    return textResult("done");
  };
  expect(await failureOf([through, late], upstream)).toMatchObject({
    message: "The middleware late failed at notifications/progress: broken",
  });
});

it("returns the very promise of next if the middleware does", () => {
  const outcome = Promise.resolve(textResult("a"));
  const inner = compose([through], () => outcome);
  let returned: Promise<unknown> | undefined;
  const outer = entry("outer", (request, context, next) => (returned = next(request, context)));
  const outermost = compose([outer], inner)(callRequest("a"), fakeContext().context);
  expect(outermost).toBe(returned);
});

it("passes a changed context on, with a signal for each call of next", async () => {
  const caller = fakeContext();
  const stop = new AbortController();
  const received: Notification[] = [];
  const signals: AbortSignal[] = [];
  const listening = entry("listening", async (request, context, next) => {
    const own = {
      ...context,
      signal: stop.signal,
      notify: (notification: Notification) => void received.push(notification),
    };
    const first = next(request, own).catch(() => textResult("first"));
    stop.abort();
    await first;
    return next(request, { ...context, notify: own.notify });
  });
  const upstream: Handler = async (_request, context) => {
    signals.push(context.signal);
    context.notify({ method: "notifications/message" });
    return textResult("done");
  };
  expect(await compose([listening], upstream)(callRequest("a"), caller.context)).toEqual(textResult("done"));
  expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  expect(received).toHaveLength(2);
});

it("passes on the failure of a connection in other words", async () => {
  const failure = new ConnectionError("closed", "it exited: secret");
  const hiding = entry("hiding", (request, context, next) =>
    next(request, context).catch((error: ConnectionError) => {
      throw error.with({ problem: "it exited" });
    }),
  );
  expect(await failureOf([hiding], () => Promise.reject(failure))).toMatchObject({
    kind: "closed",
    problem: "it exited",
  });
  const replacing = entry("replacing", () => Promise.reject(failure));
  expect(await failureOf([replacing])).toMatchObject({ problem: "In the middleware replacing: it exited: secret" });
});

it("reports a mistake in a subscription", async () => {
  const observer = entry("observer", (request, context, next) =>
    next(request, { ...context, notify: () => expect.fail("broken") }),
  );
  const upstream: Handler = (request, { notify }) => {
    notify({ method: "notifications/tools/list_changed" });
    return echo(request, fakeContext().context);
  };
  const listening = compose([observer], upstream)(
    { method: "subscriptions/listen", params: { notifications: {} } },
    fakeContext().context,
  );
  await expect(listening).rejects.toThrow("The middleware observer failed at notifications/tools/list_changed");
});
