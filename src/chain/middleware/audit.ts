// Writes who called what, when and with what outcome, one JSON object in a line, to a file that only grows. A result is
// passed on after its line is written. If lines cannot be written, they are kept and further calls are refused, unless
// the options say otherwise: an audit that loses lines in silence is none.

import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { AppendFile } from "./append-file.ts";
import { boolean, choice, documented, field, func, requiredInConfig, string } from "../../core/fields.ts";
import type { OptionsOf, ValuesOf } from "../../core/options.ts";
import type { Middleware } from "../../core/handler.ts";
import { digest } from "../../core/seal.ts";
import { errorMessage } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { withoutSecrets } from "../../core/redactor.ts";
import { withoutQuery } from "../../core/secrets.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { methodNames } from "../method-names.ts";
import { jsonOf, ObservedCall, type CallReader } from "../observe.ts";
import { namedIn } from "../named-items.ts";

const OPTIONS = {
  file: requiredInConfig(string("The path of the file; in a config, relative to it.")),
  write: documented(
    "Gets each line, without a line break, instead of a file. The result waits for its promise.",
    func<(line: string) => void | Promise<void>>(),
  ),
  methods: methodNames("Only requests of these methods are written. Default: all."),
  arguments: field(
    "Also writes arguments, without secrets that are recognized, or only a hash of them.",
    { enum: [true, false, "hash"] },
    'true, false or "hash"',
    (value): value is boolean | "hash" => typeof value === "boolean" || value === "hash",
  ).or(false),
  start: boolean("Also writes a line before a request is passed on.").or(false),
  onFailure: choice("If lines cannot be written: further requests are refused, or one warning.", ["refuse", "warn"]).or(
    "refuse",
  ),
};

/** Options of `audit()`. */
export type AuditOptions = OptionsOf<typeof OPTIONS>;

/** Longer names of callers and items are cut. */
const MAX_TEXT = 500;
/** Longer arguments are written as a hash. */
const MAX_ARGUMENTS = 65_536;

/**
 * Writes who called what, when and with what outcome, as lines of JSON, to a file or a function.
 *
 * @example
 * audit({ file: "audit.jsonl" })
 */
export const audit: DefinedMiddleware<[options: AuditOptions]> = define({
  name: "audit",
  summary: "Writes who called what, when and with what outcome, as lines of JSON.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createAudit,
});

function createAudit(options: ValuesOf<typeof OPTIONS>, { folder, error }: DefinitionPlace): Middleware {
  const { file, write, arguments: recordsArguments, start } = options;
  const methods = options.methods && new Set(options.methods);
  const refuses = options.onFailure !== "warn";
  if ((file === undefined) === (write === undefined)) throw error("file", "is required: the path of the file");
  const sink = file === undefined ? { write: write ?? (() => undefined) } : new AppendFile(resolve(folder, file));
  const lines = new Lines(sink, refuses);
  const reader: CallReader<object | undefined> = {
    begin: (call) => {
      const entry = entryOf(call, recordsArguments);
      const begin = async (): Promise<void> => {
        await lines.ready();
        call.state = entry;
        if (!start) return;
        await lines.add({ ...entry, event: "start" });
        await lines.ready();
      };
      if (start || !lines.isReady) return begin();
      call.state = entry;
      return undefined;
    },
    end: (call) => {
      const { state: entry, upstream } = call;
      // A call that was refused because lines cannot be written has none.
      if (entry === undefined) return undefined;
      const ms = Math.round(call.ms * 10) / 10;
      // Added to the entry, since a copy with more fields takes longer than all the rest.
      const line = entry as Record<string, unknown>;
      if (start) line["event"] = "end";
      if (upstream !== undefined) line["upstream"] = upstream;
      for (const [field, value] of Object.entries(outcomeOf(call))) line[field] = value;
      line["ms"] = ms;
      return lines.add(line);
    },
  };
  const middleware: Middleware = function audit(request, context, next) {
    if (methods?.has(request.method) === false) return next(request, context);
    return new ObservedCall(reader, request, context).run(next);
  };
  middleware.close = () => lines.close();
  return middleware;
}

