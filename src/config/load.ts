// Reads a config, to use it or to report what is wrong with it. The values are read once to find problems and the
// inputs that are used, and a second time with the answers to those inputs. Nothing is started, and no user module is
// loaded.

import { readFile, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { GatewayOptions } from "../chain/chain.ts";
import { MIDDLEWARE } from "../chain/middleware/index.ts";
import { checkOptions } from "../core/options.ts";
import { defined } from "../core/values.ts";
import type { HttpLimits } from "../http/server/options.ts";
import { findSpawnProblem } from "../process/spawn-error.ts";
import { parseDocument, ConfigError, Problems, sortProblems, type Problem } from "./document.ts";
import { MIDDLEWARE_SCHEMAS, middlewareList, type MiddlewareEntry } from "./middleware.ts";
import {
  anyMilliseconds,
  anyString,
  arrayOf,
  Cursor,
  described,
  type Fields,
  type FileCheck,
  flag,
  type MiddlewareFactories,
  nonEmptyString,
  numberIn,
  objectOf,
  oneOf,
  type ReadContext,
  reader,
  readFields,
  type Reader,
  type Schema,
  schemasOf,
  stringThat,
  suggest,
  warnIfMisspelt,
  wrongType,
} from "./readers.ts";
import { readUpstreams, SERVER_SCHEMA, upstreamDefaults, type UpstreamEntry } from "./upstreams.ts";
import { type AskInput, createRedactor, type Environment, type Input, inputVariable, Variables } from "./variables.ts";

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
  const { env = process.env, inputs: ask = async ({ id }: Input) => env[inputVariable(id)] } = options;
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

export interface Listen {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  /** The token that callers must send; never shown. */
  readonly token?: string;
}

const TOKEN = "^[A-Za-z0-9\\-._~+/]+=*$";

const listen: Reader<Listen> = objectOf(
  {
    host: described("The address to listen on. Default: 127.0.0.1.", nonEmptyString),
    port: described(
      "The port to listen on; 0 picks a free one. Default: 3000.",
      numberIn({ type: "integer", minimum: 0, maximum: 65_535 }, "a whole number from 0 (any free port) to 65535"),
    ),
    path: described(
      "The path of the endpoint. Default: /mcp.",
      stringThat((given) => given.startsWith("/"), "must begin with a slash", 'write "/mcp"', "^/|\\$\\{"),
    ),
    allowedHosts: described(
      "Names to accept in the Host header, besides those of this machine.",
      arrayOf(nonEmptyString, 'an array of host names, such as ["notes.example.com"]'),
    ),
    allowedOrigins: described(
      "Origins of web pages that may call the gateway, such as https://app.example.com.",
      arrayOf(nonEmptyString, 'an array of origins, such as ["https://app.example.com"]'),
    ),
    token: described(
      "The bearer token that callers must send. Write ${TOKEN} to keep the token itself out of the file.",
      stringThat(
        (given) => new RegExp(TOKEN).test(given),
        "not a valid bearer token",
        "use letters, digits and - . _ ~ + /, with = only at the end",
        `${TOKEN}|\\$\\{`,
      ),
    ),
  },
  'an object, such as {"port": 3000}',
);

/** The limits of the HTTP server. `messageBytes`, `depth` and `batch` also apply to stdio and to upstreams. */
const LIMITS: Readonly<Record<keyof HttpLimits, string>> = {
  messageBytes: "Maximum bytes of one message, also on stdio. Default: 4 MiB.",
  depth: "Maximum depth of nested objects and arrays in a message, also on stdio. Default: 128.",
  batch: "Maximum messages in one batch, in the revision that has batches, also on stdio. Default: 100.",
  headerBytes: "Maximum bytes of all headers of a request. Default: 16 KiB.",
  headerMs: "Milliseconds that a caller may take to send its headers. Default: 10000.",
  bodyMs: "Milliseconds that a caller may take to send its body. Default: 30000.",
  sessions: "Maximum open sessions. Default: 10000.",
  sessionIdleMs: "Milliseconds after which a session without activity ends. Default: 1800000.",
  sessionDisconnectedMs:
    "Milliseconds after which a session without requests is closed if its last GET stream is closed. Default: 60000.",
  requests: "Maximum requests in flight; further ones get status 503. Default: 1024.",
  listens: "Maximum open subscriptions/listen requests. Default: 10000.",
  unreadBytes: "Unread bytes after which a caller is disconnected at once. Default: 8 MiB.",
  lingeringBytes:
    "Unread bytes after which a caller is disconnected if they stay unread for lingeringMs. Default: 1 MiB.",
  lingeringMs: "Milliseconds that lingeringBytes may stay unread. Default: 10000.",
  heldBytes:
    "Bytes held for all callers: unread output, and request bodies that are still arriving. Default: 268435456.",
  keepAliveMs: "Milliseconds of silence on a stream after which a keep-alive comment is sent. Default: 15000.",
  silenceMs: "Milliseconds without a response after which it becomes a stream. Default: 5000.",
  replayBytes: "Bytes of events kept for callers that reconnect, in total. Default: 64 MiB.",
  replayEvents: "Events of one stream kept for callers that reconnect. Default: 1000.",
};

const limit = numberIn({ exclusiveMinimum: 0 }, "a number above 0");

const limits: Reader<Partial<HttpLimits>> = objectOf(
  Object.fromEntries(Object.entries(LIMITS).map(([name, description]) => [name, described(description, limit)])),
  'an object of numbers, such as {"messageBytes": 4194304}',
);

/** A string in which variables are not expanded. */
const literal = (schema: Schema = {}): Reader<string> =>
  reader({ type: "string", ...schema }, (cursor) =>
    cursor.kind === "string" ? String(cursor.value) : wrongType(cursor, "a string"),
  );

const INPUT_TYPES = ["promptString", "pickString", "command"] as const;

const choice = reader(
  {
    anyOf: [
      { type: "string" },
      {
        type: "object",
        required: ["value"],
        properties: schemasOf({
          label: described("The label that is shown.", literal()),
          value: described("The value of the choice.", literal()),
        }),
      },
    ],
  },
  (item) => literal()(item.get("value") ?? item),
);

const INPUT = {
  id: described("The id that ${input:id} refers to.", literal({ minLength: 1 })),
  type: reader(
    {
      description:
        "promptString: a string. pickString: one of options. command: a value that an editor computes; here it is asked for.",
      enum: INPUT_TYPES,
    },
    literal(),
  ),
  description: described("The question that is shown.", literal()),
  default: described("The value if nothing is answered.", literal()),
  password: described(
    "true: do not echo what is typed.",
    reader(flag.schema, ({ value }) => value === true),
  ),
  options: described("The choices of pickString.", arrayOf(choice, "an array of strings")),
} as const satisfies Fields;

const INPUT_EXAMPLE = 'an object, such as {"id": "key", "type": "promptString", "password": true}';

function readInputs(cursor: Cursor | undefined): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  if (cursor !== undefined && cursor.kind !== "array") wrongType(cursor, "an array of inputs");
  for (const item of cursor?.items() ?? []) {
    const input = item.kind === "object" ? readInput(item) : wrongType(item, INPUT_EXAMPLE);
    if (input === undefined) continue;
    if (inputs.has(input.id)) {
      item.get("id")?.error(`another input has the id ${JSON.stringify(input.id)}`, "rename or remove one of them");
    } else inputs.set(input.id, input);
  }
  return inputs;
}

