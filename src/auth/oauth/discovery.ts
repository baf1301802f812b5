// Which authorization server gives tokens for an end, and what the end is called there (specification:
// basic/authorization/authorization-server-discovery): the end's metadata names both. An end that has none is taken
// for one of the first revision with authorization, whose server is the end's own origin. That the metadata speaks of
// this end and of no other is held here: whoever could say otherwise would get tokens meant for another.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import type { Told } from "./challenges.ts";
import { plain, reasonOf, unauthorized } from "./failures.ts";
import { sameIssuer } from "./issuer-bond.ts";
import type { Reach } from "./reach.ts";
import { hasHidden, isTexts, plainServer, search, type Search, serverMetadata } from "./server-metadata.ts";

export interface Found {
  readonly server: oauth.AuthorizationServer;
  /** What the end is called in requests for tokens. */
  readonly resource: string;
  /** Scopes that the end lists. */
  readonly scopes?: readonly string[];
  /** The end takes only tokens that are bound to a key. */
  readonly bound: boolean;
  /** The server has no metadata. */
  readonly plain: boolean;
}

export interface Discovery {
  readonly end: URL;
  readonly told: Told;
  readonly reach: Reach;
  readonly signal: AbortSignal;
  /** The server that was used before: of several it stays the one. */
  readonly before?: string | undefined;
  /** The only server that will do. */
  readonly only?: string | undefined;
  /** Why a server will not do, as the end of a sentence. */
  readonly fits?: ((server: oauth.AuthorizationServer) => string | undefined) | undefined;
}

/** Of those that an end lists; nobody has as many. */
const MOST_SERVERS = 8;
const LONGEST_ISSUER = 2_048;

export async function discover(discovery: Discovery): Promise<Found> {
  const { end } = discovery;
  const { found: metadata, reasons, absent } = await resourceMetadata(discovery);
  if (metadata === undefined && !absent) {
    throw unauthorized(`How to get a token for ${nameOf(end)} cannot be found out: ${reasons.join("; ")}`);
  }
  const listed = metadata?.authorization_servers?.slice(0, MOST_SERVERS) ?? [];
  const { server, plain: isPlain } =
    listed.length === 0 ? await ownServer(discovery, reasons) : await listedServer(discovery, listed);
  return {
    server,
    resource: metadata?.resource ?? nameOf(end),
    bound: metadata?.dpop_bound_access_tokens_required === true,
    plain: isPlain,
    ...(metadata?.scopes_supported === undefined ? undefined : { scopes: metadata.scopes_supported }),
  };
}

async function resourceMetadata({ end, told, reach, signal }: Discovery): Promise<Search<oauth.ResourceServer>> {
  const path = new URL(`/.well-known/oauth-protected-resource${end.pathname.replace(/^\/$/, "")}${end.search}`, end);
  const root = new URL("/.well-known/oauth-protected-resource", end);
  const named = told.metadata !== undefined && URL.canParse(told.metadata) ? [new URL(told.metadata)] : [];
  // Behind proxies ends often name an address that only they can reach; their own is then still worth asking.
  const places = [...named, path, root].filter(
    (place, index, all) => all.findIndex(({ href }) => href === place.href) === index,
  );
  return search(places, reach, signal, (response) => readMetadata(end, response));
}

async function readMetadata(end: URL, response: Response): Promise<oauth.ResourceServer> {
  const document = (await response.clone().json()) as { resource?: unknown } | null;
  const resource = document?.resource;
  if (typeof resource !== "string") throw new TypeError("it names no resource");
  if (!covers(resource, end)) {
    const why = "a token for it would be meant for somebody else; check the address, or the end's configuration";
    throw unauthorized(`The metadata of ${nameOf(end)} is that of another resource (${plain(resource)}): ${why}`);
  }
  const metadata = await oauth.processResourceDiscoveryResponse(new URL(resource), response);
  const { authorization_servers: servers, scopes_supported: scopes } = metadata;
  if (!isTexts(servers) || !isTexts(scopes)) throw new TypeError("its lists are no lists of texts");
  return metadata;
}

/** A resource is an end itself, or what it stands under. */
export function covers(resource: string, end: URL): boolean {
  if (!URL.canParse(resource) || hasHidden(resource)) return false;
  const { origin, pathname, search: query, hash } = new URL(resource);
  if (origin !== end.origin || origin === "null" || hash !== "") return false;
  if (query !== "" && query !== end.search) return false;
  const path = pathname.replace(/\/$/, "");
  return end.pathname === path || end.pathname.startsWith(`${path}/`);
}

/** The canonical form has no slash at its end where that says nothing. */
function nameOf(end: URL): string {
  return `${end.origin}${end.pathname === "/" ? "" : end.pathname}`;
}

interface Chosen {
  readonly server: oauth.AuthorizationServer;
  readonly plain: boolean;
}

async function listedServer(discovery: Discovery, listed: readonly string[]): Promise<Chosen> {
  const { end, reach, signal, before } = discovery;
  const reasons: string[] = [];
  const isBefore = (issuer: string): number => Number(before !== undefined && sameIssuer(issuer, before));
  const inOrder = listed.toSorted((one, other) => isBefore(other) - isBefore(one));
  for (const issuer of inOrder) {
    try {
      const server = await serverFor(issuer, reach, signal);
      const misfit = misfitOf(server, discovery);
      if (misfit === undefined) return { server, plain: false };
      reasons.push(`${server.issuer}: ${misfit}`);
    } catch (error) {
      if (signal.aborted) throw error;
      reasons.push(error instanceof ConnectionError ? error.message : `${plain(issuer)}: ${reasonOf(error)}`);
    }
  }
  throw unauthorized(`No authorization server of ${nameOf(end)} can be used: ${reasons.join("; ")}`);
}

async function serverFor(issuer: string, reach: Reach, signal?: AbortSignal): Promise<oauth.AuthorizationServer> {
  if (!URL.canParse(issuer) || issuer.length > LONGEST_ISSUER) throw new TypeError("it is no address");
  const { found, reasons } = await serverMetadata(new URL(issuer), reach, signal);
  if (found === undefined) throw unauthorized(`it has no metadata (${reasons.join("; ")})`);
  return found;
}

async function ownServer(discovery: Discovery, before: readonly string[]): Promise<Chosen> {
  const { end, reach, signal } = discovery;
  const { found, reasons, absent } = await serverMetadata(new URL(end.origin), reach, signal);
  const tried = [...before, ...reasons].join("; ");
  if (found === undefined && !absent) throw unauthorized(`No token can be had for ${nameOf(end)}: ${tried}`);
  const server = found ?? plainServer(end.origin);
  const misfit = misfitOf(server, discovery);
  if (misfit === undefined) return { server, plain: found === undefined };
  throw unauthorized(`${server.issuer} cannot be used for ${nameOf(end)}: ${misfit}`);
}

function misfitOf(server: oauth.AuthorizationServer, { only, fits }: Discovery): string | undefined {
  if (only === undefined || sameIssuer(server.issuer, only)) return fits?.(server);
  return `the client is registered with ${only}, and its credentials are for nobody else`;
}

/** A server that tokens came from before, looked up again. */
export async function knownServer(issuer: string, isPlain: boolean, reach: Reach): Promise<oauth.AuthorizationServer> {
  return isPlain ? plainServer(new URL(issuer).origin) : serverFor(issuer, reach);
}