/** The fields of a line that are known before the request is passed on. Those that are undefined are not written. */
function entryOf({ request, context, caller, name }: ObservedCall, withArguments: boolean | "hash"): object {
  const { method, params } = request;
  const { uri, taskId } = params;
  const completed = method === "completion/complete" ? namedIn(request)?.name : undefined;
  const named = completed === undefined ? name : withoutQuery(completed);
  const args = withArguments === false ? undefined : (params["arguments"] ?? params["argument"] ?? (uri && { uri }));
  return {
    time: new Date().toISOString(),
    id: randomUUID(),
    principal: caller.principal && cut(caller.principal),
    client: caller.info && cut(`${caller.info.name} ${caller.info.version}`),
    endpoint: caller.endpoint,
    run: context.run,
    method: cut(method),
    name: named && cut(named),
    task: typeof taskId === "string" ? cut(taskId) : undefined,
    arguments: args === undefined ? undefined : shownArguments(args, withArguments === "hash"),
  };
}

function shownArguments(args: unknown, isHashed: boolean): unknown {
  const length = jsonOf(args).length;
  return isHashed || length > MAX_ARGUMENTS ? `sha256 ${digest(args)}` : withoutSecrets(args);
}

/** The message of an error is not written, since it may contain secrets. */
function outcomeOf(call: ObservedCall): object {
  const { status, outcome: type, result } = call;
  if (status === "failed") return { outcome: "error", error: call.errorKind ?? "internal_error" };
  if (status === "cancelled") return { outcome: status };
  const outcome = type === "complete" ? "ok" : type === "tool_error" ? "tool error" : cut(type);
  const taskId = result?.resultType === "task" ? result["taskId"] : undefined;
  return { outcome, ...(typeof taskId === "string" && { task: cut(taskId) }), bytes: call.bytes };
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

interface Sink {
  /** Called again with the same line if it fails. */
  write(line: string): void | Promise<void>;
  /** Rejects if lines could not be written now. */
  open?(): Promise<void>;
  close?(): Promise<void>;
}

/** Writes one line after the other. Lines that could not be written are kept, and tried again before further requests. */
class Lines {
  readonly #sink: Sink;
  readonly #refuses: boolean;
  readonly #waiting: string[] = [];
  #last: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #isOpen = false;

  constructor(sink: Sink, refuses: boolean) {
    this.#sink = sink;
    this.#refuses = refuses;
  }

  get isReady(): boolean {
    return this.#isOpen && !this.#hasFailed;
  }

  /** Rejects if lines cannot be written. */
  async ready(): Promise<void> {
    if (this.isReady) return;
    await this.#flush();
    if (!this.#refuses || !this.#hasFailed) return;
    const message = "The audit cannot be written, so requests are refused; the log of the gateway has the reason";
    throw McpError.of("internal_error", message, { middlewareName: "audit" });
  }

  /** Resolves when the line is written, or cannot be written. */
  add(entry: object): Promise<void> {
    this.#waiting.push(jsonOf(entry));
    return this.#flush();
  }

  /** Opens nothing if nothing was to be written. */
  async close(): Promise<void> {
    await this.#last;
    if (this.#waiting.length > 0) await this.#flush();
    await this.#sink.close?.();
  }

  #flush(): Promise<void> {
    this.#last = this.#last.then(() => this.#writeAll());
    return this.#last;
  }

  async #writeAll(): Promise<void> {
    try {
      await this.#sink.open?.();
      for (let line = this.#waiting[0]; line !== undefined; line = this.#waiting[0]) {
        await this.#sink.write(line);
        this.#waiting.shift();
      }
      this.#isOpen = true;
      this.#hasFailed = false;
    } catch (error) {
      const then = this.#refuses ? "requests are refused until it can" : "requests are passed on without it";
      if (!this.#hasFailed) process.emitWarning(`The audit cannot be written; ${then}: ${errorMessage(error)}`);
      this.#hasFailed = true;
      if (!this.#refuses) this.#waiting.length = 0;
    }
  }
}
