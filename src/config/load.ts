// Reads a config, to use it or to report what is wrong with it. The values are read once to find problems and the
// inputs that are used, and a second time with the answers to those inputs. Nothing is started, and no user module is
// loaded.

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { GatewayOptions } from "../chain/chain.ts";
import { NAMING } from "../chain/router/naming.ts";
import { boolean, choice, code as option, object, text, type OptionsOf } from "../core/fields.ts";
import { checkFields, OptionPlace } from "../core/options.ts";
import { defined } from "../core/values.ts";
import { LIMITS, LISTEN as HTTP_LISTEN, type HttpLimits } from "../http/server/fields.ts";
import { type Compat, COMPATS } from "../protocol/compat.ts";
import { baseFolder } from "./clients.ts";
import { adaptDocument } from "./dialects.ts";
import {
  parseDocument,
  ConfigError,
  isFatal,
  Problems,
  readConfigText,
  sortProblems,
  type Problem,
} from "./document.ts";
import { readInputs } from "./inputs.ts";
import type { ConfigPlace } from "./kinds.ts";
import {
  code,
  codeLanguage,
  codeProgram,
  codeSandbox,
  grantProblems,
  placeOf,
  sandboxProblems,
  type CodeSettings,
} from "./live.ts";
import { middlewareList, type MiddlewareEntry } from "./middleware.ts";
import { type Access, callers, profiles, readAccess, token } from "./profiles.ts";
import * as read from "./readers.ts";
import { createRedactor } from "./redaction.ts";
import { reportSelfCalls, warnOfDefaultAddress } from "./self-calls.ts";
import { IGNORED_AT_TOP, type Places, rejectKey } from "./unknown-keys.ts";
import {
  ENTRY_KEYS,
  findMissingPrograms,
  markMissing,
  POLICY_KEYS,
  readUpstreams,
  type Requirements,
  upstreamDefaults,
  type UpstreamEntry,
} from "./upstreams.ts";
import { type AskInput, type Environment, type Input, inputVariable, Variables } from "./variables.ts";

/** A valid config: variables are expanded and paths are absolute. It may contain secrets, so do not print it. */
export interface Config {
  /** The absolute path of the file. */
  readonly path: string;
  /** The text of the file, without a byte order mark. */
  readonly text: string;
  /** The name that the gateway reports to clients. */
  readonly name?: string;
  /** How to use the gateway, for models. */
  readonly instructions?: string;
  /** How the names of tools and prompts are shown. */
  readonly naming: Pick<GatewayOptions, "names">;
  /** By name, in the order of the file. */
  readonly upstreams: ReadonlyMap<string, UpstreamEntry>;
  /** The names of disabled entries. */
  readonly disabled: readonly string[];
  /** Middleware in front of all upstreams, the outermost first. */
  readonly chain: readonly MiddlewareEntry[];
  /** Code mode, if callers call the tools from code. */
  readonly code?: CodeSettings;
  /** Where the file turns code mode on. */
  readonly codePlace?: ConfigPlace;
  /** What the sessions of code mode start. */
  readonly codeProgram?: Requirements;
  /** Where the gateway listens. */
  readonly listen: Listen;
  /** Parts of the gateway, by name. */
  readonly profiles: Access["profiles"];
  /** Callers with tokens of their own, by name. */
  readonly callers: Access["callers"];
  /** Whether it serves its console over HTTP. */
  readonly console?: boolean;
  /** As which document session-style callers are answered: the option `compat` of `serve()`. */
  readonly compat?: Compat;
  /** Limits of the HTTP server. */
  readonly limits: HttpLimits;
  /** Problems that do not prevent its use. */
  readonly warnings: readonly Problem[];
}

const OPTIONS = {
  /** Values of variables; default: the environment of the process. */
  env: option<Environment>(),
  /** Answers the inputs of the config; default: `CATENARY_INPUT_ID` in `env`. If it throws, so does `loadConfig`. */
  inputs: option<AskInput>(),
  /** Middleware that a config may name beside the built-in ones. One with the same name takes the place of a built-in one. */
  middleware: option<read.MiddlewareFactories>(),
};

/** Options of `loadConfig()`, `checkConfig()` and `examineConfig()`. */
export type ConfigOptions = OptionsOf<typeof OPTIONS>;

/**
 * Loads a config for use. Throws a ConfigError with all problems, or Node's error if the file cannot be read. If a
 * variable in the entry of a server is not set, only that server cannot be used: its entry has `missing`.
 *
 * @example
 * const gateway = await createGateway(await loadConfig("catenary.json"));
 */
export async function loadConfig(path: string, options: ConfigOptions = {}): Promise<Config> {
  checkFields(options, OPTIONS, new OptionPlace("loadConfig()"));
  return loadConfigText(await readConfigText(path), path, options);
}

/** Loads the text of a config. The file `path` need not exist. */
export async function loadConfigText(text: string, path: string, options: ConfigOptions = {}): Promise<Config> {
  const { env = process.env, inputs: ask = async ({ id }: Input) => env[inputVariable(id)] } = options;
  const { config, problems } = await readConfig(text, path, options, ask);
  if (config === undefined || problems.some(isFatal)) throw new ConfigError(path, text, problems);
  return { ...config, ...markMissing(config.upstreams, problems) };
}

