// Hides the values of variables and inputs in what is reported about an upstream: its status, connection errors, stderr
// and stray stdout lines show the reference, such as ${KEY}, instead. Results and errors that the upstream sends
// are not changed.

import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { wrapUpstream, type Upstream } from "../chain/upstream/upstream.ts";
import { ConnectionError } from "../core/errors.ts";
import { defined } from "../core/values.ts";
import { redactConnectionError } from "../protocol/errors.ts";

/** A value that must not be shown, and the reference to show in its place. */
export interface Secret {
  readonly value: string;
  readonly reference: string;
}

/** Replaces secrets in a message that may quote them. */
export function redact(message: string, secrets: readonly Secret[]): string {
  return secrets
    .filter(({ value }) => value !== "")
    .reduce((shown, { value, reference }) => shown.replaceAll(value, () => reference), message);
}

/** A shorter value is hardly a secret, and would occur in many words by chance. */
const MIN_LENGTH = 4;

type Redact = (text: string) => string;

export function createRedactor(secrets: readonly Secret[]): Redact {
  // By the form, since many strings may refer to one variable.
  const byForm = new Map<string, Secret>();
  for (const { value, reference } of new Map(secrets.map((secret) => [secret.value, secret])).values()) {
    for (const form of formsOf(value)) {
      if (form.length >= MIN_LENGTH && !byForm.has(form)) byForm.set(form, { value: form, reference });
    }
  }
  // Longest first: one value may be part of another.
  const forms = [...byForm.values()].toSorted((one, other) => other.value.length - one.value.length);
  return (text) => redact(text, forms);
}

/** The forms in which a value may appear. For example, errors show URLs encoded and without their query. */
function formsOf(value: string): string[] {
  const trimmed = value.trim();
  // Half a surrogate pair cannot be encoded; a Buffer replaces it.
  const text = Buffer.from(value).toString();
  // A URL has rules of its own for what it encodes, other ones in its path than in its query.
  const url = new URL("http://host");
  url.pathname = text;
  url.search = text;
  const encoded = [encodeURI(text), encodeURIComponent(text), url.pathname.slice(1), url.search.slice(1)];
  const forms = [value, trimmed, JSON.stringify(value).slice(1, -1), ...encoded];
  if (!/^https?:/i.test(trimmed) || !URL.canParse(trimmed)) return forms;
  const { href, origin, host, hostname, pathname, search } = new URL(trimmed);
  return [...forms, href, `${origin}${pathname}`, origin, host, hostname, pathname, search];
}

export function redactStatus(status: UpstreamStatus, hide: Redact): UpstreamStatus {
  const { target, problem, reason, unlisted } = status;
  const hideIn = (text: string | undefined): string | undefined => text && hide(text);
  const hidden = { problem: hideIn(problem), reason: hideIn(reason), unlisted: hideIn(unlisted) };
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
