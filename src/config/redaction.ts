// Hides the values of variables and inputs in everything an upstream reports about itself: status, errors and stderr
// show the reference, such as ${KEY}, instead. Results of the upstream pass unchanged.

import type { Upstream } from "../chain/upstream/upstream.ts";
import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { ConnectionError } from "../core/errors.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/handler.ts";
import { redact, type Secret } from "./variables.ts";

/** A shorter value is not a secret, and would be found in many words by chance. */
const MIN_LENGTH = 4;

type Redact = (text: string) => string;

export function createRedactor(secrets: readonly Secret[]): Redact {
  const forms = secrets
    .flatMap(({ value, reference }) => formsOf(value).map((form) => ({ value: form, reference })))
    .filter(({ value }) => value.length >= MIN_LENGTH)
    // Longest first: one value may be part of another.
    .toSorted((one, other) => other.value.length - one.value.length);
  return (text) => redact(text, forms);
}

/** The forms in which a value may appear: errors show URLs encoded and without their query. */
function formsOf(value: string): string[] {
  const trimmed = value.trim();
  const forms = [value, trimmed, JSON.stringify(value).slice(1, -1), encoded(value)];
  if (!/^https?:/i.test(trimmed) || !URL.canParse(trimmed)) return forms;
  const { href, origin, host, hostname, pathname, search } = new URL(trimmed);
  return [...forms, href, `${origin}${pathname}`, origin, host, hostname, pathname, search];
}

function encoded(value: string): string {
  try {
    return encodeURI(value);
  } catch {
    return value;
  }
}

export function redactStatus(status: UpstreamStatus, hide: Redact): UpstreamStatus {
  const { target, problem } = status;
  return { ...status, target: hide(target), ...(problem === undefined ? undefined : { problem: hide(problem) }) };
}

export function redactUpstream(upstream: Upstream, hide: Redact): Upstream {
  const handler: Upstream = async (request, context) => {
    try {
      return await upstream(request, context);
    } catch (error) {
      throw redactError(error, hide);
    }
  };
  if (evaluatesCode(upstream)) handler[EVALUATES_CODE] = true;
  handler.called = (name) => upstream.called(name);
  handler.status = () => redactStatus(upstream.status(), hide);
  handler.close = (budgetMs) => upstream.close(budgetMs);
  return handler;
}

/** Includes the causes; what callers may see of them is decided later. */
function redactError(error: unknown, hide: Redact): unknown {
  if (!(error instanceof ConnectionError)) return error;
  const { kind, message, mayHaveRun, status, diagnostics = "", cause } = error;
  const own = diagnostics !== "" && message.endsWith(diagnostics) ? message.slice(0, -diagnostics.length) : message;
  return new ConnectionError(kind, hide(own), {
    mayHaveRun,
    ...(status === undefined ? undefined : { status }),
    ...(own === message ? undefined : { diagnostics: hide(diagnostics) }),
    ...(cause instanceof ConnectionError ? { cause: redactError(cause, hide) } : undefined),
  });
}
