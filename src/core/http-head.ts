// The heads of HTTP requests and responses as people may see them: without queries and secrets. They are made when they
// are first read, since most are dropped unread. Apart from secret-headers.ts, which every server over HTTP needs.

import type { HttpHead, RawHead } from "./handler.ts";

type Headers = Readonly<Record<string, string>>;

const HIDDEN = "[redacted]";
/** By name. Those that we do not know may have any name, so what looks like one is hidden too. */
const SECRET = /auth|cookie|token|secret|passw|passphrase|credential|session|signature|dpop|api.?key|(?:^|[-_])key$/i;
const SESSION_ID = "mcp-session-id";
/** So many characters of a session id are shown, if it is at least twice as long: enough to tell two sessions apart. */
const SHOWN_OF_ID = 8;
/** They say how to authenticate, and their names look like those of secrets. */
const HARMLESS: ReadonlySet<string> = new Set(["www-authenticate", "proxy-authenticate", "sec-websocket-key"]);

const REASONS: Readonly<Record<number, string>> = {
  ...{ 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 301: "Moved Permanently", 302: "Found" },
  ...{ 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized" },
  ...{ 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout" },
  ...{ 409: "Conflict", 413: "Content Too Large", 415: "Unsupported Media Type", 429: "Too Many Requests" },
  ...{ 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable" },
  504: "Gateway Timeout",
};

/** A head that is made when it is read. */
class LazyHead implements HttpHead {
  readonly line: string;
  readonly #received: Headers;
  readonly #isShown: ((name: string) => boolean) | undefined;
  #headers: Headers | undefined;

  constructor({ line, headers, isShown }: RawHead) {
    this.line = typeof line === "string" ? line : statusLine(line);
    this.#received = headers;
    this.#isShown = isShown;
  }

  get headers(): Headers {
    return (this.#headers ??= Object.fromEntries(
      Object.entries(this.#received).map(([name, value]) => {
        const lowerName = name.toLowerCase();
        return [lowerName, this.#isShown?.(lowerName) === false ? HIDDEN : shownValue(lowerName, value)];
      }),
    ));
  }

  get text(): string {
    return `{"line":${JSON.stringify(this.line)},"headers":{${this.#fields()}}}`;
  }

  toJSON(): HttpHead {
    return { line: this.line, headers: this.headers };
  }

  #fields(): string {
    let fields = "";
    const received = this.#received;
    for (const name in received) {
      const value = received[name] ?? "";
      if (fields !== "") fields += ",";
      fields += this.#isShown?.(name.toLowerCase()) === false ? hiddenField(name) : fieldOf(name, value);
    }
    return fields;
  }
}

/** The head as JSON. */
export function headText(head: HttpHead): string {
  return head instanceof LazyHead ? head.text : JSON.stringify(head);
}

const MAX_FIELDS = 200;
const MAX_FIELD_LENGTH = 1_000;
/** The last value of each header, and the header as it is shown: most are those of the request before. */
const lastFields = new Map<string, { readonly value: string; readonly field: string }>();

function fieldOf(name: string, value: string): string {
  const last = lastFields.get(name);
  if (last?.value === value) return last.field;
  const lowerName = name.toLowerCase();
  const field = `${JSON.stringify(lowerName)}:${JSON.stringify(shownValue(lowerName, value))}`;
  if (value.length > MAX_FIELD_LENGTH) return field;
  if (last === undefined && lastFields.size >= MAX_FIELDS) lastFields.clear();
  lastFields.set(name, { value, field });
  return field;
}

function hiddenField(name: string): string {
  return `${JSON.stringify(name.toLowerCase())}:"${HIDDEN}"`;
}

export function shownHead(head: RawHead): HttpHead {
  return new LazyHead(head);
}

function statusLine(status: number): string {
  const reason = REASONS[status];
  return reason === undefined ? String(status) : `${status} ${reason}`;
}

function shownValue(name: string, value: string): string {
  if (name === SESSION_ID && value.length >= 2 * SHOWN_OF_ID) return `${value.slice(0, SHOWN_OF_ID)}...`;
  if (HARMLESS.has(name) || !SECRET.test(name)) return value;
  // The scheme, such as Bearer, is none.
  const [, scheme] = /^([A-Za-z]{2,20}) \S/.exec(name.endsWith("authorization") ? value : "") ?? [];
  return scheme === undefined ? HIDDEN : `${scheme} ${HIDDEN}`;
}
