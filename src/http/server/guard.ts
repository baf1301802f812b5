// Who may come in by which name: Host and Origin, checked for every request before anything else is looked at, and
// the one place that says anything about CORS. It can be extended by names, and not switched off. It knows no users:
// that a request passes here proves nothing about who sent it.

import { HttpError, type HttpRequest } from "./http-request.ts";

export interface GuardOptions {
  /** What we are bound to; undefined where somebody else listens for us. */
  readonly host?: string | undefined;
  /** Further names of this server: "name" with any port, "name:port" with that one alone. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Further origins whose pages may call, such as "https://app.example.com". */
  readonly allowedOrigins?: readonly string[] | undefined;
}

export interface Guard {
  /** Undefined: it may come in. */
  check(visit: HttpRequest): HttpError | undefined;
  /** What the answer tells a browser; nothing where no page asks, or one that may not. */
  cors(visit: HttpRequest): Readonly<Record<string, string>>;
}

const ALLOWED_ORIGINS = "allowedOrigins (--allow-origin)";

/** So many values that were found good are remembered. */
const REMEMBERED = 512;

export function createGuard(options: GuardOptions = {}): Guard {
  const rules = createHostRules(options.host, options.allowedHosts);
  const listed = new Set(listOf(ALLOWED_ORIGINS, options.allowedOrigins, "https://app.example.com").map(checkedOrigin));
  const goodHosts = new Set<string>();
  const goodOrigins = new Set<string>();

  const admitsOrigin = (origin: string, host: string): boolean => {
    if (listed.has(origin) || goodOrigins.has(origin)) return true;
    const url = ORIGIN.test(origin) ? parseUrl(origin) : undefined;
    if (url?.origin !== origin) return false;
    // Whether two names are the same server depends on both, so such an answer is not remembered.
    if (rules.isOpen) return isSameHost(url, host);
    if (!rules.admits(url.host)) return false;
    remember(goodOrigins, origin);
    return true;
  };

  return {
    check(visit) {
      if (visit.ambiguous) {
        return new HttpError(400, "A header that must come once came more than once, or two of them contradict.");
      }
      const { headers } = visit;
      const host = headers["host"];
      if (host === undefined || !goodHosts.has(host)) {
        const refusal = checkHost(host, rules);
        if (refusal !== undefined) return refusal;
        remember(goodHosts, host as string);
      }
      const origin = headers["origin"];
      if (origin === undefined) {
        const site = headers["sec-fetch-site"];
        if (site === undefined || site === "none") return undefined;
        if (site !== "cross-site" && !(rules.isOpen && !isAddress(host as string))) return undefined;
        return new HttpError(403, `Sec-Fetch-Site is ${shown(site)} and there is no Origin: such a page may not call.`);
      }
      return admitsOrigin(origin, host as string) ? undefined : refusedOrigin(origin);
    },

    cors(visit) {
      const origin = visit.headers["origin"];
      if (origin === undefined || !admitsOrigin(origin, visit.headers["host"] ?? "")) return NOTHING;
      const requested = visit.headers["access-control-request-method"];
      const isPreflight = visit.method === "OPTIONS" && requested !== undefined;
      return {
        "access-control-allow-origin": origin,
        vary: "Origin",
        ...(isPreflight ? preflight(visit.headers["access-control-request-headers"]) : EXPOSED),
      };
    },
  };
}

const NOTHING: Readonly<Record<string, string>> = {};

const EXPOSED: Readonly<Record<string, string>> = {
  "access-control-expose-headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
};

const ALLOWED_HEADERS =
  "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id";

/** A parameter of a tool that travels as a header: which there are, only the tool knows. */
const PARAMETER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/i;

function preflight(requested: string | undefined): Record<string, string> {
  const parameters = (requested ?? "")
    .split(",", 128)
    .map((name) => name.trim())
    .filter((name) => PARAMETER.test(name));
  return {
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-allow-headers": [ALLOWED_HEADERS, ...parameters].join(", "),
    "access-control-max-age": "7200",
  };
}

function checkHost(host: string | undefined, rules: HostRules): HttpError | undefined {
  if (host === undefined || host === "") return new HttpError(400, "The Host header is missing.");
  if (parseHost(host) === undefined) return new HttpError(400, "The Host header is not a host.");
  if (rules.admits(host)) return undefined;
  const how = `If it is meant to be, add it to ${ALLOWED_HOSTS}.`;
  return new HttpError(403, `Host "${shown(host)}" is not served here. ${how}`);
}

function refusedOrigin(origin: string): HttpError {
  if (origin === "null") return new HttpError(403, 'Origin "null" may not call: such a page cannot be told from others.');
  if (!ORIGIN.test(origin)) return new HttpError(403, "The Origin header is not an origin that may call.");
  const how = `If its pages are meant to, add it to ${ALLOWED_ORIGINS}.`;
  return new HttpError(403, `Origin "${shown(origin)}" may not call. ${how}`);
}

/**
 * On all addresses and with no names given, a page may call the server that it came from, or one beside it at home.
 * But a name can be made to lead here by whoever owns it; only an address cannot.
 */
