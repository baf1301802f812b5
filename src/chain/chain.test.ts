// chain(): middleware and upstreams of every kind, and the errors for wrong ones.

import { expect, it, onTestFinished, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { connect } from "../client/connect.ts";
import type { Context, Handler, Middleware, Request } from "../core/handler.ts";
import { META } from "../protocol/model/base.ts";
import { serveTransport } from "../dialogue/connection.ts";
import { createServer } from "../server/server.ts";
import { memoryPair } from "../transport/memory.ts";
import { chain } from "./chain.ts";
import { upstream as reach } from "./upstream/upstream.ts";
import { filter } from "./middleware/index.ts";

const echo: Handler = async (request) => textResult(String(request.params["name"]));

/** Middleware that marks results with its name. */
const marking = (name: string): Middleware => {
  const middleware: Middleware = async (request, context, next) => ({ ...(await next(request, context)), by: name });
  return Object.defineProperty(middleware, "name", { value: name });
};

const deferred = (): { promise: Promise<void>; resolve(): void } => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve: () => resolve() };
};

const server = (name = "notes") =>
  createServer({ name, version: "1" }).tool(`${name}-echo`, { description: "Says it again" }, () => "hi");

it("runs its middleware, the first outermost, and what use() adds", async () => {
  const { context } = fakeContext();
  const base = chain(marking("a"));
  const gateway = base.use(marking("b")).to(echo);
  expect(gateway.middleware.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(await gateway(callRequest("x"), context)).toEqual({ ...textResult("x"), by: "a" });
  expect(base.to(echo).middleware).toHaveLength(1);
});

it("does not tell callers the path of an upstream, even if the upstream repeats it", async () => {
  const fetch = async (given: unknown): Promise<Response> => {
    const { pathname } = new URL(String(given));
    return new Response(`nothing at ${pathname}`, { status: 404 });
  };
  const gateway = chain().to(reach("http://notes.example/hooks/letmein", { fetch }));
  onTestFinished(() => gateway.close());
  const failure = await gateway(callRequest("x"), fakeContext().context).catch((error: unknown) => String(error));
  expect(failure).toContain("nothing at ...");
  expect(failure).not.toContain("letmein");
});

it("reports an upstream that answers without a result, before middleware gets it", async () => {
  const notes = server();
  const broken = (async (request: Request, context: Context) =>
    request.method === "tools/call" ? undefined : notes(request, context)) as Handler;
  const { context } = fakeContext();
  const error = (method: string): object => ({
    kind: "protocol",
    message: expect.stringContaining(`answered ${method} without a result`) as string,
  });
  for (const upstreams of [broken, { broken, other: server("other") }]) {
    const gateway = chain(marking("a")).to(upstreams);
    await expect(gateway(callRequest("notes-echo"), context)).rejects.toMatchObject(error("tools/call"));
  }
  const empty = (async () => undefined) as unknown as Handler;
  for (const method of ["tools/list", "ping"]) {
    await expect(chain().to(empty)({ method, params: {} }, context)).rejects.toMatchObject(error(method));
  }
});

it("names each middleware by its function, and numbers equal names", () => {
  const bare = (): never => {
    throw new Error("not called");
  };
  const named = chain(marking("log"), marking("log"), bare, marking("log"), ...[(): never => bare()]).to(echo);
  expect(named.middleware.map(({ name }) => name)).toEqual(["log", "log-2", "bare", "log-3", "middleware"]);
});

it("calls close as a method of the middleware", async () => {
  let count = 0;
  const counting: Middleware & { closed?: boolean } = (request, context, next) => {
    count += 1;
    return next(request, context);
  };
  counting.close = async function (this: typeof counting): Promise<void> {
    this.closed = true;
  };
  const gateway = chain(counting).to(echo);
  await gateway(callRequest("x"), fakeContext().context);
  expect(count).toBe(1);
  expect(counting.closed).toBeUndefined();
  await gateway.close();
  expect(counting.closed).toBe(true);
});

it("passes a call to a single upstream unchanged if there is no middleware", async () => {
  const upstream = vi.fn(echo);
  const { context } = fakeContext();
  const request = callRequest("x");
  for (const targets of [upstream, { notes: upstream }]) await chain().to(targets)(request, context);
  expect(upstream.mock.calls).toEqual([
    [request, context],
    [request, context],
  ]);
  expect(upstream.mock.calls[0]?.[1]).toBe(context);
});

it("adds no timeout to a call, however long the upstream is silent", async () => {
  const [started, finished] = [deferred(), deferred()];
  const slow = createServer({ name: "slow", version: "1" }).tool("slow", {}, async () => {
    started.resolve();
    await finished.promise;
    return "done";
  });
  const [ours, theirs] = memoryPair();
  await serveTransport(slow, theirs);
  const gateway = chain().to(reach(ours));
  const { context } = fakeContext();
  await gateway({ method: "server/discover", params: {} }, context);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const call = gateway(callRequest("slow"), context);
  await started.promise;
  await vi.advanceTimersByTimeAsync(3 * 60 * 60_000);
  finished.resolve();
  expect(await call).toMatchObject({ content: [{ text: "done" }] });
  vi.useRealTimers();
  await gateway.close();
});

it("presents several upstreams as one server", async () => {
  const within = chain(filter({ tools: { exclude: ["secret"] } })).to(server("notes").tool("secret", {}, () => "none"));
  const client = await connect(chain(marking("a")).to({ notes: within, board: server("board") }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["notes-echo", "board-echo"]);
  expect(await client.callTool("board-echo")).toMatchObject({ content: [{ text: "hi" }], by: "a" });
  await client.close();
});

it("uses the given info and instructions", async () => {
  const info = { name: "gate", version: "9" };
  const { context } = fakeContext();
  const discover: Request = { method: "server/discover", params: {} };
  const said = await chain().to(server(), { info, instructions: "Knock first" })(discover, context);
  expect(said).toMatchObject({ instructions: "Knock first", _meta: { [META.serverInfo]: info } });
  expect(await chain().to(server())(discover, context)).toMatchObject({
    _meta: { [META.serverInfo]: { name: "notes" } },
  });
});

it("refuses wrong middleware, upstreams and options, and says why", () => {
  const to = (targets: unknown, options?: unknown) => () => chain().to(targets as never, options as never);
  expect(() => chain({} as never)).toThrow(
    "chain() takes middleware, (request, context, next) => result, not an object",
  );
  expect(() => chain("log" as never)).toThrow("not a string");
  expect(() => chain({ name: "a", run: echo } as never)).toThrow("not an object");
  expect(() => chain(Object.assign(marking("a"), { close: 1 }) as never)).toThrow("`close` of the middleware a");
  expect(to({})).toThrow("the object it was given is empty");
  expect(to({ " ": echo })).toThrow("must not be empty");
  expect(to({ notes: 3 })).toThrow('to(): the upstream "notes" must be a URL, a command');
  expect(to({ notes: { deep: echo } })).toThrow("not an object");
  for (const nothing of [undefined, null, 1, "", []]) expect(to(nothing)).toThrow("to() must be a URL");
  expect(to({ notes: { cmd: "x", args: [] } })).toThrow("handler or a transport, not an object with `cmd`, `args`");
  expect(to({ cmd: "x" })).toThrow('to(): the upstream "cmd": an address must begin with http://');
  expect(to({ command: 5 })).toThrow("to(): `command` must be the name or path of a program, not a number");
  expect(to({ command: "" })).toThrow("to(): `command` must be the name or path of a program, not an empty string");
  expect(to({ notes: { command: " " } })).toThrow('to(): the upstream "notes": `command` must be the name');
  expect(to({ command: "x", arg: [] })).toThrow("to(): a command has no option `arg`; did you mean `args`?");
  expect(to(echo, { nams: "always" })).toThrow("to() has no option `nams`; did you mean `names`?");
  for (const address of ["nope", "ftp://x", { notes: "ftp://x" }])
    expect(to(address)).toThrow("must begin with http://");
  expect(() => reach({ cmd: "x" } as never)).toThrow("upstream(): the target must be a URL, a command");
  expect(() => reach({ command: "" })).toThrow("upstream(): the target: `command` must be the name or path");
  expect(() => reach({ command: "x" }, { idelMs: 5 } as never)).toThrow(
    "upstream() has no option `idelMs`; did you mean `idleMs`?",
  );
  expect(() => reach({ command: "x" }, { unheard: 1 } as never)).toThrow("`unheard`; the options are name, share, env");
  expect(() => reach({ command: "x" }, { restart: { most: 3 } } as never)).toThrow(
    "upstream() has no option `restart.most`; the options are maxFailures, windowMs, firstMs, maxMs",
  );
  expect(() => reach({ command: "x" }, { revision: "2025" })).toThrow("YYYY-MM-DD");
  expect(to(echo, { names: "never" })).toThrow('`names` must be "when-needed" or "always", not "never"');
  expect(to(echo, { names: "always" })).toThrow("needs an upstream with a name");
  expect(to(echo, { info: {} })).toThrow("`info` must have");
  expect(to(echo, { instructions: 1 })).toThrow("`instructions` must be a string");
});

it("tells a command, an address and a transport from an object of upstreams", () => {
  const target = (targets: Parameters<ReturnType<typeof chain>["to"]>[0]): string[] =>
    Object.values(chain().to(targets).status()).map((status) => status.target);
  expect(target({ command: "notes-mcp", args: ["secret"] })).toEqual(["notes-mcp"]);
  expect(target("http://127.0.0.1:1/mcp?token=1")).toEqual(["http://127.0.0.1:1"]);
  expect(target(new URL("http://127.0.0.1:1/mcp"))).toEqual(["http://127.0.0.1:1"]);
  const nothing = async (): Promise<void> => undefined;
  expect(target({ start: nothing, send: nothing, close: nothing })).toEqual(["a transport"]);
  expect(target({ command: { command: "notes-mcp" } })).toEqual(["notes-mcp"]);
  expect(target({ command: echo })).toEqual(["in this process"]);
});
