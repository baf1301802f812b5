// `fromSdk()`: a server written with the official TypeScript SDK as a handler. It is an upstream whose transports lead
// to the server in this process. Only the shape of the server is known here, so the SDK is not a dependency.

import { attempt } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { checkFields, kindOf, OptionPlace, type OptionsOf } from "../../core/options.ts";
import { defined, errorMessage, isObject } from "../../core/values.ts";
import { decode, encode, faultText } from "../../jsonrpc/codec.ts";
import { type Id, isId, type Message } from "../../jsonrpc/message.ts";
import type { NamedTransportSource, Receive, Transport, TransportSource } from "../../transport/transport.ts";
import { UPSTREAM } from "./options.ts";
import { upstream, type Upstream } from "./upstream.ts";

/** A server of the official SDK: `McpServer` or `Server`, of version 1 or 2. */
export interface SdkServer {
  connect(transport: SdkTransport): Promise<void>;
  close(): Promise<void>;
}

/** A transport as the official SDK defines it. */
export interface SdkTransport {
  readonly sessionId?: string;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: unknown, extra?: unknown) => void;
  start(): Promise<void>;
  send(message: unknown, options?: { readonly relatedRequestId?: string | number | undefined }): Promise<void>;
  close(): Promise<void>;
}

/** Makes a server for one session. `era` is for functions that were written for version 2 of the SDK. */
export type SdkServerFactory = (context: { readonly era: "legacy" }) => SdkServer | Promise<SdkServer>;

const { name, share, timeoutMs, maxTimeoutMs, startTimeoutMs, idleMs, maxSessions, start, onState } = UPSTREAM;
const OPTIONS = { name, share, timeoutMs, maxTimeoutMs, startTimeoutMs, idleMs, maxSessions, start, onState };

/** Options of `fromSdk()`: those of `upstream()` that concern a server in this process. */
export type FromSdkOptions = OptionsOf<typeof OPTIONS>;

/** A session in this process costs little, so there may be as many as our own server allows. */
const MAX_SESSIONS = 10_000;
const EXPECTED = "a server of the official SDK, with `connect` and `close`";

/** What to do if a server does not accept a connection. A server has one at a time. */
const FROM_OBJECT = "a server object has one connection at a time; for more, pass a function to fromSdk()";
const FROM_FUNCTION = "the function given to fromSdk() must make a new server each time it is called";

/**
 * Turns a server that was written with the official SDK into a handler, for `serve`, `connect` and `chain`. A server
 * object has one session, which all callers share. A function that makes a server is called for each session.
 *
 * @example
 * await serve(fromSdk(server), { http: { port: 3000 } });
 *
 * @example
 * const gateway = chain(log()).to({ notes: fromSdk(() => createNotesServer()) });
 */
export function fromSdk(server: SdkServer | SdkServerFactory, options: FromSdkOptions = {}): Upstream {
  checkFields(options, OPTIONS, new OptionPlace("fromSdk()"));
  if (typeof server === "function" && !("tool" in server)) {
    const transport = async (): Promise<Transport> => new SdkConnection(await create(server), FROM_FUNCTION);
    const source = sourceOf(transport, "The function given to fromSdk() did not make a server");
    return upstream(source, { share: "per-session", maxSessions: MAX_SESSIONS, ...defined(options) });
  }
  if (!isSdkServer(server)) {
    throw new TypeError(`fromSdk() takes ${EXPECTED}, or a function that makes one, not ${describe(server)}`);
  }
  if (options.share !== undefined && options.share !== "shared") {
    throw new TypeError("fromSdk(): a server object has one session; for `share`, pass a function that makes a server");
  }
  const source = sourceOf(oneAtATime(server), "`close` of the server did not end its last connection");
  return upstream(source, { idleMs: 0, ...defined(options), share: "shared" });
}

function sourceOf(transport: TransportSource["transport"], opening: string): NamedTransportSource {
  const lateParts = { opening, starting: "`connect` of the server did not resolve" };
  return { style: "session", description: "a server of the SDK in this process", transport, lateParts };
}

/** A server object can be connected again when its last connection has ended. */
function oneAtATime(server: SdkServer): () => Promise<Transport> {
  let last: SdkConnection | undefined;
  return async () => {
    await last?.close().catch(() => undefined);
    return (last = new SdkConnection(server, FROM_OBJECT));
  };
}

