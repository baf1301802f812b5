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
