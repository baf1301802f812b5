// `--trace FILE`: writes every message between callers and the gateway, and between the gateway and its upstreams, as
// lines of JSON. Messages have the form of the newest revision, in which the gateway handles them. Values of the
// config's variables and what has the name of a secret are replaced. The file is limited: a full one becomes FILE.1, in
// place of the last. Without the option, nothing is wrapped.

import { toMcpError } from "../../protocol/errors.ts";
import { closeSync, fchmodSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { ObservedCall, type CallReader } from "../../chain/observe.ts";
import { wrapUpstream, type Upstream } from "../../chain/upstream/upstream.ts";
import type { Config } from "../../config/index.ts";
import { createRedactor } from "../../config/redaction.ts";
import { secretsOf } from "../../config/config-secrets.ts";
import type { Context } from "../../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../../core/handler-marks.ts";
import { REDACTED } from "../../core/secret-shapes.ts";
import { isSecretField } from "../../core/secrets.ts";
import { errorMessage } from "../../core/values.ts";
import type { Closeable } from "../../serve.ts";
import { UsageError } from "../command.ts";

/** The size of the file at which another is begun. FILE and FILE.1 are kept. */
const MAX_TRACE_BYTES: number = 100 * 1024 * 1024;

type Direction = "request" | "result" | "error" | "notification" | "question" | "answer" | "refusal" | "cancelled";

export class Trace {
  readonly #path: string;
  readonly #maxBytes: number;
  #file: number;
  /** Of the file; undefined for what is not a file, such as a pipe, and so has no limit. */
  #bytes: number | undefined;
  readonly #onError: (message: string) => void;
  #redact: (text: string) => string = (text) => text;
  #config: Config | undefined;
  #last = 0;
  /** Lines that are written together, after the messages of this turn of the event loop. */
  #lines: string[] = [];
  #isBroken = false;

  /** Adds to the file, which only its owner may read. Throws a UsageError if that is not possible. */
  constructor(path: string, onError: (message: string) => void, maxBytes: number = MAX_TRACE_BYTES) {
    this.#onError = onError;
    this.#path = path;
    this.#maxBytes = maxBytes;
    try {
      this.#file = openPrivate(path);
      const stats = fstatSync(this.#file);
      this.#bytes = stats.isFile() ? stats.size : undefined;
    } catch (error) {
      throw new UsageError(`--trace ${path} cannot be written: ${errorMessage(error)}`, { cause: error });
    }
    process.once("exit", () => this.#flush());
  }

  /** The config whose secrets are replaced. */
  configOf: () => Config | undefined = () => undefined;

  /** Wraps the handler of all callers. */
  callers(handler: Closeable): Closeable {
    const reader = this.#reader(({ caller: { info, style, principal }, revision }) => {
      return { side: "caller", caller: { name: info?.name, style, principal, revision } };
    });
    const traced: Closeable = (request, context) => new ObservedCall(reader, request, context).run(handler);
    traced.close = (budgetMs) => handler.close?.(budgetMs);
    return Object.defineProperty(traced, EVALUATES_CODE, { get: () => evaluatesCode(handler) });
  }

  /** Wraps an upstream. */
  upstream(name: string, upstream: Upstream): Upstream {
    const reader = this.#reader(() => ({ side: "upstream", upstream: name }));
    return wrapUpstream(upstream, (request, context) => new ObservedCall(reader, request, context).run(upstream));
  }

  /** Writes the messages of calls, each after what `describe` says of its call. */
  #reader(describe: (context: Context) => object): CallReader<object> {
    const write = ({ state }: ObservedCall<object>, what: Direction, content: object): void =>
      this.#write({ ...state, what, ...content });
    const failure = (error: unknown): object => ({ error: toMcpError(error).toBody() });
    return {
      begin: (call) => {
        call.state = { ...describe(call.context), id: (this.#last += 1) };
        const { method, params } = call.request;
        write(call, "request", { method, params });
      },
      notified: (call, notification) => write(call, "notification", notification),
      asked: (call, { request }) => write(call, "question", request),
      answered: (call, { result, error }) =>
        result === undefined ? write(call, "refusal", failure(error)) : write(call, "answer", { result }),
      cancelled: (call) => write(call, "cancelled", { reason: errorMessage(call.context.signal.reason) }),
      end: (call) =>
        call.status === "answered"
          ? write(call, "result", { result: call.result })
          : write(call, "error", failure(call.error)),
    };
  }

  #write(entry: object): void {
    if (this.#isBroken) return;
    this.#lines.push(JSON.stringify({ time: new Date().toISOString(), ...entry }, hideSecret));
    if (this.#lines.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#lines.length === 0) return;
    const config = this.configOf();
    if (config !== this.#config) this.#redact = createRedactor(config === undefined ? [] : secretsOf(config));
    this.#config = config;
    const text = this.#lines.map((line) => `${this.#redact(line)}\n`).join("");
    this.#lines = [];
    try {
      this.#makeRoom(Buffer.byteLength(text));
      writeSync(this.#file, text);
    } catch (error) {
      this.#isBroken = true;
      this.#onError(`--trace ends, since its file cannot be written: ${errorMessage(error)}`);
    }
  }

  /** Begins another file if these bytes do not fit. */
  #makeRoom(bytes: number): void {
    if (this.#bytes === undefined) return;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) {
      renameSync(this.#path, `${this.#path}.1`);
      closeSync(this.#file);
      this.#file = openPrivate(this.#path);
      this.#bytes = 0;
    }
    this.#bytes += bytes;
  }
}

function openPrivate(path: string): number {
  const file = openSync(path, "a", 0o600);
  fchmodSync(file, 0o600);
  return file;
}

/** An object is not replaced: it may be the schema of a field. */
function hideSecret(name: string, value: unknown): unknown {
  return (typeof value === "string" || Array.isArray(value)) && isSecretField(name, value) ? hidden(value) : value;
}

function hidden(value: unknown): unknown {
  return Array.isArray(value) ? value.map(hidden) : typeof value === "string" ? REDACTED : value;
}
