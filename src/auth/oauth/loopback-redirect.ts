// A redirect for a browser on the same machine (RFC 8252, 7.3): the browser opens the authorization server, and a small
// HTTP server on a loopback address waits for the user to come back. It listens only during a sign-in, and accepts only
// a request with the `state` that was sent. Any program or web page on the machine can send other requests: they are
// refused, and do not end the wait.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { unref, withTimeout } from "../../core/async.ts";
import { ConnectionError, refused } from "../../core/errors.ts";
import { checkOptions, type OptionNames, optionNames } from "../../core/options.ts";
import { errorMessage, systemErrorCode } from "../../core/values.ts";
import { checkBrowserUrl, openBrowser } from "./browser.ts";
import type { Redirect } from "./types.ts";

/** Options of `loopbackRedirect()`. */
export interface LoopbackRedirectOptions {
  /** Default: "127.0.0.1". */
  readonly host?: "127.0.0.1" | "::1" | "localhost" | undefined;
  /** Default: 0, a free port. An authorization server that compares ports needs a fixed one. */
  readonly port?: number | undefined;
  /** Default: "/callback". */
  readonly path?: string | undefined;
  /** Opens the URL for the user. Default: in the system's browser. */
  readonly open?: ((url: URL) => Promise<void> | void) | undefined;
  /** Called with each URL for the user, and whether it was opened in a browser. If not, show it to the user. */
  readonly onAddress?: ((url: URL, opened: boolean) => void) | undefined;
  /** How long to wait for the user, in milliseconds. Default: five minutes. */
  readonly timeoutMs?: number | undefined;
  /** The HTML page that the user sees after signing in. It cannot run scripts or load anything. */
  readonly page?: string | undefined;
}

const OPTIONS: OptionNames<LoopbackRedirectOptions> = optionNames("host port path open onAddress timeoutMs page");

const DEFAULT_TIMEOUT_MS = 300_000;
/** How long connections may take to receive the page. */
const CLOSE_TIMEOUT_MS = 1_000;
const SUCCESS_PAGE = html("Signed in", "You can close this tab and go back to the program.");
const ERROR_PAGE = html("Not signed in", "The program shows the reason. You can close this tab.");
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // The URL of the page contains the authorization code.
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
  connection: "close",
};

