// Where a request may go whose address was told by somebody else. An end that names an address of the machine or the
// network that we stand in would have us ask there in its place (server-side request forgery), so such addresses are
// refused: those that are written out here, those that a name stands for where the name is looked up, and what was
// checked there is what is connected to, so a name cannot mean one thing now and another then. What an address is,
// is ipaddr.js's to say. Addresses that a person gave are none of its business.

import ipaddr from "ipaddr.js";
import { lookup as systemLookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { ConnectionError } from "../../core/errors.ts";
import { onAbort } from "../../core/async.ts";
import { nodeRequester } from "./node-requester.ts";
import { hostOf, type HttpResponse, type OutgoingRequest, type Requester } from "./requester.ts";

export interface NetworkGuardOptions {
  /** The end that a person named, on whose account we ask. */
  readonly target: URL;
  /** Addresses of private networks too. Link-local ones, where clouds keep their secrets, stay refused. */
  readonly allowPrivate?: boolean;
  /** Finds the addresses of a name; the system's own by default. */
  readonly lookup?: AllLookup;
}

/** As `lookup` of node:dns, asked for all addresses. */
export type AllLookup = (
  name: string,
  options: { readonly all: true; readonly family?: number; readonly hints?: number },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface NetworkGuard {
  /** Throws ConnectionError("refused") for a scheme or a written-out address that may not be asked. */
  check(url: URL): void;
  /** For node:http: refuses in the same way what a name stands for. */
  readonly lookup: LookupFunction;
}

/** The option by the name that people give it. */
const OPTION = "allowPrivateNetwork";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Place = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved";

export function networkGuard(options: NetworkGuardOptions): NetworkGuard {
  const { target, allowPrivate = false, lookup: find = systemLookup } = options;
  const isLocal = isLoopbackHost(target.hostname);

  /** Why it is refused; undefined where it is not. */
  const fault = (place: Place): string | undefined => {
    if (place === "public" || (place === "loopback" && isLocal) || (place === "private" && allowPrivate))
      return undefined;
    return REASONS[place];
  };

  const lookup: LookupFunction = (name, wanted, callback) => {
    const { family, hints } = wanted;
    const asked = {
      all: true as const,
      ...(family === undefined ? {} : { family: familyOf(family) }),
      ...(hints === undefined ? {} : { hints }),
    };
    find(name, asked, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) {
        callback(error ?? notFound(name), []);
        return;
      }
      // One bad address among good ones is no accident that should be helped over.
      for (const { address } of addresses) {
        const why = ipaddr.isValid(address) ? fault(placeOf(ipaddr.parse(address))) : REASONS.reserved;
        if (why !== undefined) {
          callback(refusal(`${name}, which is ${address}`, why), []);
          return;
        }
      }
      if (wanted.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };

  const check = (url: URL): void => {
    const { protocol, hostname } = url;
    const address = /^https?:$/.test(protocol) ? `${url.origin}${url.pathname}` : protocol;
    if (url.username !== "" || url.password !== "") throw refusal(address, "a name or a password stands in it");
    if (protocol !== "https:" && !(protocol === "http:" && isLocal && isLoopbackHost(hostname))) {
      const exception = "http is for ends on this machine, and only where the end itself is one";
      throw refusal(address, `it is not https (${exception})`);
    }
    const why = fault(hostPlace(hostname));
    if (why !== undefined) throw refusal(address, why);
  };

  return { check, lookup };
}

const REASONS: Readonly<Record<Exclude<Place, "public">, string>> = {
  loopback: "it is on this machine, and the end that it was named by is not",
  private: `it is in a private network; ${OPTION} allows that`,
  "link-local": "it is a link-local address, which no option allows",
  metadata: "it is where a cloud keeps its secrets, which no option allows",
  reserved: "it is no address of a host in the public network, and no option allows it",
};

function refusal(address: string, why: string): ConnectionError {
  return new ConnectionError("refused", `Not asked: ${address}: ${why}`, { mayHaveRun: false });
}

/** A host as it stands in a URL; names are looked up later, except those that need no looking up. */
function hostPlace(hostname: string): Place {
  const address = literal(hostname);
  if (address !== undefined) return placeOf(address);
  return isLocalName(hostname) ? "loopback" : "public";
}

function isLoopbackHost(hostname: string): boolean {
  return hostPlace(hostname) === "loopback";
}

/** RFC 6761: these never leave the machine. */
function isLocalName(hostname: string): boolean {
  return /(?:^|\.)localhost\.?$/i.test(hostname);
}

/** URL has brought every way of writing an IPv4 address into four decimal numbers. */
function literal(hostname: string): Address | undefined {
  if (hostname.startsWith("[")) return ipaddr.IPv6.parse(hostname.slice(1, -1));
  return ipaddr.IPv4.isValidFourPartDecimal(hostname) ? ipaddr.IPv4.parse(hostname) : undefined;
}

const PRIVATE: ReadonlySet<string> = new Set(["private", "carrierGradeNat", "uniqueLocal", "deprecatedSiteLocal"]);

/** Those that stand outside of the link-local ranges, in which the others are. */
const METADATA: readonly Address[] = [
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
].map((text) => ipaddr.parse(text));

/** All global unicast addresses that there are so far (RFC 4291, 2.4). */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3");

function placeOf(address: Address): Place {
  const inner = address.kind() === "ipv6" ? embedded(address as ipaddr.IPv6) : undefined;
  if (inner !== undefined) return placeOf(inner);
  if (METADATA.some((one) => one.kind() === address.kind() && one.toString() === address.toString())) return "metadata";
  const range: string = address.range();
  if (range === "unicast") return address.kind() === "ipv4" || address.match(GLOBAL) ? "public" : "reserved";
  if (range === "loopback") return "loopback";
  if (range === "linkLocal") return "link-local";
  return PRIVATE.has(range) ? "private" : "reserved";
}

/** Where the bytes of an IPv4 address begin in the IPv6 addresses that stand for one. */
const EMBEDDED: readonly (readonly [network: [ipaddr.IPv6, number], at: number])[] = [
  // Mapped, and the older compatible form (RFC 4291, 2.5.5).
  [ipaddr.IPv6.parseCIDR("::ffff:0:0/96"), 12],
  [ipaddr.IPv6.parseCIDR("::/96"), 12],
  // Translated (RFC 6145), and the well-known prefix of NAT64 (RFC 6052).
  [ipaddr.IPv6.parseCIDR("::ffff:0:0:0/96"), 12],
  [ipaddr.IPv6.parseCIDR("64:ff9b::/96"), 12],
  // 6to4 (RFC 3056). Teredo hides one too, and nobody should be found there: it counts as reserved.
  [ipaddr.IPv6.parseCIDR("2002::/16"), 2],
];

function embedded(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const range = address.range();
  // Both would be compatible forms of something in 0.0.0.0/8.
  if (range === "loopback" || range === "unspecified") return undefined;
  const found = EMBEDDED.find(([network]) => address.match(network));
  return found && new ipaddr.IPv4(address.toByteArray().slice(found[1], found[1] + 4));
}

function familyOf(family: number | "IPv4" | "IPv6"): number {
  if (typeof family === "number") return family;
  return family === "IPv4" ? 4 : 6;
}

function notFound(name: string): Error {
  const error: NodeJS.ErrnoException = new Error(`${name} has no address`);
  error.code = "ENOTFOUND";
  return error;
}

// A `fetch` for addresses that others told us, as libraries want one: small documents, in a short time, from places
// that may be asked at all (network-guard.ts), and no redirect is followed. Not a fetch for everything: bodies are
// texts, both ways, and an answer is whole before it is given.


export interface GuardedFetchOptions extends NetworkGuardOptions {
  /** Sends the requests in the place of node:http. Then names are looked up by it, and only what is written out is checked. */
  readonly requester?: Requester;
  /** For a request and the whole of its answer. */
  readonly totalMs?: number;
}

/** Whatever `redirect` says, none is followed. */
export type GuardedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MOST_BYTES = 1024 * 1024;
const TOTAL_MS = 10_000;
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "DELETE"]);
/** No answer of these can have a body. */
const BARE: ReadonlySet<number> = new Set([204, 205, 304]);

/** It rejects with a ConnectionError, and with nothing else. */
export function guardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { totalMs = TOTAL_MS } = options;
  const guard = networkGuard(options);
  const requester = options.requester ?? nodeRequester({ lookup: guard.lookup });
  return async (address, init = {}) => {
    const url = urlOf(address);
    guard.check(url);
    const given = init.signal ?? undefined;
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(tooSlow(url, totalMs)), totalMs);
    const free = onAbort(given, () => ending.abort(given?.reason));
    if (given?.aborted === true) ending.abort(given.reason);
    try {
      const answer = await requester({ ...requestOf(url, init), signal: ending.signal });
      return responseOf(url, answer, await answer.text(MOST_BYTES));
    } finally {
      clearTimeout(timer);
      free();
    }
  };
}

