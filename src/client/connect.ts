// `connect`: from whatever names an end (a URL, a command, a handler, a transport) to a client that speaks with it.
// Here it is decided what carries the messages and what we declare of ourselves; which revision the end
// speaks is found out by the dialogue.

import { readFileSync } from "node:fs";
import { onAbort } from "../core/async.ts";
import type { Authorizer } from "../core/authentication.ts";
import type { LogLevel } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Notification } from "../core/handler.ts";
import { open, type Opened, type OpenOptions } from "../dialogue/connect.ts";
import type { ClientCapabilities, Implementation } from "../protocol/model/index.ts";
import { knownRevision, NEWEST } from "../protocol/revisions/index.ts";
import type { Transport } from "../transport/transport.ts";
import { errorMessage } from "../core/text.ts";
import { Asks, type AskHandlers } from "./client-requests.ts";
import { Cache } from "./cache.ts";
import { Client } from "./client.ts";
import { openCommand, type Command, type CommandOptions, type Program } from "./command.ts";
import { Contexts, type Listeners } from "./contexts.ts";
import type { HttpOptions } from "./http.ts";
import { openHandler } from "./local.ts";

/** An address over HTTP, a program to start, a handler in this process, or a transport that is not started yet. */
export type Target = string | URL | Command | Handler | Transport;

export interface ConnectOptions extends AskHandlers, Listeners, CommandOptions, HttpOptions {
  /** What we say we are. */
  readonly info?: Implementation;
  /** Speaks this revision and no other, and does not probe for one. */
  readonly revision?: string;
  /** Milliseconds of silence after which a call is given up, or that and the longest that any call may take. */
  readonly timeout?: number | { readonly idleMs?: number; readonly totalMs?: number };
  /** Milliseconds that the end may take to start and to answer for the first time; 10 s. */
  readonly startTimeout?: number;
  /** The least urgent log message that calls want, where they do not say it themselves. */
  readonly logLevel?: LogLevel;
  /** Every notification that reaches us, in the newest shape. */
  readonly onNotification?: (notification: Notification) => void;
  /** Whether results are used again where the end allows it; true. */
  readonly cache?: boolean;
  /** Gives up connecting; once connected, closes the client. */
  readonly signal?: AbortSignal;
}

export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const { signal, onLog, onProgress, onNotification, logLevel } = options;
  if (isGone(signal)) throw givenUp(signal);
  const info = options.info ?? ourselves();
  const asks = new Asks({ ...options, capabilities: withExtensions(options) });
  const contexts = new Contexts({
    info,
    asks,
    cache: options.cache === false ? undefined : new Cache(),
    identity: identityBy(target, options.auth),
    ...(logLevel === undefined ? undefined : { logLevel }),
    ...(onLog === undefined ? undefined : { onLog }),
    ...(onProgress === undefined ? undefined : { onProgress }),
    ...(onNotification === undefined ? undefined : { onNotification }),
  });
  const { timeout = {} } = options;
  const timeouts = typeof timeout === "number" ? { idleMs: timeout } : timeout;
  const giveUp = (): void => contexts.end(signal?.reason);
  const forget = onAbort(signal, giveUp);
  let found: { opened: Opened; program?: Program };
  try {
    found = await openTarget(target, options, {
      info,
      capabilities: asks.capabilities,
      home: contexts.home,
      timeouts,
      ...(options.startTimeout === undefined ? undefined : { startMs: options.startTimeout }),
      ...(options.revision === undefined ? undefined : { revision: options.revision }),
    });
  } catch (error) {
    throw isGone(signal) ? givenUp(signal) : error;
  } finally {
    forget();
  }
  const who = contexts.cache === undefined ? undefined : await contexts.identity?.();
  contexts.cache?.slot({ method: "server/discover", params: {} }, who)?.keep(found.opened.discovered);
  const client = new Client({ ...found, contexts, timeouts });
  closeWith(client, signal);
  return client;
}

/** An end without a client before it: what is asked of the caller, and told, goes to `how.home` and the calls' contexts. */
export async function openTarget(
  target: Target,
  options: ConnectOptions,
  how: OpenOptions,
): Promise<{ opened: Opened; program?: Program }> {
  if (typeof target === "string" || target instanceof URL) {
    // Loaded here: who connects to no address needs no HTTP.
    const { openAddress } = await import("./http.ts");
    return { opened: await openAddress(target, options, how) };
  }
  if (typeof target === "function") {
    if (how.revision !== undefined && how.revision !== NEWEST.name) {
      knownRevision(how.revision);
      throw new TypeError(
        `A handler is called as it is, in ${NEWEST.name}; connectAt of catenary/testing speaks ${how.revision} with it`,
      );
    }
    return { opened: await openHandler(target, how) };
  }
  if (typeof target !== "object" || target === null) throw new TypeError(TARGETS);
  if ("command" in target) return openCommand(target, options, how);
  if (typeof target.start !== "function" || typeof target.send !== "function") {
    throw new TypeError(TARGETS);
  }
  let used = false;
  const given = (failure?: ConnectionError): Transport => {
    if (!used) {
      used = true;
      return target;
    }
    const advice = "a transport cannot be started again: name its `revision`, or connect to a command";
    throw new ConnectionError("refused", `The end did not survive being asked what it speaks, and ${advice}`, {
      cause: failure,
    });
  };
  return { opened: await open(given, how) };
}

const TARGETS = "connect() takes a URL, a command ({ command, args }), a handler or a transport";

/** What we prove who we are by may be an extension, which an end may want to know of. */
function withExtensions({ capabilities = {}, auth }: ConnectOptions): ClientCapabilities {
  const { extensions = [] } = auth ?? {};
  if (extensions.length === 0) return capabilities;
  const declared = Object.fromEntries(extensions.map((name) => [name, {}]));
  return { ...capabilities, extensions: { ...declared, ...capabilities.extensions } };
}

/** The proof that goes with a request: whoever shows another may be another. */
function identityBy(target: Target, auth: Authorizer | undefined): (() => Promise<string | undefined>) | undefined {
  if (auth === undefined || (typeof target !== "string" && !(target instanceof URL))) return undefined;
  const { signal } = new AbortController();
  return async () => (await auth.authorize({ method: "POST", url: new URL(target), signal }))["authorization"];
}

function closeWith(client: Client, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const close = (): void => void client.close().catch(() => undefined);
  if (signal.aborted) close();
  const forget = onAbort(signal, close);
  void client.closed.then(forget);
}

function isGone(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function givenUp(signal: AbortSignal | undefined): ConnectionError {
  const reason: unknown = signal?.reason;
  return new ConnectionError("cancelled", `Connecting was given up by the caller: ${errorMessage(reason)}`, {
    cause: reason,
  });
}

/** What we say we are where nobody says otherwise. */
export function ourselves(): Implementation {
  let version = "0.0.0";
  try {
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    ({ version } = manifest);
  } catch {
    // Bundled away from its manifest: what we are called is worth more than how old we are.
  }
  return { name: "catenary", version };
}
