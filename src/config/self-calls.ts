// Finds entries that lead back to the gateway of their own config: it would call or start itself without end. Also used
// by the set-up commands, which must not write such entries, and by the commands that serve, which know their address.

import { realpathSync } from "node:fs";
import { basename, resolve } from "node:path";
import { meansLoopback, urlHost } from "../core/hosts.ts";
import { isObject } from "../core/values.ts";
import { LISTEN_DEFAULTS } from "../http/server/defaults.ts";
import type { Problem } from "./document.ts";
import type { Cursor } from "./readers.ts";
import type { UpstreamEntry } from "./upstreams.ts";

/** Where a gateway listens. */
export interface Address {
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default: 3000. */
  readonly port?: number | undefined;
}

/** Whether an entry of a client starts us. With `run -- COMMAND`, it starts another server. */
export function isOwnEntry(entry: unknown): boolean {
  const words = ownArguments(entry);
  return words !== undefined && !(words[0] === "run" && words.includes("--"));
}

/** The arguments that the command of an entry gives to us; undefined if it starts another program. */
function ownArguments(entry: unknown): string[] | undefined {
  const words = wordsOf(entry);
  const isOwn = (word: string): boolean => basename(word) === "catenary" || /[/\\]cli[/\\]main\.js$/.test(word);
  const isOfNpx = basename(words[0] ?? "") === "npx" && words.includes("catenary");
  const at = isOfNpx ? words.indexOf("catenary") : words.slice(0, 2).findIndex(isOwn);
  return at === -1 ? undefined : words.slice(at + 1);
}

function wordsOf(entry: unknown): string[] {
  if (!isObject(entry)) return [];
  const { command, args } = entry;
  return [command, args].flat().filter((word) => typeof word === "string");
}

/** Options of `up` and `serve` whose value is another argument, and not a config. */
const VALUE_OPTIONS = new Set(["--http", "--path", "--allow-host", "--allow-origin", "--log-format", "--trace"]);

/** Whether the command of an entry serves this config: `catenary serve FILE` or `catenary up FILE`. */
function servesConfig(entry: { readonly cwd?: unknown }, config: string): boolean {
  const words = ownArguments(entry) ?? [];
  const at = words.findIndex((word) => word === "serve" || word === "up");
  if (at === -1 || !isOwnEntry(entry) || words.includes("--live")) return false;
  const operands = words.slice(at + 1).filter((word, index, all) => !VALUE_OPTIONS.has(all[index - 1] ?? ""));
  const [file = "catenary.json"] = operands.filter((word) => !word.startsWith("-"));
  const folder = typeof entry.cwd === "string" ? entry.cwd : ".";
  return realPath(resolve(folder, file)) === realPath(config);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Whether a URL leads to a server that listens at this address, however the host is written, at any path. */
export function isOwnUrl(url: unknown, { host = LISTEN_DEFAULTS.host, port = LISTEN_DEFAULTS.port }: Address): boolean {
  if (typeof url !== "string" || !URL.canParse(url)) return false;
  const target = new URL(url);
  if (target.protocol !== "http:" || Number(target.port || 80) !== port) return false;
  const ownHost = urlHost(host);
  return target.hostname === ownHost || (isThisMachine(target.hostname) && isThisMachine(ownHost));
}

/** Clients reach a server that listens on all addresses at a loopback address. */
function isThisMachine(host: string): boolean {
  return meansLoopback(host) || host === "0.0.0.0" || host === "[::]";
}

/** The name of an upstream whose URL is that of the gateway. */
export function findOwnUrl(upstreams: ReadonlyMap<string, UpstreamEntry>, address: Address): string | undefined {
  return [...upstreams.values()].find(({ url }) => isOwnUrl(url, address))?.name;
}

/** Reports entries that lead back to the gateway. */
export function reportSelfCalls(
  root: Cursor,
  upstreams: ReadonlyMap<string, UpstreamEntry>,
  listen: Address,
  path: string,
): void {
  for (const { name, url, settings } of upstreams.values()) {
    const entry = root.get("mcpServers")?.get(name) ?? root.get("servers")?.get(name);
    if (servesConfig(settings, path)) {
      const hint = "remove the entry; the servers of this file are served already";
      entry?.errorAtKey("starts the gateway of this same file, which would start itself without end", hint);
    }
    if (listen.port === undefined || !isOwnUrl(url, listen)) continue;
    const message = 'is the address of this gateway ("listen"), which would call itself';
    entry?.get("url")?.error(message, "remove the entry");
  }
}

/** Entries with the default address of a gateway. Only a warning, since another server may be there. */
export function warnOfDefaultAddress(upstreams: readonly UpstreamEntry[], listen: Address): Problem[] {
  const selfCalls = listen.port === undefined ? upstreams.filter(({ url }) => isOwnUrl(url, listen)) : [];
  return selfCalls.map(({ name, position }) => ({
    ...position,
    severity: "warning",
    message: `The URL of ${name} is where \`catenary up\` listens by default; if it is this gateway, it would call itself`,
    hint: 'remove the entry, or if another server is there, choose a port: {"listen": {"port": 3001}}',
  }));
}
