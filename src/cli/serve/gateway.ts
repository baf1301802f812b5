// Opens the gateway of a config for the commands that serve: prints problems, asks for inputs, and reports on the
// upstreams while it runs. This is a separate file, so that serving a module does not load the gateway.

import { pathToFileURL } from "node:url";
import type { Gateway } from "../../chain/gateway.ts";
import { upstream } from "../../chain/upstream/upstream.ts";
import { baseFolder } from "../../config/clients.ts";
import { readConfigText } from "../../config/document.ts";
import { ConfigGateway } from "../../config/gateway.ts";
import {
  type AskInput,
  type Config,
  ConfigError,
  type CreateGatewayOptions,
  type Environment,
  type Input,
  inputVariable,
  loadConfig,
  type UpstreamEntry,
} from "../../config/index.ts";
import { codeDefaults, type CodeSettings } from "../../config/live.ts";
import { loadConfigText } from "../../config/load.ts";
import type { SignIn } from "../../config/sign-in.ts";
import { findMissingPrograms } from "../../config/upstreams.ts";
import { EXIT, NotFoundError, suggest, UsageError } from "../command.ts";
import { printProblems, tally } from "../show/problems.ts";
import { exit, printNotice } from "../terminal/output.ts";
import type { Dialog, Prompter } from "../terminal/prompter.ts";
import { oneLine } from "../terminal/text.ts";
import { moduleName, reserveStdio } from "./module.ts";
import type { Trace } from "./trace.ts";

// Beside openGateway(), so that a command that serves imports one file and not three.
export { codeLanguage } from "../../config/live.ts";
export { hasPath, seesAll, seesServer } from "../../config/profiles.ts";

export interface OpenedGateway {
  readonly config: Config;
  readonly gateway: Gateway;
  readonly running: ConfigGateway;
  /** Code mode as the config has it, or by default; whether or not callers get it. */
  readonly code: CodeSettings;
  /** Reads the config again. Does not ask for inputs. */
  readonly load: () => Promise<Config>;
  /** Ends the reservation of stdin and stdout, so that we can serve on them. */
  readonly release: () => void;
}

/**
 * `source` is the path of a config, or a config in memory. With `isStdio`, stdin belongs to a client, so the user is not asked for inputs. `only`: the name of one server. `code`:
 * whether callers get code mode; by default as the config says.
 */
export async function openGateway(
  source: string | Config,
  report: Pick<CreateGatewayOptions, "onNoise" | "onStderr" | "onState" | "onWarning" | "middleware">,
  isStdio: boolean,
  { only, trace, code, text, onStray }: OpenOptions = {},
): Promise<OpenedGateway> {
  const path = typeof source === "string" ? source : source.path;
  const opened =
    typeof source === "string" ? await openConfig(path, isStdio, text) : { config: source, load: async () => source };
  const whole = withCodeMode(opened.config, code);
  const load = async (): Promise<Config> => withCodeMode(await opened.load(), code);
  const config = only === undefined ? whole : { ...whole, upstreams: new Map([[only, findServer(whole, path, only)]]) };
  const release = reserveStdio(
    `A module of ${path} calls serve() itself; remove the call, and this command serves the module`,
  );
  let currentConfig = (): Config => config;
  surviveStrayErrors(() => currentConfig(), onStray);
  // On stdio there is one client. Its servers get its name and capabilities, as if it had started them itself.
  const create: CreateGatewayOptions["upstream"] = (target, options) => {
    const made = upstream(target, isStdio ? { share: "per-session", ...options } : options);
    return trace === undefined ? made : trace.upstream(options.name ?? "", made);
  };
  const signIn = signInOnDemand(isStdio);
  // A server alone has its own names, which are not those that the whole gateway shows.
  const rememberNames = only === undefined;
  const options = { ...report, signIn, rememberNames, changing: true, upstream: create };
  const made = await reportProblems(path, () => ConfigGateway.create(config, options));
  currentConfig = () => made.config;
  if (trace !== undefined) trace.configOf = () => made.config;
  const settings = opened.config.code ?? codeDefaults(baseFolder(config.path));
  return { config, gateway: made.gateway, running: made, code: settings, load, release };
}

/** Most gateways have no upstream that asks for a sign-in. */
function signInOnDemand(isStdio: boolean): SignIn {
  let loading: Promise<SignIn> | undefined;
  return async (target) => {
    loading ??= import("./upstream-sign-in.ts").then(({ createSignIn }) => createSignIn(isStdio));
    return (await loading)(target);
  };
}

export interface OpenOptions {
  readonly only?: string | undefined;
  /** The text of the config that the user has approved, to be loaded in place of what the file has now. */
  readonly text?: string | undefined;
  readonly trace?: Trace | undefined;
  readonly code?: boolean | undefined;
  /** Gets the report of an exception that belongs to no request. Default: it is printed. */
  readonly onStray?: (message: string) => void;
}

function withCodeMode(config: Config, wanted: boolean | undefined): Config {
  if (wanted === undefined || (config.code !== undefined) === wanted) return config;
  const { code: _code, ...others } = config;
  return wanted ? { ...others, code: codeDefaults(baseFolder(config.path)) } : others;
}

