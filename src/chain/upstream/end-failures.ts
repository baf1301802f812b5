// What is said when an end fails: which one, why, whether the call may have run, and what becomes of it. Also which
// failures say that an end at an address is not the one that it was.

import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/objects.ts";
import { codeOf, McpError } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import type { Restarts } from "./restarts.ts";

export const UNSENT = { mayHaveRun: false } as const;

/** With the end's name, since a chain has many; and whoever called a tool must know whether to do it again. */
export function named(error: unknown, name: string, method: string): unknown {
  if (!(error instanceof ConnectionError)) return error;
  const { kind, message, mayHaveRun, status } = error;
  if (kind === "cancelled" || message.startsWith(`The end ${name} `)) return error;
  const doubt = mayHaveRun && method === "tools/call" ? " and the call may have run" : "";
  return new ConnectionError(kind, `The end ${name} failed${doubt}: ${message}`, {
    cause: error,
    mayHaveRun,
    ...(status === undefined ? undefined : { status }),
  });
}

/** The same failure of a request that was surely not sent. */
export function unsent(error: ConnectionError): ConnectionError {
  const { kind, message, status } = error;
  return new ConnectionError(kind, message, {
    cause: error,
    ...UNSENT,
    ...(status === undefined ? undefined : { status }),
  });
}

export interface Rest {
  /** By whose count it is left alone; undefined: it is not. */
  readonly stopped: Restarts | undefined;
  readonly waitMs: number;
  /** Why it rests. */
  readonly failure: unknown;
}

/** The end has failed, and is started again later. */
export function resting(name: string, { stopped, waitMs, failure }: Rest): ConnectionError {
  const why = failure instanceof Error ? `: ${failure.message}` : "";
  const options = { ...UNSENT, cause: failure };
  if (stopped === undefined) {
    const what = `The end ${name} has failed and is started again in ${seconds(waitMs)}`;
    return new ConnectionError("closed", `${what}${why}`, options);
  }
  const what = `The end ${name} has failed ${stopped.rule} and is left alone for ${seconds(stopped.stoppedMs())}`;
  return new ConnectionError("closed", `${what}; the last failure${why}`, options);
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}

/** Statuses of an address that no longer takes what it took. */
const OTHER: ReadonlySet<number | undefined> = new Set([400, 404, 405]);

const UNSUPPORTED = codeOf("unsupported_revision", NEWEST);

/** Whether the end says that it does not speak as it was spoken to: then nothing has run. */
export function isOtherStyle(error: unknown): boolean {
  if (error instanceof ConnectionError) {
    const isRefused = error.kind === "http" && OTHER.has(error.status);
    return !error.mayHaveRun && (isRefused || error.kind === "protocol");
  }
  if (!(error instanceof McpError)) return false;
  // In a session the code has no such meaning, and is told as what the end said.
  const said = isObject(error.data) && isObject(error.data["upstream"]) ? error.data["upstream"]["code"] : error.code;
  return said === UNSUPPORTED;
}