/** Opens the user's browser, and waits on a loopback address for the user to come back. */
export function loopbackRedirect(options: LoopbackRedirectOptions = {}): Redirect {
  checkOptions("loopbackRedirect()", options, OPTIONS);
  const { host = "127.0.0.1", port: fixedPort = 0, path = "/callback", page = SUCCESS_PAGE } = options;
  const { open = openOrThrow, onAddress, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!["127.0.0.1", "::1", "localhost"].includes(host)) {
    throw new TypeError(`loopbackRedirect(): \`host\` must be 127.0.0.1, ::1 or localhost, not ${host}`);
  }
  if (!/^\/[\w\-.~/]*$/.test(path)) {
    throw new TypeError(`loopbackRedirect(): \`path\` must be a path such as /callback, not ${path}`);
  }
  /** The visits in progress, by state. */
  const waiting = new Map<string, (callback: URL) => void>();
  let listening: Promise<readonly Server[]> | undefined;
  /** Kept between visits, since the URI may be registered with an authorization server. */
  let port = fixedPort;
  /** Stops listening if the URI was read but no visit follows. */
  let idleTimer: NodeJS.Timeout | undefined;

  const origin = (): string => `http://${host === "::1" ? "[::1]" : host}:${port}`;

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { url: target = "", headers, method } = request;
    const address = `${origin()}${target}`;
    // A target that does not begin with a slash would be parsed as part of the host.
    if (`http://${headers.host}` !== origin() || !target.startsWith("/") || !URL.canParse(address)) {
      return sendText(response, 400, "Bad request");
    }
    const callback = new URL(address);
    if (method !== "GET" || callback.pathname !== path) return sendText(response, 404, "Not found");
    const [state = "", ...others] = callback.searchParams.getAll("state");
    const resolve = others.length === 0 ? waiting.get(state) : undefined;
    const hasError = callback.searchParams.has("error");
    if (resolve === undefined || !(hasError || callback.searchParams.has("code"))) {
      return sendText(response, 400, "Unexpected callback");
    }
    waiting.delete(state);
    // Send the page first, since the program may exit as soon as the visit resolves.
    response.once("close", () => resolve(callback));
    response.writeHead(200, HEADERS).end(hasError ? ERROR_PAGE : page);
  };

  const bind = async (address: string, wantedPort: number): Promise<Server> => {
    const { createServer } = await import("node:http");
    const server = createServer({ requestTimeout: 10_000 }, answer);
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      // The timer of a visit keeps the process alive; the server alone does not.
      server.listen({ host: address, port: wantedPort, exclusive: true }, () => resolve(server)).unref();
    });
  };

  const startListening = async (): Promise<readonly Server[]> => {
    const first = host === "localhost" ? "127.0.0.1" : host;
    const server = await bind(first, port).catch(async (error: unknown) => {
      // Another program has taken the port that we chose before: choose another one.
      if (fixedPort === 0 && port !== 0) return bind(first, 0);
      throw error;
    });
    ({ port } = server.address() as AddressInfo);
    if (host !== "localhost") return [server];
    // A browser may use IPv6 for localhost. So listen on ::1 too, and fail if another program listens there, since that
    // program would get the code. On a machine without IPv6, the first server is enough.
    const other = await bind("::1", port).catch((error: unknown) => {
      if (systemErrorCode(error) !== "EADDRINUSE") return undefined;
      server.close();
      throw error;
    });
    return other === undefined ? [server] : [server, other];
  };

  const close = (): void => {
    clearTimeout(idleTimer);
    const stopped = listening?.catch(() => []);
    listening = undefined;
    void stopped?.then((servers) => {
      for (const server of servers) {
        server.close();
        server.closeIdleConnections();
        unref(setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS));
      }
    });
  };

  const listen = async (): Promise<string> => {
    clearTimeout(idleTimer);
    idleTimer = unref(setTimeout(() => waiting.size === 0 && close(), timeoutMs));
    listening ??= startListening();
    await listening.catch((cause: unknown) => {
      listening = undefined;
      const message = `Cannot listen at ${origin()}${path}: ${errorMessage(cause)}`;
      throw new ConnectionError("refused", message, { cause });
    });
    return `${origin()}${path}`;
  };

  const openForUser = async (address: URL): Promise<void> => {
    await listen();
    try {
      await open(address);
    } catch (error) {
      if (onAddress === undefined) throw notSent(errorMessage(error), error);
      return onAddress(address, false);
    }
    onAddress?.(address, true);
  };

  return {
    get uri(): string | Promise<string> {
      return fixedPort === 0 ? listen() : `${origin()}${path}`;
    },

    async visit(url, { signal }) {
      signal.throwIfAborted();
      const address = checkBrowserUrl(url);
      const state = address.searchParams.get("state") ?? "";
      if (state === "") throw notSent("the URL has no `state`, so the callback could not be recognized");
      if (waiting.has(state)) throw notSent("a visit with the same state is in progress");
      const callback = new Promise<URL>((resolve) => waiting.set(state, resolve));
      const what = `The user did not come back from the authorization server to ${origin()}${path}`;
      const advice = "try again, and sign in on the page that opens";
      const visit = async (): Promise<URL> => {
        await Promise.race([openForUser(address), callback]);
        return callback;
      };
      try {
        return await withTimeout(timeoutMs, signal, visit, `${what} within ${timeoutMs} ms; ${advice}`);
      } finally {
        waiting.delete(state);
        if (waiting.size === 0) close();
      }
    },
  };
}

async function openOrThrow(url: URL): Promise<void> {
  if (await openBrowser(url)) return;
  throw new Error("no browser was found; set `onAddress`, and show the URL that it gets to the user");
}

function notSent(why: string, cause?: unknown): ConnectionError {
  return refused(`The user could not be sent to the authorization server: ${why}`, cause);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...HEADERS, "content-type": "text/plain; charset=utf-8" }).end(`${text}\n`);
}

function html(title: string, text: string): string {
  const head = `<meta charset="utf-8"><title>${title}</title>`;
  return `<!doctype html><html lang="en">${head}<h1>${title}</h1><p>${text}</p></html>\n`;
}