function readInput(item: Cursor): Input | undefined {
  const { id, type: given = "", ...rest } = readFields(item, INPUT, warnIfMisspelt);
  if (item.get("id") === undefined || id === "") {
    return item.error('"id" is missing', "${input:...} refers to the input by its id");
  }
  const type = INPUT_TYPES.find((known) => known === given);
  if (type === undefined) {
    const typeCursor = item.get("type");
    const hint = "write promptString for a string that a person types";
    if (typeCursor === undefined) item.error('"type" is missing', hint);
    else typeCursor.error(`expected one of ${INPUT_TYPES.join(", ")}`, suggest(given, INPUT_TYPES) ?? hint);
  }
  if (type === "pickString" && item.get("options") === undefined) {
    item.warn('"options" is missing, so any string is accepted', "list the choices, or write promptString");
  }
  // The input is kept even if its type is wrong, so that references to it are not reported as errors too.
  return id === undefined ? undefined : { id, type: type ?? "promptString", ...rest };
}

/** A field that is read separately. For example, `inputs` are read first, since any string may refer to them. */
const readElsewhere = (description: string, schema: Schema): Reader<true> =>
  reader({ description, ...schema }, () => true);

const TOP = {
  $schema: readElsewhere("The location of this schema, for editors.", { type: "string" }),
  name: described("The name that the gateway reports to clients.", nonEmptyString),
  instructions: described("Instructions that the gateway gives to clients, for their models.", anyString),
  names: described(
    "When to put the server in front of the names of tools, resources and prompts (notes.search). when-needed: only for a name that several servers have. always: for every name.",
    oneOf(["when-needed", "always"]),
  ),
  mcpServers: readElsewhere("The servers behind the gateway, by name.", { $ref: "#/definitions/servers" }),
  servers: readElsewhere("Same as mcpServers, by the name that VS Code uses.", { $ref: "#/definitions/servers" }),
  inputs: readElsewhere(
    "Values to ask for when the config is used, as in VS Code: ${input:id} is replaced by the answer. CATENARY_INPUT_ID in the environment answers without asking.",
    { type: "array", items: { $ref: "#/definitions/input" } },
  ),
  defaults: described("Options for all commands and URLs in mcpServers that do not set them.", upstreamDefaults),
  chain: described("Middleware in front of all servers, the outermost first.", middlewareList),
  listen: described("Where the gateway listens over HTTP.", listen),
  limits: described("Limits on callers.", limits),
} as const satisfies Fields;

