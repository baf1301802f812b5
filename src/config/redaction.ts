// An end that was written with variables or inputs in it: what they stand for may be a key, and an address, a command or
// an argument is what errors and reports name. Whatever this end says of itself names the variables instead. What the
// end answers is its own, and passes untouched.

import type { Upstream } from "../chain/upstream/upstream.ts";
import type { UpstreamStatus } from "../chain/upstream/status.ts";
import { ConnectionError } from "../core/errors.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/evaluates-code.ts";
import { withoutHidden, type Hidden } from "./variables.ts";

/** What is shorter is no secret, and stands in many a word by chance. */
const LEAST_LENGTH = 4;

/** Writes what may be shown of a text. */
type Conceal = (text: string) => string;

export function concealing(hidden: readonly Hidden[]): Conceal {
  const forms = hidden
    .flatMap(({ value, reference }) => formsOf(value).map((form) => ({ value: form, reference })))
    .filter(({ value }) => value.length >= LEAST_LENGTH)
    // A part of one value may be another's whole.
    .toSorted((one, other) => other.value.length - one.value.length);
  return (text) => withoutHidden(text, forms);
}

/** An address is never shown whole: its query is left out, and letters are written otherwise in it. */
function formsOf(value: string): string[] {
  const trimmed = value.trim();
  const written = [value, trimmed, JSON.stringify(value).slice(1, -1), encoded(value)];
  if (!/^https?:/i.test(trimmed) || !URL.canParse(trimmed)) return written;
  const { href, origin, host, hostname, pathname, search } = new URL(trimmed);
  return [...written, href, `${origin}${pathname}`, origin, host, hostname, pathname, search];
}

function encoded(value: string): string {
  try {
    return encodeURI(value);
  } catch {
    return value;
  }
}

export function concealedStatus(status: UpstreamStatus, conceal: Conceal): UpstreamStatus {
  const { target, problem } = status;
  return { ...status, target: conceal(target), ...(problem === undefined ? undefined : { problem: conceal(problem) }) };
}

export function redactedUpstream(made: Upstream, conceal: Conceal): Upstream {
  const handler: Upstream = async (request, context) => {
    try {
      return await made(request, context);
    } catch (error) {
      throw concealed(error, conceal);
    }
  };
  if (evaluatesCode(made)) handler[EVALUATES_CODE] = true;
  handler.called = (name) => made.called(name);
  handler.status = () => concealedStatus(made.status(), conceal);
  handler.close = (budgetMs) => made.close(budgetMs);
  return handler;
}

/** With its causes: what of them callers may hear is decided later. */
function concealed(error: unknown, conceal: Conceal): unknown {
  if (!(error instanceof ConnectionError)) return error;
  const { kind, message, mayHaveRun, status, evidence = "", cause } = error;
  const own = evidence !== "" && message.endsWith(evidence) ? message.slice(0, -evidence.length) : message;
  return new ConnectionError(kind, conceal(own), {
    mayHaveRun,
    ...(status === undefined ? undefined : { status }),
    ...(own === message ? undefined : { evidence: conceal(evidence) }),
    ...(cause instanceof ConnectionError ? { cause: concealed(cause, conceal) } : undefined),
  });
}