/** Returns all problems of a text, in order. Does not ask for inputs. The file `path` need not exist. */
export async function checkConfig(text: string, path: string, options: ConfigOptions = {}): Promise<Problem[]> {
  checkFields(options, OPTIONS, new OptionPlace("checkConfig()"));
  return [...(await readConfig(text, path, options)).problems];
}

/** What `examineConfig()` found in a file. */
export interface ConfigReport {
  /** The text of the file. */
  readonly text: string;
  /** All problems, in the order of the text. */
  readonly problems: readonly Problem[];
  /** The names of the enabled servers. */
  readonly servers: readonly string[];
  /** The names of all middleware, including middleware of single servers. */
  readonly middleware: readonly string[];
  /** What its gateway would start, load or call: a line for each server and each module. Variables show as references. */
  readonly starts: readonly string[];
}

/** Checks a file and reports what is in it. Also warns about programs that cannot be started on this machine. */
export async function examineConfig(path: string, options: ConfigOptions = {}): Promise<ConfigReport> {
  checkFields(options, OPTIONS, new OptionPlace("examineConfig()"));
  return (await examineConfigText(await readConfigText(path), path, options)).report;
}

/** Checks the text of a config. The file `path` need not exist. */
export async function examineConfigText(
  text: string,
  path: string,
  options: ConfigOptions = {},
): Promise<{ readonly report: ConfigReport; readonly config?: Config }> {
  const { config, problems } = await readConfig(text, path, options);
  const upstreams = [...(config?.upstreams.values() ?? [])];
  const middleware = [...(config?.chain ?? []), ...upstreams.flatMap(({ use }) => use)];
  const report: ConfigReport = {
    text,
    problems: sortProblems([
      ...problems,
      ...warnOfDefaultAddress(upstreams, config?.listen ?? {}),
      ...(await findMissingPrograms([
        ...upstreams,
        ...(config?.codeProgram === undefined ? [] : [config.codeProgram]),
      ])),
      // Without its sandbox, code mode does not start, and nothing else does.
      ...(await sandboxProblems(codeSandbox(config ?? {}), "error")),
    ]),
    servers: upstreams.map(({ name }) => name),
    middleware: middleware.map(({ name, file = "" }) => name ?? file),
    starts: [
      ...upstreams.map((entry) => createRedactor(entry.secrets)(`${entry.name}: ${entry.describe()}`)),
      ...(config?.code === undefined
        ? []
        : [`code mode: sessions of ${codeLanguage(config.code).name}, in which callers can run code`]),
      ...middleware.flatMap(({ file }) => (file === undefined ? [] : [`middleware: the module ${file}`])),
    ],
  };
  return { report, ...(config && { config }) };
}

const LISTEN = {
  ...HTTP_LISTEN,
  token: token("The bearer token that callers must send. Write ${TOKEN} to keep the token itself out of the file."),
};

/** How the gateway of a config listens for HTTP requests. Absent values have the defaults of `serve()`. */
export type Listen = OptionsOf<typeof LISTEN>;

/** A field that is read separately. For example, `inputs` are read first, since any string may refer to them. */
const readElsewhere = (description: string, schema: read.Schema): read.Reader<true> =>
  read.reader({ description, ...schema }, () => true);

export const TOP = {
  $schema: readElsewhere("The location of this schema, for editors.", { type: "string" }),
  ...read.readersOf({
    name: text("The name that the gateway reports to clients."),
    names: NAMING.names,
    listen: object("Where the gateway listens over HTTP.", LISTEN, 'an object, such as {"port": 3000}'),
    console: boolean(
      "Whether the gateway serves its console, a page for its operator, over HTTP. Default: true for `catenary up`, false for `catenary serve`.",
    ),
    compat: choice(
      "As which document session-style callers are answered. mcp: the specification. cl-mcp, llm-pharo, chain: the documents of CL-MCP-Server, LLM-Pharo-MCP and mcp-chain. reference: a widespread protocol reference.",
      COMPATS,
    ).or("mcp"),
    limits: object("Limits on callers.", LIMITS, 'an object of numbers, such as {"messageBytes": 8388608}'),
  }),
  instructions: read.anyString.describe("Instructions that the gateway gives to clients, for their models."),
  mcpServers: readElsewhere("The servers behind the gateway, by name.", { $ref: "#/definitions/servers" }),
  servers: readElsewhere("Same as mcpServers, by the name that VS Code uses.", { $ref: "#/definitions/servers" }),
  inputs: readElsewhere(
    "Values to ask for when the config is used, as in VS Code: ${input:id} is replaced by the answer. CATENARY_INPUT_ID in the environment answers without asking.",
    { type: "array", items: { $ref: "#/definitions/input" } },
  ),
  defaults: upstreamDefaults.describe("Options for all commands and URLs in mcpServers that do not set them."),
  chain: middlewareList.describe("Middleware in front of all servers, the outermost first."),
  code: code.describe(
    "Code mode: callers see search-tools, describe-tools and run-code in place of all tools, and call the tools from code. true, or an object with settings. Default: false.",
  ),
  profiles: profiles.describe("Parts of the gateway, by name: some servers, some tools. Each is at /mcp/NAME."),
  callers: callers.describe("Callers with tokens of their own, by name, and what each may use."),
} as const satisfies read.Fields;

