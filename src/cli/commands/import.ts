// `catenary import [CLIENT|FILE]`: brings the servers of a client's config into ours, in our format. Without a name, those
// of all clients on this machine. The files of the clients are only read.

import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CLIENTS, type Client } from "../../config/clients.ts";
import { checkConfig, ConfigError, type Problem } from "../../config/index.ts";
import { type Address, isOwnUrl } from "../../config/self-calls.ts";
import { isObject } from "../../core/values.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import type { ParsedLine } from "../flags.ts";
import { findGateways } from "../serve/control.ts";
import {
  CHANGE_FLAGS,
  CHANGE_NOTES,
  changeFile,
  editText,
  shortPath,
  valueIn,
  type Edit,
} from "../setup/change-file.ts";
import { CLIENTS_ABOUT, findClient } from "../setup/client-files.ts";
import { clientFiles, type ClientSource, isThere, readClientFile, type ServerEntry } from "../setup/client-servers.ts";
import { coverSecrets, plural, printProblems } from "../show/problems.ts";
import { CONFIG } from "../target/target.ts";
import { printNotice } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { CONFIG_FLAG, openConfigFile } from "./add.ts";

const FLAGS = { ...CONFIG_FLAG, ...CHANGE_FLAGS };

export const importCommand: Command = command({
  name: "import",
  usage: "[CLIENT|FILE] [OPTIONS]",
  about: `Writes the servers in the config of an MCP client into ./${CONFIG}, in its format. Without CLIENT or FILE: those of
all clients on this machine. A server whose name another server has gets the name of its client too, such as
github-cursor. The files of the clients stay as they are.

${CLIENTS_ABOUT}`,
  flags: FLAGS,
  notes: CHANGE_NOTES,
  exits: `0 ok, or nothing to change; 1 wrong command line or config, or not written; 2 no config of the client, or no
servers in it.`,
  words: 1,
  run: importServers,
});

async function importServers({ words: [source], values }: ParsedLine<typeof FLAGS>): Promise<number> {
  const { config = CONFIG } = values;
  if (source !== undefined && resolve(source) === resolve(config)) {
    throw new UsageError(`${source} is the config to write to; name another FILE`);
  }
  const sources = await findSources(source, resolve(config));
  const { file, section, servers } = await openConfigFile(config);
  const addresses = await ownAddresses(resolve(config), await valueIn(file, ["listen"]));
  const plan = await withoutInvalid(makePlan(sources, servers, config, addresses), sources, config);
  plan.notes.forEach(printNotice);
  if (plan.imported.length === 0 && plan.hasInvalid) {
    throw new UsageError(`None of these servers can be imported; correct them in the config of the client`);
  }
  if (plan.isOnlyOwn) {
    throw new NotFoundError(
      `There is nothing to import but the gateway of ${config} itself; name another CLIENT or FILE`,
    );
  }
  const inputs = newInputs(plan.imported, sources, await valueIn(file, ["inputs"]));
  const edits: Edit[] = [
    ...plan.imported.map(({ name, entry }) => ({ path: [section, name], value: entry })),
    ...(inputs === undefined ? [] : [{ path: ["inputs"], value: inputs }]),
  ];
  const edited = await editText(file, edits);
  const errors = await errorsIn(edited, config);
  if (errors.length > 0) {
    printProblems(config, edited, errors);
    throw new UsageError(
      `${config} would have ${plural(errors.length, "error")}; correct them in the config of the client`,
    );
  }
  const secret = plan.imported.filter(({ entry }) => hasSecret(entry)).map(({ name }) => oneLine(name));
  if (secret.length > 0) {
    printNotice(
      `Secrets of ${secret.join(", ")} are copied as they are; to keep them out of ${config}, write a variable instead, such as \${API_KEY}`,
    );
  }
  // Those that the servers of the config have no value yet.
  const unset = (await checkConfig(edited, config)).filter(({ server }) => server !== undefined);
  unset.map(describeMissing).forEach(printNotice);
  const names = plan.imported.map(({ name }) => oneLine(name)).join(", ");
  return changeFile(file, edited, {
    values,
    done: `Imported ${names}. To check them: catenary doctor. To use them in a client: catenary install CLIENT`,
    unchanged: `${config} has these servers already`,
    document: { imported: plan.imported.map(({ name, from }) => ({ name, from })) },
  });
}

