// `serve`: one handler on one wire, and the life of the process around it. On the process's own stdio the
// end of input is the end of us: work in flight gets a short grace, whatever the handler holds is closed,
// and the process exits, because clients do not wait long before they kill. On streams that were given,
// only the connection ends; over HTTP nothing ends but by `close`.

import type { Readable, Writable } from "node:stream";
import type { Handler } from "./core/handler.ts";
import { within } from "./core/async.ts";
import { serveTransport, type ConnectionOptions } from "./dialogue/connection.ts";
import { checkOptions } from "./core/options.ts";
import { checkHttpOptions, CONNECTION_NAMES, type HttpOptions } from "./http-options.ts";
import type { Limits } from "./jsonrpc/codec.ts";
import { stdioTransport } from "./transport/stdio.ts";

/** What closing may take once the end of input is there: clients kill after four seconds. */
const CLOSE_BUDGET_MS = 1_500;

export interface ServeOptions extends ConnectionOptions {
  /** Other streams than the process's own. */
  readonly stdio?: { readonly input: Readable; readonly output: Writable };
  readonly limits?: Partial<Limits>;
  /**
   * Over HTTP instead of stdio.
   *
   * @example
   * const front = await serve(server, { http: { port: 3000 } });
   * console.error(front.url); // http://127.0.0.1:3000/mcp
   */
  readonly http?: HttpOptions;
}

/** Something that is being served. */
export interface Serving {
  /** Where it is reached, on wires that have an address. */
  readonly url?: string;
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** A handler that holds something says how to let go of it. */
export type Closeable = Handler & { close?(budgetMs?: number): Promise<void> | void };

// By the types, so that an option which is added there must be added here.
const OPTIONS = {
  http: true,
  stdio: true,
  limits: true,
  mayShutDown: true,
  ...CONNECTION_NAMES,
} as const satisfies Record<keyof ServeOptions, true>;

/** Known to all copies of this package that a process may have, since it has one stdin. */
const STDIO = Symbol.for("catenary.stdio");
export const STDIO_TAKEN =
  "This process serves on its stdio already: one serve() for each process, or streams of their own";

/**
 * Two servers on one stdin would each answer every message: whoever comes second is told this sentence. Returns what
 * leaves it to others again.
 */
export function takeStdio(sentence: string): () => void {
  const holder = process as { [STDIO]?: string };
  if (holder[STDIO] !== undefined) throw new Error(holder[STDIO]);
  holder[STDIO] = sentence;
  return () => {
    delete holder[STDIO];
  };
}

/** Resolves when it is ready to be spoken to. */
export function serve(
  handler: Closeable,
  options: ServeOptions & { readonly http: HttpOptions },
): Promise<Serving & { readonly url: string }>;
export function serve(handler: Closeable, options?: ServeOptions): Promise<Serving>;
export async function serve(handler: Closeable, options: ServeOptions = {}): Promise<Serving> {
  if (typeof handler !== "function") {
    throw new TypeError("serve() takes a server or a handler: a function (request, context) => Promise<Result>");
  }
  checkOptions("serve()", options, OPTIONS);
  const { stdio, limits, http, ...connection } = options;
  if (http !== undefined) {
    checkHttpOptions(http);
    if (stdio !== undefined) throw new TypeError("serve() takes either `stdio` or `http`: call it once for each");
    return overHttp(handler, { ...connection, ...http, limits: { ...limits, ...http.limits } });
  }
  if (stdio === undefined) takeStdio(STDIO_TAKEN);
  const transport = stdioTransport({ ...stdio, ...(limits === undefined ? undefined : { limits }) });
  const connected = await serveTransport(handler, transport, { mayShutDown: true, ...connection });
  const closed = connected.closed.then(() => within(CLOSE_BUDGET_MS, closing(handler)));
  if (stdio === undefined) endProcessWith(closed, () => connected.close());
  return {
    closed,
    close: async () => {
      await connected.close();
      await closed;
    },
  };
}

async function overHttp(handler: Closeable, options: HttpOptions): Promise<Serving & { readonly url: string }> {
  const { host = "127.0.0.1", port = 3000, ...rest } = options;
  const [{ createFront }, { listen }] = await Promise.all([import("./front.ts"), import("./http/server/listener.ts")]);
  const front = createFront(handler, rest, host);
  const listener = await listen({ host, port, limits: front.limits, onVisit: (visit) => front.take(visit) });
  let markClosed: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    markClosed = resolve;
  });
  const close = async (): Promise<void> => {
    await front.close();
    await listener.close(front.graceMs);
    await within(CLOSE_BUDGET_MS, closing(handler));
    markClosed();
  };
  let ending: Promise<void> | undefined;
  return { url: `${listener.url}${front.path}`, closed, close: () => (ending ??= close()) };
}

/** A handler that fails to let go has let go as far as it can. */
async function closing(handler: Closeable): Promise<void> {
  try {
    await handler.close?.(CLOSE_BUDGET_MS);
  } catch {
    // The process is about to end, and with it whatever was held.
  }
}

function endProcessWith(closed: Promise<void>, close: () => Promise<void>): void {
  let code = 0;
  const stop = (signal: NodeJS.Signals): void => {
    if (signal === "SIGINT") code = 130;
    void close();
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  void closed.finally(() => {
    process.exit(process.exitCode ?? code);
  });
}