interface ReadResult {
  readonly problems: readonly Problem[];
  /** Usable only if there are no errors. */
  readonly config?: Config;
}

/** Without `ask`, no inputs are asked for, and values that depend on them are not checked. */
async function readConfig(
  fileText: string,
  path: string,
  { env = process.env, middleware: more = new Map() }: ConfigOptions,
  ask?: AskInput,
): Promise<ReadResult> {
  const text = fileText.replace(/^\uFEFF/, "");
  const problems = new Problems(text);
  const file = resolve(path);
  const parsed = await parseDocument(problems, file);
  if (parsed === undefined) return { problems: problems.sorted() };
  const { root, ...dialect } = adaptDocument(parsed, file, problems);
  const folder = baseFolder(file);
  const variables = new Variables(env, folder, problems);
  let builtIn: read.ReadContext["builtIn"];
  const readAll = async (): Promise<Config | undefined> => {
    const context: read.ReadContext = {
      ...{ problems, variables, folder, builtIn, needsBuiltIn: false, middleware: more, files: [] },
      ...dialect,
    };
    const config = readRoot(new read.Cursor(context, root, ""), { path: file, text });
    if (context.needsBuiltIn) {
      ({ MIDDLEWARE: builtIn } = await import("./built-in.ts"));
      return readAll();
    }
    await Promise.all(context.files.map(checkFile));
    return config;
  };
  let config = await readAll();
  if (ask !== undefined && variables.usedInputs.size > 0 && problems.errors === 0) {
    await variables.askInputs(ask);
    if (problems.errors === 0) config = await readAll();
  }
  const sorted = sortProblems([...problems.sorted(), ...(config === undefined ? [] : await grantProblems(config))]);
  const warnings = sorted.filter(({ severity }) => severity === "warning");
  return { problems: sorted, ...(config && { config: { ...config, warnings } }) };
}

/** Keys that are wrong at the top, and where they belong. */
const PLACES: Places = [
  [Object.keys(LISTEN), (key) => `write {"listen": {"${key}": ...}}`],
  [Object.keys(LIMITS), (key) => `write {"limits": {"${key}": ...}}`],
  [
    ["timeout", ...POLICY_KEYS],
    (key) => {
      const option = key === "timeout" ? "timeoutMs" : key;
      return `write {"defaults": {"${option}": ...}} for all servers, or write it in the entry of one`;
    },
  ],
  [
    ["profile", "errorProfile"],
    () => 'write {"compat": ...} to speak as another document, or {"profiles": {...}} for parts of the gateway',
  ],
  [["use", "links", "middleware"], () => 'write middleware for all servers in "chain"'],
  [ENTRY_KEYS, (key) => `write it in the entry of a server: {"mcpServers": {"NAME": {"${key}": ...}}}`],
];

function readRoot(root: read.Cursor, source: { path: string; text: string }): Config | undefined {
  if (root.kind !== "object") {
    root.context.problems.error(root.offset, "The config must be an object", 'write {"mcpServers": {...}}');
    return undefined;
  }
  root.context.variables.inputs = readInputs(root.get("inputs"));
  // Without servers, the file is hardly a config, and one error says so.
  const hasServers = root.get("mcpServers") !== undefined || root.get("servers") !== undefined;
  const values = read.readFields(root, TOP, (unknown, known) => {
    if (hasServers) rejectKey(unknown, known, PLACES, IGNORED_AT_TOP, "chain");
  });
  const { name, instructions, names: when, defaults = {}, chain = [] } = values;
  const servers = readUpstreams(root, defaults);
  const codeKey = root.get("code");
  const sandboxKey = codeKey?.get("sandbox") ?? codeKey;
  reportSelfCalls(root, servers.upstreams, values.listen ?? {}, source.path);
  return {
    ...source,
    ...defined({ name, instructions }),
    naming: defined({ names: when }),
    ...servers,
    chain,
    listen: values.listen ?? {},
    ...readAccess(root, values, servers, values.listen?.token),
    ...defined({ compat: values.compat, code: values.code, console: values.console }),
    ...(codeKey && values.code && { codeProgram: codeProgram(codeKey, values.code) }),
    ...(sandboxKey && { codePlace: placeOf(sandboxKey) }),
    limits: values.limits ?? {},
    warnings: [],
  };
}

/** Reports a path that does not exist or is of the wrong kind. */
async function checkFile({ path, kind, severity, cursor, isSecret }: read.FileCheck): Promise<void> {
  const stats = await stat(path).catch(() => undefined);
  if (kind === "file" ? stats?.isFile() : stats?.isDirectory()) return;
  const message = stats === undefined ? `${kind} not found` : `not a ${kind}`;
  const hint = isSecret ? "check the variables in it" : `looked for ${path}`;
  if (severity === "error") cursor.error(message, hint);
  else cursor.warn(message, hint);
}
