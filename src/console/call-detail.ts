// Makes the document of one call of what the log keeps: request and result, the steps with what each changed, messages on
// the wire, and what the upstream wrote meanwhile. Only here is anything compared, and secrets are hidden.

import type { Step } from "../chain/steps.ts";
import type { Redactor } from "../core/redactor.ts";
import { REDACTED } from "../core/secret-shapes.ts";
import type { Params } from "../core/handler.ts";
import { isSecretField } from "../core/secrets.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import { errorKind, toMcpError } from "../protocol/errors.ts";
import { commandsFor, type CommandTarget } from "./call-commands.ts";
import type { CallLog } from "./call-log.ts";
import { NOT_KEPT, type CallRecord } from "./call-record.ts";
import type { Row } from "./call-row.ts";
import { heldBytes } from "./lengths.ts";
import type { CallDetail, LogLine, StepView, ValueChange, WireMessage } from "./types.ts";
import { valueChanges } from "./value-diff.ts";

export interface DetailOptions {
  readonly log: CallLog;
  readonly redactor: () => Redactor;
  readonly stderr: (server: string) => readonly LogLine[];
  readonly target: () => CommandTarget;
}

/** Longer requests, results and messages are not shown, and neither are longer changes. */
const MAX_SHOWN = 1024 * 1024;
const MAX_SHOWN_CHANGE = 64 * 1024;
const TOO_LONG = "(too long to show)";
/** What the upstream wrote within this time before and after the call. */
const STDERR_MARGIN_MS = 1_000;
const MAX_STDERR_LINES = 200;
/** A step that takes so long is said to hang. */
const HANGS_MS = 30_000;
/** The name of the step of the only server, and of a server behind its own chain. */
const ONLY = "upstream";

/** Undefined if there is no such row, or it is no longer kept. */
export function callDetail(id: number, options: DetailOptions): CallDetail | undefined {
  const { log } = options;
  const row = log.row(id);
  if (row === undefined) return undefined;
  log.refreshed(row);
  const redactor = options.redactor();
  const { nested } = row;
  const parts = [row, ...nested.filter(({ kind }) => kind === "retry")].map((part) => log.kept.record(part.id));
  const records = parts.filter((record) => record !== undefined);
  const [first] = parts;
  const dropped = new Set<CallDetail["dropped"][number]>();
  const request = first?.request;
  if (request === undefined || isTooLong(request.params)) dropped.add("request");
  const last = records.findLast(({ result, error }) => result !== undefined || error !== undefined);
  const { result, error } = last ?? {};
  const hasEnded = row.endedAt !== undefined;
  if (hasEnded && ((result === undefined && error === undefined) || isTooLong(result))) dropped.add("result");
  if (row.kind !== "question" && records.length < parts.length) dropped.add("steps");
  if (row.kind !== "question" && (records.length < parts.length || records.some(({ isWireCut }) => isWireCut)))
    dropped.add("wire");
  const shown =
    dropped.has("request") || request === undefined
      ? undefined
      : { method: request.method, params: redactor.json(request.params) as Params };
  const stderr = row.server === undefined ? [] : stderrOf(row, options.stderr(row.server));
  return {
    row,
    nested: nested.map((inner) => log.refreshed(inner)),
    ...defined({
      request: shown,
      result: dropped.has("result") || result === undefined ? undefined : redactor.protocol(result),
      error: error === undefined ? undefined : errorView(error, row, redactor),
      commands:
        shown && row.kind !== "question" ? commandsFor(shown.method, shown.params, options.target()) : undefined,
    }),
    steps: stepsOf(row, options),
    wire: records.flatMap((record) => wireOf(record, row.server, redactor)).toSorted((one, other) => one.at - other.at),
    stderr,
    dropped: [...dropped],
  };
}

function isTooLong(value: unknown, max: number = MAX_SHOWN): boolean {
  return value === NOT_KEPT || (value !== undefined && (heldBytes(value) ?? Infinity) > max);
}

/** The steps of a call with its retries. */
export function stepsOf(row: Row, { log, redactor }: Pick<DetailOptions, "log" | "redactor">): readonly StepView[] {
  const redact = redactor();
  const [first, ...retries] = [row, ...row.nested.filter(({ kind }) => kind === "retry")].map(({ id }) =>
    log.kept.record(id),
  );
  if (first === undefined) return [];
  const questions = row.nested.flatMap((inner) => {
    const startedAt = inner.kind === "question" ? log.kept.record(inner.id)?.startedAt : undefined;
    return startedAt === undefined ? [] : [{ row: inner, startedAt }];
  });
  return [first, ...retries].flatMap((record) => {
    return (record?.steps ?? []).map((step) =>
      stepView(step, { startedAt: first.startedAt, server: row.server, questions }, redact),
    );
  });
}

interface CallOfStep {
  readonly startedAt: number;
  readonly server: string | undefined;
  readonly questions: readonly { readonly row: Row; readonly startedAt: number }[];
}

