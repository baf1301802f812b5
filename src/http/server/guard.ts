// Checks Host and Origin of every request before anything else, and creates the CORS headers. Names can be added, but
// the check cannot be turned off, since it protects local servers from web pages (DNS rebinding). A name must match
// exactly, or be a subdomain of `*.name`. A server that listens on all addresses without allowed names accepts every
// well-formed Host, and still checks Origin. The check does not authenticate the caller.

import { isLoopback, LOOPBACK_NAMES, urlHost } from "../../core/hosts.ts";
import type { ListenOptions } from "./fields.ts";
import { HttpError, type HttpRequest } from "./http-request.ts";

/** `host` is the address we listen on; undefined if another server listens for us. */
export type GuardOptions = Pick<ListenOptions, "host" | "allowedHosts" | "allowedOrigins">;

export interface Guard {
  check(request: HttpRequest): HttpError | undefined;
  /** The CORS headers of the response; empty if there is no Origin or it is not allowed. */
  cors(request: HttpRequest): Readonly<Record<string, string>>;
}

const ALLOWED_ORIGINS = "allowedOrigins (--allow-origin)";

const MAX_REMEMBERED = 512;

export function createGuard(options: GuardOptions = {}): Guard {
  const rules = createHostRules(options.host, options.allowedHosts);
  const listed = new Set(
    stringList(ALLOWED_ORIGINS, options.allowedOrigins, "https://app.example.com").map(parseAllowedOrigin),
  );
  const acceptedHosts = new Set<string>();
  const acceptedOrigins = new Set<string>();

  const allowsOrigin = (origin: string, host: string): boolean => {
    if (listed.has(origin) || acceptedOrigins.has(origin)) return true;
    const url = ORIGIN.test(origin) ? parseUrl(origin) : undefined;
    if (url?.origin !== origin) return false;
    // The result also depends on the Host header, so it is not remembered.
    if (rules.isOpen) return isSameHost(url, host);
    // The subdomains of a pattern may have different owners, so a page of one may not call another.
    if (!rules.isListed(url.host)) return rules.allows(host) && parseUrl(`${url.protocol}//${host}`)?.host === url.host;
    remember(acceptedOrigins, origin);
    return true;
  };

  return {
    check(request) {
      if (request.isAmbiguous) {
        return new HttpError(
          400,
          "A header that may appear only once is repeated, or the request line contradicts the Host header.",
        );
      }
      const { headers } = request;
      const host = headers["host"] ?? "";
      if (!acceptedHosts.has(host)) {
        const error = checkHost(host, rules);
        if (error !== undefined) return error;
        remember(acceptedHosts, host);
      }
      const origin = headers["origin"];
      if (origin === undefined) {
        const site = headers["sec-fetch-site"];
        if (site === undefined || site === "none") return undefined;
        if (site !== "cross-site" && !(rules.isOpen && !isAddress(host))) return undefined;
        return new HttpError(
          403,
          `A browser request without an Origin (Sec-Fetch-Site: ${shorten(site)}) is not allowed.`,
        );
      }
      return allowsOrigin(origin, host) ? undefined : originError(origin);
    },

    cors(request) {
      const origin = request.headers["origin"];
      if (origin === undefined || !allowsOrigin(origin, request.headers["host"] ?? "")) return NO_HEADERS;
      const requested = request.headers["access-control-request-method"];
      const isPreflight = request.method === "OPTIONS" && requested !== undefined;
      return {
        "access-control-allow-origin": origin,
        vary: "Origin",
        ...(isPreflight ? preflight(request.headers["access-control-request-headers"]) : EXPOSED),
      };
    },
  };
}

export const NO_HEADERS: Readonly<Record<string, string>> = {};

const EXPOSED: Readonly<Record<string, string>> = {
  "access-control-expose-headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
};

const ALLOWED_HEADERS =
  "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id";

/** Headers that mirror tool arguments; their names depend on the tool. */
const PARAM_HEADER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/i;

function preflight(requested: string | undefined): Record<string, string> {
  const parameters = (requested ?? "")
    .split(",", 128)
    .map((name) => name.trim())
    .filter((name) => PARAM_HEADER.test(name));
  return {
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-allow-headers": [ALLOWED_HEADERS, ...parameters].join(", "),
    "access-control-max-age": "7200",
  };
}

function checkHost(host: string, rules: HostRules): HttpError | undefined {
  if (host === "") return new HttpError(400, "The Host header is missing.");
  if (parseHost(host) === undefined) return new HttpError(400, "The Host header is not a valid host.");
  if (rules.allows(host)) return undefined;
  return new HttpError(403, `Host "${shorten(host)}" is not allowed. To allow it, add it to ${ALLOWED_HOSTS}.`);
}

function originError(origin: string): HttpError {
  if (origin === "null")
    return new HttpError(403, 'Origin "null" is not allowed, because it does not identify a page.');
  if (!ORIGIN.test(origin)) return new HttpError(403, "The Origin header is not a valid origin.");
  return new HttpError(403, `Origin "${shorten(origin)}" is not allowed. To allow it, add it to ${ALLOWED_ORIGINS}.`);
}

/**
 * When listening on all addresses without allowed names, a page may call the host that it came from. That host must be
 * an IP address or loopback name: the owner of any other name could point it at this machine.
 */
