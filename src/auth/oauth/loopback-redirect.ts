// A person's way to an authorization server and back, on one machine: the browser is sent there, and a small HTTP
// server on a loopback address waits for it to come back (RFC 8252, 7.3). It listens only while somebody is awaited,
// answers only who brings the `state` that was sent along, and knows nothing of codes and tokens. Any program and any
// page of this machine can knock: all others are turned away, and the waiting goes on.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { onAbort, unref } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/text.ts";
import type { Redirect } from "./redirect.ts";

export interface LoopbackRedirectOptions {
  /** A loopback address; "127.0.0.1" where it is left out. */
  readonly host?: "127.0.0.1" | "::1" | "localhost";
  /** 0 takes one that is free, and where it is left out. A server that compares ports too needs a fixed one. */
  readonly port?: number;
  /** "/callback" where it is left out. */
  readonly path?: string;
  /** Opens the address for the person; in the system's browser where it is left out. */
  readonly open?: (url: URL) => Promise<void> | void;
  /** Told every address that the person is sent to, and whether a browser was opened: where not, it must be shown. */
  readonly onAddress?: (url: URL, opened: boolean) => void;
  /** How long one waits for the person, in milliseconds; five minutes where it is left out. */
  readonly timeoutMs?: number;
  /** HTML that the person sees at the end; scripts and what it loads from elsewhere do not run. */
  readonly page?: string;
}

const FIVE_MINUTES_MS = 300_000;
/** How long connections are left to take what they were sent. */
const CLOSING_MS = 1_000;
const PAGE = html("Signed in", "You can close this tab and go back to the program.");
const REFUSED_PAGE = html("Not signed in", "The program was told why. You can close this tab.");
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // The address has the code in it.
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
  connection: "close",
};

export function loopbackRedirect(options: LoopbackRedirectOptions = {}): Redirect {
  return new LoopbackRedirect(options);
}

class LoopbackRedirect implements Redirect {
  readonly #options: LoopbackRedirectOptions;
  readonly #host: string;
  readonly #path: string;
  readonly #timeoutMs: number;
  /** Who is awaited, by the state that they bring. */
  readonly #awaited = new Map<string, (back: URL) => void>();
  #listening: Promise<readonly Server[]> | undefined;
  /** The one that was had before: what is registered somewhere should stay true. */
  #port: number;
  /** Ends the listening of who asked for the address and then did not send anybody. */
  #idle: NodeJS.Timeout | undefined;

  constructor(options: LoopbackRedirectOptions) {
    const { host = "127.0.0.1", port = 0, path = "/callback", timeoutMs = FIVE_MINUTES_MS } = options;
    if (!["127.0.0.1", "::1", "localhost"].includes(host)) {
      throw new TypeError(`A loopback redirect listens on 127.0.0.1, ::1 or localhost, not on ${host}`);
    }
    if (!/^\/[\w\-.~/]*$/.test(path)) throw new TypeError(`The path of a redirect must be like /callback, not ${path}`);
    this.#options = options;
    this.#host = host === "::1" ? "[::1]" : host;
    this.#port = port;
    this.#path = path;
    this.#timeoutMs = timeoutMs;
  }