function isSameHost(origin: URL, host: string): boolean {
  const own = parseUrl(`${origin.protocol}//${host}`);
  if (own === undefined || !isAddress(host)) return false;
  return own.host === origin.host || (isLoopback(own.hostname) && isLoopback(origin.hostname));
}

/** A number, or a name that always means this machine. */
function isAddress(host: string): boolean {
  const name = parseHost(host)?.name ?? "";
  return isLoopback(name) || name.startsWith("[") || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name);
}

/** The text alone: no user, no path, nothing that another reader could take for the host. */
const ORIGIN = /^https?:\/\/[a-z0-9._:[\]-]+$/;

function checkedOrigin(entry: string): string {
  // Pages of extensions and of editors have schemes of their own, which URL knows no origin for.
  const isWeb = /^https?:/i.test(entry);
  const isOrigin = ORIGIN.test(entry) && parseUrl(entry)?.origin === entry;
  const good = isWeb ? isOrigin : /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._:-]+$/i.test(entry);
  if (good) return entry;
  throw new TypeError(`${ALLOWED_ORIGINS}: "${entry}" is no origin; write one such as "https://app.example.com"`);
}

function shown(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}

function remember(good: Set<string>, value: string): void {
  if (good.size >= REMEMBERED) good.clear();
  good.add(value);
}

// Which names a server answers to, found from the address that it is bound to and from what a person has allowed.
// This is what stands between a page in somebody's browser and a server on the same machine (DNS rebinding), so a
// name is admitted by equality alone: no suffixes, no patterns, no other spellings of an address. What a request
// says is compared in guard.ts.

/** The option as programs and as the command line write it, since a person may have done either. */
export const ALLOWED_HOSTS = "allowedHosts (--allow-host)";

/** Names of this machine for itself, as browsers write them. */
const LOOPBACK: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** A host as it stands in a header or an origin: a name or an address, and a port where there is one. */
interface HostParts {
  /** In lower case; an IPv6 address stands in brackets. */
  readonly name: string;
  readonly port: string | undefined;
}

export interface HostRules {
  /** Any well-formed host passes: bound to all addresses, and nobody has said which names those have. */
  readonly isOpen: boolean;
  /** `host` as in a Host header, well-formed. */
  admits(host: string): boolean;
}

export function createHostRules(bound: string | undefined, allowed: readonly string[] | undefined): HostRules {
  const names = new Set<string>();
  const exact = new Set<string>();
  for (const entry of listOf(ALLOWED_HOSTS, allowed, "notes.example.com")) {
    const { name, port } = allowedHost(entry);
    if (port === undefined) names.add(name);
    else exact.add(`${name}:${port}`);
  }
  const own = bound === undefined ? "localhost" : boundName(bound);
  const isWildcard = WILDCARDS.has(own);
  const isOpen = isWildcard && allowed === undefined;
  if (isWildcard || isLoopback(own)) for (const name of LOOPBACK) names.add(name);
  if (!isWildcard) names.add(own);
  return {
    isOpen,
    admits(host) {
      if (isOpen) return true;
      const parts = parseHost(host);
      if (parts === undefined) return false;
      return names.has(parts.name) || (parts.port !== undefined && exact.has(`${parts.name}:${parts.port}`));
    },
  };
}

const WILDCARDS: ReadonlySet<string> = new Set(["", "0.0.0.0", "[::]"]);

const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,253}))(?::([0-9]{1,5}))?$/i;

/** Undefined where it is not well-formed. */
export function parseHost(text: string): HostParts | undefined {
  const match = HOST.exec(text);
  if (match === null) return undefined;
  const [, name = "", port] = match;
  if (port !== undefined && Number(port) > 65_535) return undefined;
  return { name: name.toLowerCase(), port };
}

export function isLoopback(name: string): boolean {
  return LOOPBACK.includes(name) || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** The address that we are bound to, as a caller would write it in a URL. */
export function boundName(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
  if (bare === "") return "";
  const url = parseUrl(`http://${bare.includes(":") ? `[${bare}]` : bare}`);
  return url === undefined ? bare.toLowerCase() : url.hostname;
}

export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** A text would be walked letter by letter; programs without types may give one. */
export function listOf(option: string, given: readonly string[] | undefined, example: string): readonly string[] {
  if (given === undefined) return [];
  if (Array.isArray(given) && given.every((entry) => typeof entry === "string")) return given;
  throw new TypeError(`${option} must be a list of texts, such as ["${example}"]; got ${JSON.stringify(given)}`);
}

function allowedHost(entry: string): HostParts {
  // An IPv6 address may stand without its brackets where no port follows.
  const text = /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*$/i.test(entry) ? `[${entry}]` : entry;
  const match = /^(\[[^\]]+\]|[^:/?#@\s*]+)(?::([0-9]{1,5}))?$/.exec(text);
  const url = match === null ? undefined : parseUrl(`http://${match[1]}`);
  if (match === null || url === undefined || Number(match[2] ?? 0) > 65_535) {
    throw new TypeError(`${ALLOWED_HOSTS}: "${entry}" is no host; write a name or an address, with ":port" or without`);
  }
  return { name: url.hostname, port: match[2] };
}
