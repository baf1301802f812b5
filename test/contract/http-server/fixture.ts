// The server of the tests over HTTP. Each test starts its own on a free port, and it is closed after the test. A call of
// `hold` runs until the test releases it, so that the test controls what happens during the call.

import { afterEach } from "vitest";
import { z } from "zod";
import type { Context } from "../../../src/core/handler.ts";
import type { HttpRequest } from "../../../src/http/server/http-request.ts";
import { listen } from "../../../src/http/server/listener.ts";
import { createFront } from "../../../src/http/server/mount.ts";
import type { HttpLimits } from "../../../src/http/server/fields.ts";
import type { FixedLimits } from "../../../src/http/server/options.ts";
import { createServer, type Server, type ToolContext } from "../../../src/server/index.ts";
import { serve, type Closeable, type ServeOptions, type Serving } from "../../../src/serve.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";

type HttpOptions = NonNullable<ServeOptions["http"]>;

export interface StartOptions extends Omit<ServeOptions, "http"> {
  readonly http?: HttpOptions;
}

export class Fixture {
  readonly server: Server;
  /** The server, with a record of its subscriptions. */
  readonly handler: Closeable;
  /** The contexts of all subscriptions so far; each session has one for its lists. */
  readonly subscriptions: Context[] = [];
  /** How often `hold` and `ignore` ran, by key. */
  readonly runs = new Map<string, number>();
  readonly #held = new Map<string, ToolContext>();
  readonly #finish = new Map<string, (text: string) => void>();
  #waiting: (() => void)[] = [];

  constructor() {
    this.server = this.#make();
    const handler: Closeable = (request, context) => {
      if (request.method === "subscriptions/listen") {
        this.subscriptions.push(context);
        this.#wake();
      }
      return this.server(request, context);
    };
    handler.close = () => this.server.close();
    this.handler = handler;
  }

  /** Resolves with the context of the call with this key when it runs. */
  async holding(key: string): Promise<ToolContext> {
    return this.#until(() => this.#held.get(key));
  }

  release(key: string, text = `released ${key}`): void {
    this.#finish.get(key)?.(text);
  }

  /** Resolves with the context of the subscription with this index. */
  async subscribed(index: number): Promise<Context> {
    return this.#until(() => this.subscriptions[index]);
  }

  async #until<Found>(find: () => Found | undefined): Promise<Found> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #hold(key: string, context: ToolContext): Promise<string> {
    this.runs.set(key, (this.runs.get(key) ?? 0) + 1);
    this.#held.set(key, context);
    const text = new Promise<string>((resolve, reject) => {
      this.#finish.set(key, resolve);
      context.signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
    });
    this.#wake();
    return text;
  }

  #make(): Server {
    const server = createServer({
      name: "http-fixture",
      version: "1.0.0",
      cache: { ttlMs: 5_000, cacheScope: "public" },
    })
      .tool("echo", { description: "Returns the text", input: z.object({ text: z.string() }) }, ({ text }) => text)
      .tool("hold", { input: z.object({ key: z.string() }) }, ({ key }, context) => this.#hold(key, context))
      .tool("ignore", { input: z.object({ key: z.string() }) }, async ({ key }, context) => {
        // Never returns, even if its signal is aborted.
        void this.#hold(key, context).catch(() => undefined);
        return new Promise<never>(() => undefined);
      })
      .tool("count", { input: z.object({ to: z.number() }) }, ({ to }, { progress }) => {
        for (let n = 1; n <= to; n += 1) progress(n, to, `step ${n}`);
        return `counted to ${to}`;
      })
      .tool("who", {}, (_args, { caller, revision }) => JSON.stringify({ principal: caller.principal, revision }))
      .tool("elicit", {}, async (_args, { ask }) => {
        const { action, content } = await ask.elicit({
          message: "Who are you?",
          requestedSchema: { type: "object", properties: { name: { type: "string" } } },
        });
        return `${action} ${String(content?.["name"])}`;
      })
      .tool("sample", {}, async (_args, { ask }) => {
        const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Say something" } }];
        return JSON.stringify((await ask.sample({ messages, maxTokens: 20 })).content);
      })
      .tool("add", { input: z.object({ name: z.string() }) }, ({ name }) => {
        server.tool(name, {}, () => "new");
        return "added";
      })
      .tool("update", { input: z.object({ uri: z.string() }) }, ({ uri }) => {
        server.resourceUpdated(uri);
        return "updated";
      })
      .resource("note://one", { name: "one", mimeType: "text/plain" }, () => "The first note")
      .resource("note://ä b", { name: "two" }, () => "The second note")
      .template("note://day/{date}", { name: "day" }, ({ date }) => date)
      .template("heavy://{name}", { name: "heavy" }, () => "A URI of any length")
      .prompt("greet", { arguments: { author: { required: true } } }, ({ author }) => `Greet ${author}.`);
    return server;
  }
}

const open: { close(): unknown }[] = [];

/** Closes something after the test, the last one first. */
export function closeAfterTest<Thing extends { close(): unknown }>(thing: Thing): Thing {
  open.push(thing);
  return thing;
}

afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close();
});

export interface TestedServer {
  readonly fixture: Fixture;
  readonly peer: HttpPeer;
}

export interface StartedServer extends TestedServer {
  readonly front: Serving;
}

/** Serves a new fixture with other values for limits that are not options, on a free port, with a peer for it. */
export async function startLimited(
  fixed: Partial<FixedLimits>,
  limits: Partial<HttpLimits> = {},
): Promise<TestedServer> {
  const fixture = new Fixture();
  const router = createFront(fixture.handler, { limits }, "127.0.0.1", fixed);
  const onRequest = (request: HttpRequest): void => router.handle(request);
  const listener = await listen({ host: "127.0.0.1", port: 0, limits: router.limits, onRequest });
  closeAfterTest({ close: () => listener.close(0) });
  closeAfterTest(router);
  const peer = closeAfterTest(new HttpPeer(`${listener.url}${router.path}`));
  return { fixture, peer };
}

/** Serves a new fixture, or the given handler, on a free port, with a peer for it. */
export async function startServer(
  { http, ...options }: StartOptions = {},
  handler?: Closeable,
): Promise<StartedServer> {
  const fixture = new Fixture();
  const front = closeAfterTest(await serve(handler ?? fixture.handler, { ...options, http: { port: 0, ...http } }));
  const peer = closeAfterTest(new HttpPeer(front.url ?? ""));
  return { fixture: fixture, peer, front };
}

export const textOf = (answer: Record<string, ReturnType<typeof JSON.parse>>): string =>
  String(answer["result"]?.content?.[0]?.text ?? JSON.stringify(answer));