/** Throws a NotFoundError if the config has no such server. */
export function findServer({ upstreams, disabled }: Config, path: string, name: string): UpstreamEntry {
  const known = upstreams.get(name);
  if (known !== undefined) return known;
  if (disabled.includes(name)) throw new NotFoundError(`The server ${name} is disabled in ${path}; enable it there`);
  const names = [...upstreams.keys()];
  const hint = suggest(name, names, `it has ${names.join(", ")}`);
  throw new NotFoundError(`There is no server ${name} in ${path}; ${hint}`);
}

/** An exception in a timer or an unawaited promise of a user's module must not end the gateway and all its servers. */
function surviveStrayErrors(
  configOf: () => Config,
  onStray = (message: string): void => printNotice(`catenary: ${message}`),
): void {
  process.on("uncaughtException", (error: unknown) => {
    const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const owner = moduleIn(details, configOf());
    const where = owner === undefined ? "" : ` in ${owner}`;
    onStray(`an exception${where}, outside any request; the gateway goes on:\n${details}`);
  });
}

/** The middleware or server of the config whose module is the first in a stack trace. */
export function moduleIn(stack: string, { chain, upstreams }: Pick<Config, "chain" | "upstreams">): string | undefined {
  const servers = [...upstreams.values()];
  const modules = [...chain, ...servers.flatMap(({ use }) => use)].flatMap(({ file, name }) =>
    file === undefined ? [] : [{ file, owner: `the middleware ${name ?? moduleName(file)}` }],
  );
  const programs = servers.flatMap(({ name, settings: { module } }) =>
    typeof module === "string" ? [{ file: module, owner: `the server ${name}` }] : [],
  );
  for (const line of stack.split("\n")) {
    const entry = [...modules, ...programs].find(
      ({ file }) => line.includes(pathToFileURL(file).href) || line.includes(`${file}:`),
    );
    if (entry !== undefined) return oneLine(entry.owner);
  }
  return undefined;
}

/** Loads a config for use. Prints its problems, and asks for its inputs. */
export async function openConfig(
  path: string,
  isStdio: boolean,
  text?: string,
): Promise<Pick<OpenedGateway, "config" | "load">> {
  const env = { ...process.env };
  // Remove the inputs: upstreams inherit our environment, but should get only the inputs that the config gives them.
  for (const name of Object.keys(env).filter((key) => key.startsWith(inputVariable("")))) delete process.env[name];
  const ask = inputsFrom(env, isStdio);
  const answers = new Map<string, string | undefined>();
  const askOnce: AskInput = async (input) => {
    const answer = answers.has(input.id) ? answers.get(input.id) : await ask(input);
    answers.set(input.id, answer);
    return answer;
  };
  const config = await reportProblems(path, async () =>
    loadConfigText(text ?? (await readConfigText(path)), path, { env, inputs: askOnce }),
  );
  printProblems(path, config.text, [
    ...config.warnings,
    ...(await findMissingPrograms([
      ...config.upstreams.values(),
      ...(config.codeProgram === undefined ? [] : [config.codeProgram]),
    ])),
  ]);
  const known: AskInput = async ({ id }) => answers.get(id) ?? env[inputVariable(id)];
  return { config, load: () => loadConfig(path, { env, inputs: known }) };
}

/** Prints the problems of a ConfigError and throws a UsageError instead. */
async function reportProblems<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConfigError) || error.problems.length === 0) throw error;
    printProblems(path, error.text, error.problems);
    throw new UsageError(`${path} has ${tally(error.problems)}; nothing was started`, { cause: error });
  }
}

/** Takes inputs from the environment, or asks for them at the terminal. */
export function inputsFrom(env: Environment, isStdio: boolean): AskInput {
  const { signal } = new AbortController();
  let prompter: Prompter | undefined;
  return async (input) => {
    const value = env[inputVariable(input.id)];
    if (value !== undefined || isStdio) return value;
    const { Prompter } = await import("../terminal/prompter.ts");
    if (!Prompter.isAvailable()) return undefined;
    prompter ??= new Prompter(() => exit(EXIT.interrupted));
    return prompter.open(signal, (dialog) => askInput(dialog, input));
  };
}

/** Asks until the answer is valid; undefined if the user closed the input. */
export async function askInput(dialog: Dialog, input: Input): Promise<string | undefined> {
  const { id, description, default: defaultValue, password, options = [] } = input;
  options.forEach((option, at) => dialog.print(`  ${at + 1}) ${oneLine(option)}`));
  const how = options.length === 0 ? "" : " (number or name)";
  const shownDefault = password === true ? "default in the config" : oneLine(defaultValue ?? "");
  const prompt = `${oneLine(description ?? id)}${how}${defaultValue === undefined ? "" : ` [${shownDefault}]`}: `;
  for (;;) {
    const line = await (password === true ? dialog.askSecret(prompt) : dialog.ask(prompt));
    if (line === undefined) return undefined;
    if (line === "" && defaultValue !== undefined) return defaultValue;
    if (options.length === 0) return line;
    const option = options.find((candidate) => candidate === line) ?? options[Number(line) - 1];
    if (option !== undefined) return option;
    dialog.print(`${oneLine(line)} is not in the list; type a number from 1 to ${options.length}`);
  }
}
