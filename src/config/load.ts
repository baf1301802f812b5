// Reads a config, to use it or to report what is wrong with it. The values are read once to find problems and the
// inputs that are used, and a second time with the answers to those inputs. Nothing is started, and no user module is
// loaded.

import { readFile, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { GatewayOptions } from "../chain/chain.ts";
import { MIDDLEWARE } from "../chain/middleware/index.ts";
import { checkOptions } from "../core/options.ts";
import { type HttpLimits, httpLimits } from "../http/server/options.ts";
import { findSpawnProblem } from "../process/spawn-error.ts";
import {
  Cursor,
  type FileCheck,
  type MiddlewareFactories,
  type ReadContext,
  anyString,
  nonEmptyString,
  oneOf,
  readFields,
  warnIfMisspelt,
  type Fields,
  arrayOf,
  numberThat,
  objectOf,
  stringThat,
  type Reader,
} from "./readers.ts";
import { parseDocument, ConfigError, Problems, sortProblems, type Problem } from "./document.ts";
import { Answers, inputsFromEnv, readInputs, type AskInput } from "./inputs.ts";
import { middlewareList, type MiddlewareEntry } from "./middleware.ts";
import { createRedactor, Variables } from "./variables.ts";
import { readUpstreams, upstreamDefaults, type UpstreamEntry } from "./upstreams.ts";

/** A valid config: variables are expanded and paths are absolute. It may contain secrets, so do not print it. */
export interface Config {
  /** The absolute path of the file. */
  readonly path: string;
  /** The text of the file, without a byte order mark. */
  readonly text: string;
  /** The name that the gateway reports to clients. */
  readonly name?: string;
  readonly instructions?: string;
  readonly names?: NonNullable<GatewayOptions["names"]>;
  /** By name, in the order of the file. */
  readonly upstreams: ReadonlyMap<string, UpstreamEntry>;
  /** The names of disabled entries. */
  readonly disabled: readonly string[];
  /** Middleware in front of all upstreams, the outermost first. */
  readonly chain: readonly MiddlewareEntry[];
  readonly listen: Listen;
  readonly limits: Partial<HttpLimits>;
  readonly warnings: readonly Problem[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ConfigOptions {
  /** Values of variables; default: the environment of the process. */
  readonly env?: Environment;
  /** Answers the inputs of the config; default: `CATENARY_INPUT_ID` in `env`. If it throws, so does `loadConfig`. */
  readonly inputs?: AskInput;
  /** The middleware that a config may name; default: the built-in ones. */
  readonly middleware?: MiddlewareFactories;
}

const OPTIONS = { env: true, inputs: true, middleware: true } as const satisfies Record<keyof ConfigOptions, true>;

/**
 * Loads a config for use. Throws a ConfigError with all problems, or Node's error if the file cannot be read.
 *
 * @example
 * const gateway = await createGateway(await loadConfig("catenary.json"));
 */
export async function loadConfig(path: string, options: ConfigOptions = {}): Promise<Config> {
  checkOptions("loadConfig()", options, OPTIONS);
  const text = await readText(path);
  const ask = options.inputs ?? inputsFromEnv(options.env ?? process.env);
  const { config, problems } = await readConfig(text, path, options, ask);
  const isValid = problems.every(({ severity }) => severity !== "error");
  if (config === undefined || !isValid) throw new ConfigError(path, text, problems);
  return config;
}

/** Returns all problems of a text, in order. Does not ask for inputs. The file `path` need not exist. */
export async function checkConfig(text: string, path: string, options: ConfigOptions = {}): Promise<Problem[]> {
  checkOptions("checkConfig()", options, OPTIONS);
  return [...(await readConfig(text, path, options)).problems];
}

export interface ConfigReport {
  readonly text: string;
  readonly problems: readonly Problem[];
  /** The names of the enabled servers. */
  readonly servers: readonly string[];
  /** The names of all middleware, including middleware of single servers. */
  readonly middleware: readonly string[];
}

/** Checks a file and reports what is in it. Also warns about programs that cannot be started on this machine. */
export async function examineConfig(path: string, options: ConfigOptions = {}): Promise<ConfigReport> {
  checkOptions("examineConfig()", options, OPTIONS);
  const text = await readText(path);
  const { config, problems } = await readConfig(text, path, options);
  const upstreams = [...(config?.upstreams.values() ?? [])];
  const middleware = [...(config?.chain ?? []), ...upstreams.flatMap(({ use }) => use)];
  return {
    text,
    problems: sortProblems([...problems, ...(await findMissingPrograms(upstreams))]),
    servers: upstreams.map(({ name }) => name),
    middleware: middleware.map((entry) => entry.name ?? (entry.kind === "module" ? entry.file : "")),
  };
}

/** Removes a byte order mark, so that the lines and columns of problems match the text. */
async function readText(path: string): Promise<string> {
  return (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
}

const isPort = (given: number): boolean => Number.isInteger(given) && given >= 0 && given <= 65_535;

const LISTEN = {
  host: nonEmptyString,
  port: numberThat(isPort, "a whole number from 0 (any free port) to 65535"),
  path: stringThat((given) => given.startsWith("/"), "must begin with a slash", 'write "/mcp"'),
  allowedHosts: arrayOf(nonEmptyString, 'an array of host names, such as ["notes.example.com"]'),
  allowedOrigins: arrayOf(nonEmptyString, 'an array of origins, such as ["https://app.example.com"]'),
  token: stringThat(
    (given) => /^[A-Za-z0-9\-._~+/]+=*$/.test(given),
    "not a valid bearer token",
    "use letters, digits and - . _ ~ + /, with = only at the end",
  ),
} as const satisfies Fields;

export const LISTEN_FIELDS: Fields = LISTEN;

export interface Listen {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  /** The token that callers must send; never shown. */
  readonly token?: string;
}

const listen: Reader<Listen> = objectOf(LISTEN, 'an object, such as {"port": 3000}');

const limit = numberThat((given) => given > 0 && given <= Number.MAX_SAFE_INTEGER, "a number above 0");

/** The limits of the HTTP server. `messageBytes`, `depth` and `batch` also apply to stdio and to upstreams. */
export const LIMIT_FIELDS: Readonly<Record<keyof HttpLimits, Reader<number>>> = Object.fromEntries(
  Object.keys(httpLimits()).map((name) => [name, limit]),
) as Record<keyof HttpLimits, Reader<number>>;

const limits: Reader<Partial<HttpLimits>> = objectOf(
  LIMIT_FIELDS,
  'an object of numbers, such as {"messageBytes": 4194304}',
);

/** For fields that are read separately. For example, `inputs` are read first, since any string may refer to them. */
const readElsewhere = (): true => true;

const TOP = {
  $schema: readElsewhere,
  name: nonEmptyString,
  instructions: anyString,
  names: oneOf(["when-needed", "always"]),
  mcpServers: readElsewhere,
  servers: readElsewhere,
  inputs: readElsewhere,
  defaults: upstreamDefaults,
  chain: middlewareList,
  listen,
  limits,
} as const satisfies Fields;

export const TOP_FIELDS: Fields = TOP;

interface ReadResult {
  readonly problems: readonly Problem[];
  /** Usable only if there are no errors. */
  readonly config?: Config;
}

/** Without `ask`, no inputs are asked for, and values that depend on them are not checked. */
async function readConfig(
  given: string,
  path: string,
  { env = process.env, middleware = MIDDLEWARE }: ConfigOptions,
  ask?: AskInput,
): Promise<ReadResult> {
  const text = given.replace(/^\uFEFF/, "");
  const problems = new Problems(text);
  const root = await parseDocument(text, problems);
  if (root === undefined) return { problems: problems.sorted() };
  const file = resolve(path);
  const folder = baseFolder(file);
  const answers = new Answers();
  const variables = new Variables({ env, folder, inputs: answers }, problems);
  const read = async (): Promise<Config | undefined> => {
    const context: ReadContext = { problems, variables, folder, middleware, files: [] };
    const config = readRoot(new Cursor(context, root, ""), answers, { path: file, text });
    await Promise.all(context.files.map(checkFile));
    return config;
  };
  let config = await read();
  if (ask !== undefined && answers.used.size > 0 && problems.errors === 0) {
    await answers.ask(ask, problems);
    if (problems.errors === 0) config = await read();
  }
  const sorted = problems.sorted();
  const warnings = sorted.filter(({ severity }) => severity === "warning");
  return { problems: sorted, ...(config && { config: { ...config, warnings } }) };
}

/** Folders of editors. The paths in a config in such a folder are relative to the parent of the folder. */
const EDITOR_FOLDERS = new Set([".vscode", ".cursor"]);

function baseFolder(file: string): string {
  const folder = dirname(file);
  return EDITOR_FOLDERS.has(basename(folder)) ? dirname(folder) : folder;
}

function readRoot(root: Cursor, answers: Answers, source: { path: string; text: string }): Config | undefined {
  if (root.value.kind !== "object") {
    root.context.problems.error(root.value.offset, "The config must be an object", 'write {"mcpServers": {...}}');
    return undefined;
  }
  answers.declare(readInputs(root.get("inputs")));
  const {
    name,
    instructions,
    names,
    defaults = {},
    chain = [],
    listen: listenOptions = {},
    limits: limitOptions = {},
  } = readFields(root, TOP, (unknown, key, known) => {
    if (key === "use") unknown.warnAtKey("ignored", 'write middleware for all servers in "chain"');
    else warnIfMisspelt(unknown, key, known);
  });
  return {
    ...source,
    ...(name !== undefined && { name }),
    ...(instructions !== undefined && { instructions }),
    ...(names !== undefined && { names }),
    ...readUpstreams(root, defaults),
    chain,
    listen: listenOptions,
    limits: limitOptions,
    warnings: [],
  };
}

/** Reports a path that does not exist or is of the wrong kind. */
async function checkFile({ path, kind, severity, cursor, isSecret }: FileCheck): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (kind === "file" ? found?.isFile() : found?.isDirectory()) return;
  const message = found === undefined ? `${kind} not found` : `not a ${kind}`;
  const hint = isSecret
    ? "check the variables in it"
    : /(^|\/)~\//.test(path)
      ? "write ${userHome} instead of ~"
      : `looked for ${path}`;
  if (severity === "error") cursor.error(message, hint);
  else cursor.warn(message, hint);
}

/** Returns only warnings: a program that is missing now may exist when the config is used. */
async function findMissingPrograms(upstreams: readonly UpstreamEntry[]): Promise<Problem[]> {
  const problems = await Promise.all(upstreams.map(checkProgram));
  return [...upstreams.map(({ warning }) => warning), ...problems].filter((problem) => problem !== undefined);
}

async function checkProgram({ program, secrets }: UpstreamEntry): Promise<Problem | undefined> {
  const found = program && (await findSpawnProblem(program.command));
  if (program === undefined || found === undefined) return undefined;
  const [what = "", ...advice] = createRedactor(secrets)(found.message).split("; ");
  const message = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const { position, hint = advice.join("; ") } = program;
  return { ...position, severity: "warning", message, ...(hint !== "" && { hint }) };
}