async function create(factory: SdkServerFactory): Promise<SdkServer> {
  let server: unknown;
  try {
    server = await factory({ era: "legacy" });
  } catch (cause) {
    throw refused("The function that makes the server failed", cause);
  }
  if (isSdkServer(server)) return server;
  throw new ConnectionError(
    "refused",
    `The function given to fromSdk() must return ${EXPECTED}, not ${describe(server)}`,
    {
      mayHaveRun: false,
    },
  );
}

/** The details are for the operator: they may contain secrets, such as the address of a database. */
function refused(message: string, cause: unknown): ConnectionError {
  return new ConnectionError("refused", message, { cause, mayHaveRun: false, diagnostics: `: ${errorMessage(cause)}` });
}

/** A client of the SDK has `connect` and `close` too. */
function isSdkServer(value: unknown): value is SdkServer {
  if (!isObject(value) || typeof value["callTool"] === "function") return false;
  return typeof value["connect"] === "function" && typeof value["close"] === "function";
}

function describe(value: unknown): string {
  if (typeof value === "function") return "a server made with createServer(), which is a handler already";
  return isObject(value) && typeof value["callTool"] === "function" ? "a client" : kindOf(value);
}

/** A connection with a server in this process. `start` connects the server, `close` closes it. */
class SdkConnection implements Transport {
  readonly #server: SdkServer;
  readonly #advice: string;
  #isClosed = false;
  /** The server's side. The SDK sets its `onmessage`, `onclose` and `onerror`. */
  readonly #side: SdkTransport = {
    sessionId: crypto.randomUUID(),
    start: async () => undefined,
    send: async (message, options) => this.#take(message, options?.relatedRequestId),
    close: async () => this.#end(),
  };
  #receive: Receive | undefined;
  #connecting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(server: SdkServer, advice: string) {
    this.#server = server;
    this.#advice = advice;
  }

  async start(receive: Receive): Promise<void> {
    this.#receive = receive;
    this.#connecting = attempt(() => this.#server.connect(this.#side));
    try {
      await this.#connecting;
    } catch (cause) {
      throw refused(`The server did not accept a connection; ${this.#advice}`, cause);
    }
  }

  readonly send = async (message: Message | readonly Message[]): Promise<void> => {
    if (this.#isClosed) {
      throw new ConnectionError("closed", "The server has closed its connection", { mayHaveRun: false });
    }
    let copy: unknown;
    try {
      // As over a pipe, the server gets objects of its own, which it may change.
      copy = JSON.parse(encode(message));
    } catch (cause) {
      throw new ConnectionError("protocol", errorMessage(cause), { cause, mayHaveRun: false });
    }
    for (const single of Array.isArray(copy) ? copy : [copy]) queueMicrotask(() => this.#deliver(single));
  };

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  /** A server that still connects is closed when it has connected, since it may have another connection until then. */
  async #close(): Promise<void> {
    const isConnected = await this.#connecting?.then(
      () => true,
      () => false,
    );
    if (isConnected !== true || this.#isClosed) return;
    try {
      await this.#server.close();
    } finally {
      this.#end();
    }
  }

  #deliver(message: unknown): void {
    try {
      this.#side.onmessage?.(message);
    } catch (error) {
      this.#side.onerror?.(error as Error);
    }
  }

  /** As over a pipe, the other side gets what JSON can express: no `undefined`, no object that the server changes later. */
  #take(message: unknown, requestId: Id | undefined): void {
    const received = requestId === undefined ? undefined : { about: requestId };
    let text: string | undefined;
    try {
      text = JSON.stringify(message) as string | undefined;
    } catch (cause) {
      if (!isObject(message) || "method" in message || !isId(message["id"])) throw cause;
      const error = { code: -32603, message: "Internal error", data: { details: errorMessage(cause) } };
      const fault = { jsonrpc: "2.0", id: message["id"], error } as const;
      queueMicrotask(() => this.#receive?.({ kind: "fault", fault, ...received }));
      return;
    }
    const decoded = decode(text ?? "null");
    if (decoded.kind === "fault") {
      this.#side.onerror?.(new TypeError(`The server sent what is not a message: ${faultText(decoded.fault)}`));
      // Its id is one of ours only if it is a response.
      if (!isObject(message) || "method" in message) return;
    }
    const inbound = decoded.kind === "fault" ? { ...decoded, answerable: false } : decoded;
    queueMicrotask(() => this.#receive?.({ ...inbound, ...received }));
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#side.onclose?.();
    queueMicrotask(() => this.#receive?.({ kind: "end" }));
  }
}