function isSameHost(origin: URL, host: string): boolean {
  const hostUrl = parseUrl(`${origin.protocol}//${host}`);
  if (hostUrl === undefined || !isAddress(host)) return false;
  return hostUrl.host === origin.host || (isLoopback(hostUrl.hostname) && isLoopback(origin.hostname));
}

/** Whether the host is an IP address, or a name that always means this machine. */
function isAddress(host: string): boolean {
  const name = parseHost(host)?.name ?? "";
  return isLoopback(name) || name.startsWith("[") || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name);
}

/** Only a scheme and a host: no user, no path, and nothing else that another parser could mistake for the host. */
const ORIGIN = /^https?:\/\/[a-z0-9._:[\]-]+$/;

function parseAllowedOrigin(entry: string): string {
  // Browser extensions and editors use their own schemes, for which `URL` has no origin.
  const isWeb = /^https?:/i.test(entry);
  const isOrigin = ORIGIN.test(entry) && parseUrl(entry)?.origin === entry;
  const isValid = isWeb ? isOrigin : /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._:-]+$/i.test(entry);
  if (isValid) return entry;
  throw new TypeError(
    `${ALLOWED_ORIGINS}: "${entry}" is not a valid origin; write one such as "https://app.example.com"`,
  );
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}

function remember(accepted: Set<string>, value: string): void {
  if (accepted.size >= MAX_REMEMBERED) accepted.clear();
  accepted.add(value);
}

/** The name of the option in code and on the command line, for messages. */
const ALLOWED_HOSTS = "allowedHosts (--allow-host)";

interface HostParts {
  /** In lower case; an IPv6 address is in brackets. */
  readonly name: string;
  readonly port: string | undefined;
}

interface HostRules {
  /** Whether every well-formed host is allowed, because we listen on all addresses and no names were given. */
  readonly isOpen: boolean;
  /** `host` must be a well-formed Host header. */
  allows(host: string): boolean;
  /** Whether the host is allowed by its own name, not only by a pattern. */
  isListed(host: string): boolean;
}

function createHostRules(bound: string | undefined, allowed: readonly string[] | undefined): HostRules {
  const names = new Set<string>();
  const exact = new Set<string>();
  const suffixes: string[] = [];
  for (const entry of stringList(ALLOWED_HOSTS, allowed, "notes.example.com")) {
    if (entry.startsWith("*")) {
      suffixes.push(parsePattern(entry));
      continue;
    }
    const { name, port } = parseAllowedHost(entry);
    if (port === undefined) names.add(name);
    else exact.add(`${name}:${port}`);
  }
  const boundHost = bound === undefined ? "localhost" : urlHost(bound);
  const isWildcard = WILDCARDS.has(boundHost);
  const isOpen = isWildcard && allowed === undefined;
  if (isWildcard || isLoopback(boundHost)) for (const name of LOOPBACK_NAMES) names.add(name);
  if (!isWildcard) names.add(boundHost);
  const isListed = (host: string): boolean => {
    const parts = parseHost(host);
    if (parts === undefined) return false;
    return names.has(parts.name) || (parts.port !== undefined && exact.has(`${parts.name}:${parts.port}`));
  };
  const allows = (host: string): boolean => {
    if (isOpen || isListed(host)) return true;
    const name = parseHost(host)?.name ?? "";
    return suffixes.some((suffix) => name.length > suffix.length && name.endsWith(suffix));
  };
  return { isOpen, allows, isListed };
}

/** Returns `.name` for `*.name`. The name has two parts or more: `*.app` would allow half of the web. */
function parsePattern(entry: string): string {
  const name = /^\*\.((?:[a-z0-9_-]+\.)+[a-z0-9-]+)$/i.exec(entry)?.[1];
  if (name === undefined || /\.\d+$/.test(name)) {
    throw new TypeError(
      `${ALLOWED_HOSTS}: "${entry}" is not a valid host; a pattern is "*." and a name, such as "*.example.com"`,
    );
  }
  return `.${name.toLowerCase()}`;
}

const WILDCARDS: ReadonlySet<string> = new Set(["", "0.0.0.0", "[::]"]);

const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,253}))(?::([0-9]{1,5}))?$/i;

/** Returns undefined if the host is not well-formed. */
function parseHost(text: string): HostParts | undefined {
  const match = HOST.exec(text);
  if (match === null) return undefined;
  const [, name = "", port] = match;
  if (port !== undefined && Number(port) > 65_535) return undefined;
  return { name: name.toLowerCase(), port };
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Checked at run time, because a string would be iterated character by character. */
function stringList(option: string, list: readonly string[] | undefined, example: string): readonly string[] {
  if (list === undefined) return [];
  if (Array.isArray(list) && list.every((entry) => typeof entry === "string")) return list;
  throw new TypeError(`${option} must be an array of strings, such as ["${example}"]; got ${JSON.stringify(list)}`);
}

function parseAllowedHost(entry: string): HostParts {
  // An IPv6 address without a port may omit the brackets.
  const text = /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*$/i.test(entry) ? `[${entry}]` : entry;
  const match = /^(\[[^\]]+\]|[^:/?#@\s*]+)(?::([0-9]{1,5}))?$/.exec(text);
  const url = match === null ? undefined : parseUrl(`http://${match[1]}`);
  if (match === null || url === undefined || Number(match[2] ?? 0) > 65_535) {
    throw new TypeError(
      `${ALLOWED_HOSTS}: "${entry}" is not a valid host; write a name or an address, with or without ":port"`,
    );
  }
  return { name: url.hostname, port: match[2] };
}
