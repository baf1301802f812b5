// Prevents server-side request forgery through URLs that a server gave us. Loopback, private, link-local and metadata
// addresses are refused, both in URLs and as results of DNS lookups, and the connection uses the address that was
// checked. Also provides a guarded `fetch` for small documents. URLs given by the user are not restricted.

import ipaddr from "ipaddr.js";
import { lookup as systemLookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { ConnectionError, refused } from "../../core/errors.ts";
import { forwardAbort } from "../../core/async.ts";
import { meansLoopback, withoutBrackets } from "../../core/hosts.ts";
import { defined } from "../../core/values.ts";
import { nodeRequester } from "./node-requester.ts";
import type { HttpResponse, ClientHttpRequest, Requester } from "./requester.ts";
import { hostOf } from "./requester-errors.ts";

export interface NetworkGuardOptions {
  readonly target: URL;
  /** Also allows private networks. Link-local addresses, where clouds serve credentials, stay refused. */
  readonly allowPrivate?: boolean;
  /** Resolves a host name. Default: the resolver of the system. */
  readonly lookup?: AllLookup;
}

/** `lookup` of node:dns with `all: true`. */
export type AllLookup = (
  name: string,
  options: { readonly all: true; readonly family?: number; readonly hints?: number },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface NetworkGuard {
  /** Throws ConnectionError("refused") if the URL contains credentials, or a scheme or address that is not allowed. */
  check(url: URL): void;
  /** For node:http: resolves a name, and refuses it if an address it resolves to is not allowed. */
  readonly lookup: LookupFunction;
}

/** The name that `allowPrivate` has in the public options, for messages. */
const OPTION = "allowPrivateNetwork";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type AddressKind = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved";

export function networkGuard(options: NetworkGuardOptions): NetworkGuard {
  const { target, allowPrivate = false, lookup: find = systemLookup } = options;
  const isLocal = meansLoopback(target.hostname);

  /** Returns undefined if the address is allowed. */
  const refusalReason = (kind: AddressKind): string | undefined => {
    if (kind === "public" || (kind === "loopback" && isLocal) || (kind === "private" && allowPrivate)) return undefined;
    return REASONS[kind];
  };

  const lookup: LookupFunction = (name, options, callback) => {
    const { hints } = options;
    const family = typeof options.family === "string" ? FAMILIES[options.family] : options.family;
    find(name, { all: true, ...defined({ family, hints }) }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) {
        callback(error ?? notFound(name), []);
        return;
      }
      // One forbidden address refuses the whole name: mixed results are a sign of DNS rebinding.
      for (const { address } of addresses) {
        const why = ipaddr.isValid(address) ? refusalReason(kindOf(ipaddr.parse(address))) : REASONS.reserved;
        if (why !== undefined) {
          callback(refusedError(`${name} (${address})`, why), []);
          return;
        }
      }
      if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };

  const check = (url: URL): void => {
    const { protocol, hostname } = url;
    const address = /^https?:$/.test(protocol) ? url.origin : protocol;
    if (url.username !== "" || url.password !== "") throw refusedError(address, "it contains credentials");
    if (protocol !== "https:" && !(protocol === "http:" && isLocal && meansLoopback(hostname))) {
      throw refusedError(address, "it is not https (http is only allowed between servers on this machine)");
    }
    const why = refusalReason(kindOfHost(hostname));
    if (why !== undefined) throw refusedError(address, why);
  };

  return { check, lookup };
}

const REASONS: Readonly<Record<Exclude<AddressKind, "public">, string>> = {
  loopback: "it is a loopback address, and the server that named it is not local",
  private: `it is a private address; set ${OPTION} to allow it`,
  "link-local": "it is a link-local address, which is never allowed",
  metadata: "it is a cloud metadata address, which is never allowed",
  reserved: "it is a reserved address, which is never allowed",
};

function refusedError(address: string, why: string): ConnectionError {
  return refused(`Refused to connect to ${address}: ${why}`);
}

/** Classifies the host of a URL. A name counts as public and is checked at lookup, unless it means this machine. */
function kindOfHost(hostname: string): AddressKind {
  const address = literal(hostname);
  if (address !== undefined) return kindOf(address);
  return meansLoopback(hostname) ? "loopback" : "public";
}

/** The address, if the host is not a name. `URL` has normalized any spelling of IPv4 to four decimal numbers. */
function literal(hostname: string): Address | undefined {
  if (hostname.startsWith("[")) return ipaddr.IPv6.parse(withoutBrackets(hostname));
  return ipaddr.IPv4.isValidFourPartDecimal(hostname) ? ipaddr.IPv4.parse(hostname) : undefined;
}

const PRIVATE: ReadonlySet<string> = new Set(["private", "carrierGradeNat", "uniqueLocal", "deprecatedSiteLocal"]);

/** Metadata addresses outside the link-local ranges. */
const METADATA: readonly Address[] = [
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
].map((text) => ipaddr.parse(text));

/** All global unicast addresses assigned so far (RFC 4291, 2.4). */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3");

function kindOf(address: Address): AddressKind {
  const inner = address instanceof ipaddr.IPv6 ? embedded(address) : undefined;
  if (inner !== undefined) return kindOf(inner);
  if (METADATA.some((known) => known.kind() === address.kind() && known.toString() === address.toString()))
    return "metadata";
  const range: string = address.range();
  if (range === "unicast") return address.kind() === "ipv4" || address.match(GLOBAL) ? "public" : "reserved";
  if (range === "loopback") return "loopback";
  if (range === "linkLocal") return "link-local";
  return PRIVATE.has(range) ? "private" : "reserved";
}

/**
 * IPv6 ranges that embed an IPv4 address, and the offset of its bytes: mapped (RFC 4291, 2.5.5), translated (RFC 6145),
 * the well-known prefix of NAT64 (RFC 6052), and 6to4 (RFC 3056). Teredo embeds one too, but counts as reserved.
 */
const EMBEDDED: Readonly<Record<string, number>> = { ipv4Mapped: 12, rfc6145: 12, rfc6052: 12, "6to4": 2 };
/** The older form of mapped addresses. ipaddr.js has no name for it, and counts its addresses as unicast. */
const COMPATIBLE = ipaddr.IPv6.parseCIDR("::/96");

function embedded(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const range: string = address.range();
  const at = range === "unicast" && address.match(COMPATIBLE) ? 12 : EMBEDDED[range];
  return at === undefined ? undefined : new ipaddr.IPv4(address.toByteArray().slice(at, at + 4));
}

const FAMILIES = { IPv4: 4, IPv6: 6 } as const;

function notFound(name: string): Error {
  const error: NodeJS.ErrnoException = new Error(`${name} has no address`);
  error.code = "ENOTFOUND";
  return error;
}

export interface GuardedFetchOptions extends NetworkGuardOptions {
  /** Replaces node:http. Since it resolves names itself, only literal addresses are checked then. */
  readonly requester?: Requester;
  /** Timeout for a request and its whole response. */
  readonly totalMs?: number;
}

/** Never follows redirects. Sends only strings and forms, and reads the whole response before it resolves. */
export type GuardedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MAX_BYTES = 1024 * 1024;
const TOTAL_TIMEOUT_MS = 10_000;
const METHODS = ["GET", "POST", "DELETE"] as const;
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Rejects with ConnectionErrors only. */
export function guardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { totalMs = TOTAL_TIMEOUT_MS } = options;
  const guard = networkGuard(options);
  const requester = options.requester ?? nodeRequester({ lookup: guard.lookup });
  return async (address, init = {}) => {
    const url = parseUrl(address);
    guard.check(url);
    const stop = forwardAbort(init.signal ?? new AbortController().signal);
    const late = `The server at ${hostOf(url)} did not respond within ${totalMs} ms`;
    const timer = setTimeout(() => stop.abort(new ConnectionError("timeout", late)), totalMs);
    try {
      const response = await requester({ ...toRequest(url, init), signal: stop.signal });
      return toResponse(url, response, await response.text(MAX_BYTES));
    } finally {
      clearTimeout(timer);
      stop.forget();
    }
  };
}

function parseUrl(address: string | URL): URL {
  if (URL.canParse(String(address))) return new URL(address);
  throw refused("Refused to connect: the address is not a valid URL");
}

function toRequest(url: URL, init: RequestInit): ClientHttpRequest {
  const methodName = (init.method ?? "GET").toUpperCase();
  const method = METHODS.find((known) => known === methodName);
  if (method === undefined) throw unsendable(`The method ${methodName} is not supported for ${hostOf(url)}`);
  const initHeaders = init.headers ?? {};
  const headers: Record<string, string> = {};
  // `Headers` is not used, because its errors quote the value of a header; those of node:http only name the header.
  const entries = Symbol.iterator in initHeaders ? initHeaders : Object.entries(initHeaders);
  for (const [name, value] of entries) {
    headers[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ");
  }
  const request = { method, url, headers };
  const { body } = init;
  if (body === undefined || body === null) return request;
  const isForm = body instanceof URLSearchParams;
  if (!isForm && typeof body !== "string") throw unsendable(`Only strings and forms can be sent to ${hostOf(url)}`);
  headers["content-type"] ??= `${isForm ? "application/x-www-form-urlencoded" : "text/plain"};charset=UTF-8`;
  return { ...request, body: body.toString() };
}

function unsendable(message: string): ConnectionError {
  return new ConnectionError("http", message, { mayHaveRun: false });
}

function toResponse(url: URL, response: HttpResponse, text: string): Response {
  const { status, headers } = response;
  if (status < 200 || status > 599) {
    throw new ConnectionError("http", `The server at ${hostOf(url)} responded with the invalid status ${status}`);
  }
  // Passed as bytes, because Response adds a content type to a string.
  return new Response(NO_BODY.has(status) ? null : Buffer.from(text), { status, headers });
}
