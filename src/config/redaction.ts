// Hides the values of variables and inputs in what is reported about an upstream: its status, connection errors, stderr
// and stray stdout lines show the reference, such as ${KEY}, instead. Results and errors that the upstream sends
// are not changed.

import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { wrapUpstream, type Upstream } from "../chain/upstream/upstream.ts";
import { ConnectionError } from "../core/errors.ts";
import { hiderOf, redactConnectionError, type Secret } from "../core/secrets.ts";
import { defined } from "../core/values.ts";

type Redact = (text: string) => string;

/** Replaces secrets by their references. */
export function createRedactor(secrets: readonly Secret[]): Redact {
  return hiderOf(withUrlParts(secrets));
}

/** With the parts of those that are URLs, since errors often show only a part. */
export function withUrlParts(secrets: readonly Secret[]): Secret[] {
  return secrets.flatMap(({ value, reference }) =>
    [value, ...partsOf(value)].map((part) => ({ value: part, reference })),
  );
}

/** The parts of a value that is a URL. */
function partsOf(value: string): string[] {
  const text = value.trim();
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return [];
  const { href, origin, host, hostname, pathname, search } = new URL(text);
  return [href, `${origin}${pathname}`, origin, host, hostname, pathname, search];
}

export function redactStatus(status: UpstreamStatus, hide: Redact): UpstreamStatus {
  const { target, problem, reason, hint, unlisted } = status;
  const hideIn = (text: string | undefined): string | undefined => text && hide(text);
  const hidden = {
    problem: hideIn(problem),
    reason: hideIn(reason),
    hint: hideIn(hint),
    unlisted: hideIn(unlisted),
  };
  return { ...status, target: hide(target), ...defined(hidden) };
}

export function redactUpstream(upstream: Upstream, hide: Redact): Upstream {
  const rethrow = (error: unknown): never => {
    throw error instanceof ConnectionError ? redactConnectionError(error, hide) : error;
  };
  return wrapUpstream(upstream, (request, context) => upstream(request, context).catch(rethrow), {
    status: () => redactStatus(upstream.status(), hide),
    start: (principal) => upstream.start(principal).catch(rethrow),
  });
}