/** The JSON Schema of a config. `npm run schema` writes it to schema.json, for editors. */
export const CONFIG_SCHEMA: Schema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Catenary",
  description:
    "Config of a gateway to MCP servers, a superset of the mcpServers files of clients. ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${workspaceFolder} and ${userHome} are expanded in every string; write $${ for a literal ${.",
  type: "object",
  allowComments: true,
  allowTrailingCommas: true,
  properties: schemasOf(TOP),
  anyOf: [{ required: ["mcpServers"] }, { required: ["servers"] }],
  definitions: {
    servers: {
      type: "object",
      propertyNames: { pattern: "\\S" },
      additionalProperties: { $ref: "#/definitions/server" },
    },
    server: SERVER_SCHEMA,
    milliseconds: anyMilliseconds.schema,
    ...MIDDLEWARE_SCHEMAS,
    input: { type: "object", required: ["id", "type"], properties: schemasOf(INPUT) },
  },
};

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
  const root = await parseDocument(problems);
  if (root === undefined) return { problems: problems.sorted() };
  const file = resolve(path);
  const folder = baseFolder(file);
  const variables = new Variables(env, folder, problems);
  const read = async (): Promise<Config | undefined> => {
    const context: ReadContext = { problems, variables, folder, middleware, files: [] };
    const config = readRoot(new Cursor(context, root, ""), { path: file, text });
    await Promise.all(context.files.map(checkFile));
    return config;
  };
  let config = await read();
  if (ask !== undefined && variables.usedInputs.size > 0 && problems.errors === 0) {
    await variables.askInputs(ask);
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

function readRoot(root: Cursor, source: { path: string; text: string }): Config | undefined {
  if (root.kind !== "object") {
    root.context.problems.error(root.offset, "The config must be an object", 'write {"mcpServers": {...}}');
    return undefined;
  }
  root.context.variables.inputs = readInputs(root.get("inputs"));
  const values = readFields(root, TOP, (unknown, known) => {
    if (unknown.name === "use") unknown.warnAtKey("ignored", 'write middleware for all servers in "chain"');
    else warnIfMisspelt(unknown, known);
  });
  const { name, instructions, names, defaults = {}, chain = [] } = values;
  return {
    ...source,
    ...defined({ name, instructions, names }),
    ...readUpstreams(root, defaults),
    chain,
    listen: values.listen ?? {},
    limits: values.limits ?? {},
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
