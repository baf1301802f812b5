// The one place that hides secrets in what is shown: by their value, by the name of their field or header, in URLs and in
// errors. What a secret looks like, and JSON with secrets in it, is in redactor.ts.

import { Buffer } from "node:buffer";
import { ConnectionError } from "./errors.ts";

/** A value that must not be shown, and what to show in its place. */
export interface Secret {
  readonly value: string;
  readonly reference: string;
}

/** Shorter strings occur in any text by chance. */
export const MIN_SECRET_LENGTH = 4;

/**
 * Returns a function that replaces secrets in a text, in every form in which they may be quoted. A secret without a
 * reference becomes `...`. What is shorter than `minLength` stays.
 */
export function hiderOf(
  secrets: Iterable<string | Secret>,
  minLength: number = MIN_SECRET_LENGTH,
): (text: string) => string {
  const references = new Map<string, string>();
  // The last reference of a value counts. Many strings of a config may refer to one variable.
  const byValue = new Map<string, string>();
  for (const secret of secrets) {
    if (typeof secret === "string") byValue.set(secret, "...");
    else byValue.set(secret.value, secret.reference);
  }
  for (const [value, reference] of byValue) {
    for (const form of formsOf(value)) {
      if (form.length >= minLength && !references.has(form)) references.set(form, reference);
    }
  }
  // Longest first: one value may be part of another.
  const forms = [...references].toSorted(([one], [other]) => other.length - one.length);
  return (text) =>
    forms.reduce((hidden, [form, ref]) => (hidden.includes(form) ? hidden.replaceAll(form, () => ref) : hidden), text);
}

/** The forms in which a text may quote a value: as it is, in JSON, and encoded for a URL. */
function formsOf(value: string): string[] {
  // Half a surrogate pair cannot be encoded; a Buffer replaces it.
  const text = Buffer.from(value).toString();
  // A URL has rules of its own for what it encodes, other ones in its path than in its query.
  const url = new URL("http://host");
  url.pathname = text;
  url.search = text;
  const inPath = text.startsWith("/") ? url.pathname : url.pathname.slice(1);
  const inQuery = text.startsWith("?") ? url.search : url.search.slice(1);
  const component = encodeURIComponent(text);
  const encoded = [encodeURI(text), component, component.replaceAll("%20", "+"), inPath, inQuery];
  return [value, value.trim(), JSON.stringify(value).slice(1, -1), ...encoded];
}

/** The value and its words, since `Bearer ...` may be quoted without its first word. */
export function withWords(value: string): string[] {
  return [value, ...value.split(/\s+/)];
}

const SECRET_NAME = /passw|passphrase|secret|token|api.?key|private.?key|_key$|credential|authorization|cookie/i;
const PROGRESS_TOKEN = "progressToken";

/** Whether the field has the name of a secret. A number under `max_tokens` is none. */
export function isSecretField(name: string, value: unknown): boolean {
  if (!SECRET_NAME.test(name) || name === PROGRESS_TOKEN) return false;
  return typeof value !== "number" || !/tokens/i.test(name);
}

/** A URI without its query and the user info before an @. */
export function withoutQuery(uri: string): string {
  return uri.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}

/** A URL, which need not be valid, without its user info, its path and its query. */
export function withoutPath(url: string): string {
  return url
    .replace(/[?#].*$/s, "")
    .replace(/^([^/]*\/\/)?.*@/s, "$1...@")
    .replace(/^([^/]*\/\/[^/]*\/).+$/s, "$1...");
}

/**
 * Hides the paths and queries of URLs of this origin in a message, since many servers have a key in them. The well-known
 * part of a path stays, since it is not secret.
 */
export function hidePaths(text: string, { origin }: URL): string {
  const parts = text.split(`${origin}/`);
  const first = parts.shift() ?? "";
  return parts.reduce((hidden, part) => {
    const [path = ""] = /^[^\s"'`()<>]*/.exec(part) ?? [];
    const [known = ""] = /^\.well-known\/[\w-]+/.exec(path) ?? [];
    const [end = ""] = /(?<![.,:;!?])[.,:;!?]*$/.exec(path.slice(known.length)) ?? [];
    return `${hidden}${origin}${known && `/${known}`}${end}${part.slice(path.length)}`;
  }, first);
}

/**
 * A copy in which `hide` has replaced what is secret; the output of a program stays apart. A cause that is not a
 * ConnectionError is dropped, since it may contain a secret.
 */
export function redactConnectionError(
  error: ConnectionError,
  hide: (text: string) => string,
  mayHaveRun: boolean = error.mayHaveRun,
): ConnectionError {
  const { kind, problem, subject, status, hint, diagnostics = "", cause } = error;
  return new ConnectionError(kind, hide(problem), {
    mayHaveRun,
    status,
    subject: subject && hide(subject),
    hint: hint && { ...hint, text: hide(hint.text) },
    ...(diagnostics !== "" && { diagnostics: hide(diagnostics) }),
    ...(cause instanceof ConnectionError && { cause: redactConnectionError(cause, hide) }),
  });
}