  get uri(): string | Promise<string> {
    if ((this.#options.port ?? 0) !== 0) return this.#uri();
    return this.#listen().then(() => this.#uri());
  }

  async visit(url: URL, { signal }: { readonly signal: AbortSignal }): Promise<URL> {
    const { webAddress } = await import("./browser.ts");
    signal.throwIfAborted();
    const address = webAddress(url);
    const state = address.searchParams.get("state") ?? "";
    if (state === "") throw refused("it has no state in it, by which whoever comes back could be known");
    if (this.#awaited.has(state)) throw refused("somebody was sent there with the same state already");
    let settle!: { resolve: (back: URL) => void; reject: (error: unknown) => void };
    const back = new Promise<URL>((resolve, reject) => (settle = { resolve, reject }));
    this.#awaited.set(state, settle.resolve);
    const timer = setTimeout(() => settle.reject(this.#late()), this.#timeoutMs);
    const forget = onAbort(signal, () => settle.reject(signal.reason));
    try {
      await Promise.race([this.#send(address), back]);
      return await back;
    } finally {
      clearTimeout(timer);
      forget();
      this.#awaited.delete(state);
      if (this.#awaited.size === 0) this.#close();
    }
  }

  async #send(address: URL): Promise<void> {
    await this.#listen();
    const { open, onAddress } = this.#options;
    let opened = true;
    try {
      if (open === undefined) opened = await (await import("./browser.ts")).openBrowser(address);
      else await open(address);
    } catch (error) {
      if (onAddress === undefined) throw refused(errorMessage(error), error);
      opened = false;
    }
    if (!opened && onAddress === undefined) {
      throw refused("no browser was found; give onAddress, and show the person the address that it is told");
    }
    onAddress?.(address, opened);
  }

  #uri(): string {
    return `http://${this.#host}:${this.#port}${this.#path}`;
  }

  #listen(): Promise<readonly Server[]> {
    this.#listening ??= this.#begin().catch((error: unknown) => {
      this.#listening = undefined;
      throw new ConnectionError("refused", `No redirect can be awaited at ${this.#uri()}: ${errorMessage(error)}`, {
        cause: error,
      });
    });
    clearTimeout(this.#idle);
    this.#idle = unref(setTimeout(() => this.#awaited.size === 0 && this.#close(), this.#timeoutMs));
    return this.#listening;
  }

  async #begin(): Promise<readonly Server[]> {
    const host = this.#options.host ?? "127.0.0.1";
    const first = host === "localhost" ? "127.0.0.1" : host;
    const server = await this.#bind(first, this.#port).catch(async (error: unknown) => {
      // Somebody has the port that was ours, and it was never promised.
      if ((this.#options.port ?? 0) === 0 && this.#port !== 0) return this.#bind(first, 0);
      throw error;
    });
    const bound = server.address();
    if (typeof bound === "object" && bound !== null) this.#port = bound.port;
    if (host !== "localhost") return [server];
    // A browser may try either; where there is no IPv6, nobody else can have it.
    const other = await this.#bind("::1", this.#port).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") {
        server.close();
        throw error;
      }
      return undefined;
    });
    return other === undefined ? [server] : [server, other];
  }

  async #bind(host: string, port: number): Promise<Server> {
    const { createServer } = await import("node:http");
    const server = createServer({ requestTimeout: 10_000 }, (request, response) => this.#answer(request, response));
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      // Waiting for the person keeps the process alive by itself; having an address does not.
      server.listen({ host, port, exclusive: true }, () => resolve(server)).unref();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const own = `${this.#host}:${this.#port}`;
    const { url: target = "", headers, method } = request;
    // A target without a slash would be read as part of the host.
    if (headers.host !== own || !target.startsWith("/") || !URL.canParse(`http://${own}${target}`)) {
      return end(response, 400, "Bad request");
    }
    const back = new URL(`http://${own}${target}`);
    if (method !== "GET" || back.pathname !== this.#path) return end(response, 404, "Not found");
    const states = back.searchParams.getAll("state");
    const awaited = states.length === 1 ? this.#awaited.get(states[0] ?? "") : undefined;
    const answers = back.searchParams.has("code") || back.searchParams.has("error");
    if (awaited === undefined || !answers) return end(response, 400, "Nobody is awaited with this address");
    this.#awaited.delete(states[0] ?? "");
    // The page first: the program may end as soon as it knows.
    response.once("close", () => awaited(back));
    const { page = PAGE } = this.#options;
    response.writeHead(200, HEADERS).end(back.searchParams.has("error") ? REFUSED_PAGE : page);
  }

  #close(): void {
    clearTimeout(this.#idle);
    const listening = this.#listening;
    this.#listening = undefined;
    void listening?.then(
      (servers) => {
        for (const server of servers) {
          server.close();
          server.closeIdleConnections();
          unref(setTimeout(() => server.closeAllConnections(), CLOSING_MS));
        }
      },
      () => undefined,
    );
  }

  #late(): ConnectionError {
    const message = `Nobody came back from the authorization server to ${this.#uri()} within ${this.#timeoutMs} ms; try again, and sign in on the page that opens`;
    return new ConnectionError("timeout", message, { mayHaveRun: false });
  }
}

function refused(why: string, cause?: unknown): ConnectionError {
  const message = `The person could not be sent to the authorization server: ${why}`;
  return new ConnectionError("refused", message, { mayHaveRun: false, ...(cause === undefined ? {} : { cause }) });
}

function end(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...HEADERS, "content-type": "text/plain; charset=utf-8" }).end(`${text}\n`);
}

function html(title: string, text: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${text}</p></html>\n`;
}