async function errorsIn(text: string, config: string): Promise<readonly Problem[]> {
  // A variable may be set later, where the config is used.
  const referred = [...text.matchAll(/\$\{(?:env:)?(\w+)/g)].map(([, name = ""]) => [name, "x"] as const);
  const env = { ...Object.fromEntries(referred), ...process.env };
  return (await checkConfig(text, config, { env })).filter(({ severity }) => severity === "error");
}

/** Leaves out the servers that a config cannot have, and notes why. The others can be imported. */
async function withoutInvalid(plan: Plan, sources: readonly ClientSource[], config: string): Promise<Plan> {
  const checked = plan.imported.map(async (server) => {
    const inputs = newInputs([server], sources, undefined);
    const text = JSON.stringify({ mcpServers: { [server.name]: server.entry }, inputs });
    return { server, problem: (await errorsIn(text, config))[0] };
  });
  const all = await Promise.all(checked);
  const notes = all.flatMap(({ server: { name, from }, problem }) =>
    problem === undefined ? [] : [`Left out: ${oneLine(name)} of ${from}; ${problem.message}`],
  );
  const imported = all.flatMap(({ server, problem }) => (problem === undefined ? [server] : []));
  return { ...plan, imported, notes: [...plan.notes, ...notes], hasInvalid: notes.length > 0 };
}

function describeMissing({ server = "", message, hint }: Problem): string {
  const advice = hint === undefined ? "" : `; ${hint}`;
  return `${oneLine(server)} cannot run yet: ${message}${advice}`;
}

/** Throws a NotFoundError if there are no servers. */
async function findSources(source: string | undefined, config: string): Promise<readonly ClientSource[]> {
  const isFile = source !== undefined && (await isThere(source));
  const paths = isFile ? [source] : clientFiles(clientsOf(source));
  const there = await Promise.all(paths.map(async (path) => (await isThere(path)) && resolve(path) !== config));
  const existing = paths.filter((_, at) => there[at] === true);
  if (existing.length === 0) {
    const where = paths.slice(0, 3).map(shortPath).join(", ");
    const what =
      source === undefined ? "There is no config of a client on this machine" : `There is no config of ${source}`;
    throw new NotFoundError(`${what}; looked for ${where}${paths.length > 3 ? " and others" : ""}`);
  }
  const sources = await Promise.all(existing.map((path) => readClientFile(path, config).catch(reportUnreadable)));
  if (sources.every(({ entries }) => entries.length === 0)) {
    const where = existing.map(shortPath).join(", ");
    const hasCatenary = sources.some((source) => source.hasCatenary);
    throw new NotFoundError(
      hasCatenary ? `There is nothing to import from ${where} but Catenary itself` : `There are no servers in ${where}`,
    );
  }
  return sources;
}

/** Prints what is wrong with a file that cannot be parsed, and throws a UsageError. */
function reportUnreadable(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  const path = shortPath(error.path);
  printProblems(path, error.text, error.problems);
  throw new UsageError(`${path} cannot be read; correct it first`);
}

function clientsOf(clientName: string | undefined): readonly Client[] {
  if (clientName === undefined) return CLIENTS;
  if (/[/\\.]/.test(clientName)) throw new NotFoundError(`There is no file ${clientName}`);
  return [findClient(clientName)];
}

/** Whether the entry has a value that would be hidden on a screen. */
function hasSecret(entry: ServerEntry): boolean {
  const lines = JSON.stringify(entry, undefined, 2).split("\n");
  return lines.some((line) => coverSecrets(line) !== line);
}

/** Where the gateway of a config listens: as it says, and where one runs now. */
async function ownAddresses(config: string, listen: unknown): Promise<readonly Address[]> {
  const { host, port } = isObject(listen) ? listen : {};
  const running = (await findGateways()).filter((gateway) => gateway.config === config);
  return [
    {
      host: typeof host === "string" ? host : undefined,
      port: typeof port === "number" ? port : undefined,
    },
    ...running.map(({ url }) => ({ host: new URL(url).hostname, port: Number(new URL(url).port || 80) })),
  ];
}

interface Plan {
  readonly imported: readonly { readonly name: string; readonly entry: ServerEntry; readonly from: string }[];
  readonly notes: readonly string[];
  /** Whether a server was left out because a config cannot have it. */
  readonly hasInvalid?: boolean;
  /** Whether all servers of the sources are this gateway itself. */
  readonly isOnlyOwn: boolean;
}

/**
 * Of several servers of one name, the first has this name, and the others that of their client too. The gateway itself is
 * left out, since it would call itself without end.
 */
function makePlan(
  sources: readonly ClientSource[],
  existing: ServerEntry,
  config: string,
  addresses: readonly Address[],
): Plan {
  const imported = new Map<string, { name: string; entry: ServerEntry; from: string }>();
  const notes: string[] = [];
  let isOnlyOwn = true;
  for (const { title, clientName, entries } of sources) {
    for (const [name, entry] of entries) {
      if (addresses.some((address) => isOwnUrl(entry["url"], address))) {
        notes.push(
          `Left out: ${oneLine(name)} of ${title}; it is the address of this gateway, which would call itself`,
        );
        continue;
      }
      isOnlyOwn = false;
      const where = imported.get(name)?.from ?? config;
      const isTaken = (candidate: string): boolean => imported.has(candidate) || existing[candidate] !== undefined;
      const isSame = (candidate: string): boolean =>
        imported.has(candidate)
          ? isDeepStrictEqual(imported.get(candidate)?.entry, entry)
          : isSameServer(existing[candidate], entry);
      const free = namesFor(name, clientName).find((candidate) => !isTaken(candidate) || isSame(candidate));
      if (free === undefined || isTaken(free)) continue;
      imported.set(free, { name: free, entry, from: title });
      if (free === name) continue;
      notes.push(`${oneLine(name)} of ${title} is imported as ${oneLine(free)}; ${where} has another ${oneLine(name)}`);
    }
  }
  return { imported: [...imported.values()], notes, isOnlyOwn };
}

const MAX_NAMES = 20;

/** The names that a server may get, the best first. */
function namesFor(name: string, client: string): readonly string[] {
  const numbered = Array.from({ length: MAX_NAMES }, (_, at) => `${name}-${client}-${at + 2}`);
  return [name, `${name}-${client}`, ...numbered];
}

/**
 * Whether an entry of the config is the same server. It may have been imported before, and have got variables in place of
 * secrets, and further settings.
 */
function isSameServer(known: unknown, imported: unknown): boolean {
  if (typeof known === "string" && typeof imported === "string") return known === imported || known.includes("${");
  if (Array.isArray(known) && Array.isArray(imported)) {
    return known.length === imported.length && known.every((value, at) => isSameServer(value, imported[at]));
  }
  if (!isObject(known) || !isObject(imported)) return isDeepStrictEqual(known, imported);
  return Object.entries(imported).every(([key, value]) => isSameServer(known[key], value));
}

/**
 * The inputs that imported servers refer to, after those that the config has; undefined if there are no new ones. The
 * first input of an id counts.
 */
function newInputs(
  imported: Plan["imported"],
  sources: readonly ClientSource[],
  existing: unknown,
): object | undefined {
  const text = JSON.stringify(imported);
  const old = Array.isArray(existing) ? existing.filter(isObject) : [];
  const inputs = [...old];
  for (const input of sources.flatMap((source) => source.inputs)) {
    const { id } = input;
    const isUsed = typeof id === "string" && text.includes(`\${input:${id}}`);
    if (isUsed && !inputs.some((known) => known["id"] === id)) inputs.push(input);
  }
  return inputs.length === old.length ? undefined : inputs;
}