function stepView(step: Step, call: CallOfStep, redactor: Redactor): StepView {
  const { kind, name, request, result, error, startedAt, endedAt, steps: inner } = step;
  const ms = endedAt === undefined ? undefined : endedAt - startedAt;
  const insideMs = inner.reduce((sum, { startedAt: from, endedAt: to = from }) => sum + to - from, 0);
  const [first] = inner;
  const last = inner.at(-1);
  const change = (before: unknown, after: unknown): readonly ValueChange[] =>
    before === undefined || after === undefined || before === after
      ? []
      : valueChanges(before, after).map((changed) => withoutSecrets(changed, redactor));
  const own = call.questions.filter(({ startedAt: at }) => isIn(step, at) && !inner.some((other) => isIn(other, at)));
  const notes = [
    ...own.map(
      ({ row }) => `asked the client (${row.method})${row.waitMs === undefined ? "" : `, ${shortMs(row.waitMs)}`}`,
    ),
    ...(kind === "middleware" && first === undefined && result !== undefined ? ["answered without the upstream"] : []),
    ...(endedAt === undefined ? hanging(performance.now() - startedAt) : []),
  ];
  return {
    kind,
    name: kind === "upstream" && name === ONLY ? (call.server ?? name) : name,
    startMs: Math.max(0, startedAt - call.startedAt),
    ...defined({ ms, ownMs: ms === undefined ? undefined : Math.max(0, ms - insideMs) }),
    request: change(request.params, first?.request.params),
    result: change(last?.result, result),
    ...(notes.length > 0 && { note: notes.join("; ") }),
    ...(error !== undefined && { error: redactor.text(errorMessage(error)) }),
    steps: inner.map((other) => stepView(other, call, redactor)),
  };
}

function isIn({ startedAt, endedAt = Infinity }: Step, at: number): boolean {
  return at >= startedAt && at <= endedAt;
}

function hanging(ms: number): readonly string[] {
  return ms < HANGS_MS ? [] : [`has not answered for ${shortMs(ms)}`];
}

function shortMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Of a request, every field may be a secret; a result has media and what the protocol needs. */
function shownMessage(whole: { readonly [field: string]: unknown }, redactor: Redactor): object {
  const message = isTooLong(whole) ? withoutLong(whole) : whole;
  const { method, params } = message;
  if (typeof method !== "string" || !isObject(params)) return redactor.protocol(message);
  return { ...message, params: redactor.json(params) };
}

/** Its id and method say still which message it is. */
function withoutLong(message: { readonly [field: string]: unknown }): { readonly [field: string]: unknown } {
  const fields = Object.entries(message).map(([name, value]) => [name, isObject(value) ? TOO_LONG : value]);
  return Object.fromEntries(fields) as { readonly [field: string]: unknown };
}

/** A field is a secret by its own name, or by that of a field around it. */
function withoutSecrets({ path, before, after }: ValueChange, redactor: Redactor): ValueChange {
  const names = path.match(/[\p{L}\p{N}_$-]+/gu) ?? [];
  const hide = (value: unknown): unknown => {
    if (names.some((name) => isSecretField(name, value)) && value !== undefined) return REDACTED;
    return isTooLong(value, MAX_SHOWN_CHANGE) ? TOO_LONG : redactor.json(value);
  };
  return {
    path: redactor.text(path),
    ...(before !== undefined && { before: hide(before) }),
    ...(after !== undefined && { after: hide(after) }),
  };
}

function errorView(error: unknown, { status }: Row, redactor: Redactor): NonNullable<CallDetail["error"]> {
  const { code, message, data } = toMcpError(error);
  if (status === "cancelled") return { kind: "cancelled", message: redactor.text(message) };
  const kind = errorKind(error);
  return {
    message: redactor.text(message),
    ...defined({ code, kind }),
    ...(data !== undefined && { data: redactor.json(data) }),
  };
}

function wireOf({ wire, times }: CallRecord, server: string | undefined, redactor: Redactor): readonly WireMessage[] {
  return wire.map(({ side, upstream, sender, revision, message, http }, index) => ({
    ...{ side, sender, at: times[index] ?? 0 },
    ...defined({ server: side === "upstream" ? (upstream ?? server) : undefined, revision }),
    ...(message !== undefined && { message: shownMessage(message as { readonly [field: string]: unknown }, redactor) }),
    ...(http !== undefined && {
      http: { line: redactor.text(http.line), headers: redactor.json(http.headers) as typeof http.headers },
    }),
  }));
}

function stderrOf({ at, endedAt = Date.now() }: Row, lines: readonly LogLine[]): readonly LogLine[] {
  const around = lines.filter(({ stream, time }) => {
    const written = Date.parse(time);
    return stream !== undefined && written >= at - STDERR_MARGIN_MS && written <= endedAt + STDERR_MARGIN_MS;
  });
  return around.slice(0, MAX_STDERR_LINES);
}