function urlOf(address: string | URL): URL {
  if (URL.canParse(String(address))) return new URL(address);
  throw new ConnectionError("refused", "Not asked: what was named as an address is none", { mayHaveRun: false });
}

function requestOf(url: URL, init: RequestInit): OutgoingRequest {
  const method = (init.method ?? "GET").toUpperCase();
  if (!METHODS.has(method))
    throw new ConnectionError("http", `${method} is not sent to ${hostOf(url)}`, { mayHaveRun: false });
  const given = init.headers ?? {};
  const headers: Record<string, string> = {};
  // Not by way of Headers, whose errors tell the value: node:http names the header and no more.
  const entries = Symbol.iterator in given ? given : Object.entries(given);
  for (const [name, value] of entries as Iterable<[string, string]>) headers[name.toLowerCase()] = value;
  const about = { method: method as OutgoingRequest["method"], url, headers };
  const { body } = init;
  if (body === undefined || body === null) return about;
  const isForm = body instanceof URLSearchParams;
  if (!isForm && typeof body !== "string") {
    throw new ConnectionError("http", `Only texts and forms are sent to ${hostOf(url)}`, { mayHaveRun: false });
  }
  headers["content-type"] ??= `${isForm ? "application/x-www-form-urlencoded" : "text/plain"};charset=UTF-8`;
  return { ...about, body: body.toString() };
}

function responseOf(url: URL, answer: HttpResponse, text: string): Response {
  const { status, headers } = answer;
  if (status < 200 || status > 599) {
    throw new ConnectionError("http", `The end at ${hostOf(url)} answers with status ${status}, which means nothing`);
  }
  // As bytes: a text would be given a type that the end has not named.
  return new Response(BARE.has(status) ? null : Buffer.from(text), { status, headers });
}

function tooSlow(url: URL, ms: number): ConnectionError {
  return new ConnectionError("timeout", `The end at ${hostOf(url)} did not answer within ${ms} ms`);
}
