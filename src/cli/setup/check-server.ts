// The checks of `catenary doctor` for one server, in the order in which things can go wrong. Each says that it is ok, or
// what is wrong and what to do next. After a check that failed, the later ones are left out, since they cannot succeed.

import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { NoSignInError } from "../../auth/oauth/errors.ts";
import { nameMatcher } from "../../chain/transforms/name-rules.ts";
import { SEPARATOR } from "../../chain/router/names.ts";
import type { Client } from "../../client/client.ts";
import type { Command } from "../../client/command.ts";
import { connect, type ConnectOptions, type Target } from "../../client/connect.ts";
import type { Config, UpstreamEntry } from "../../config/index.ts";
import type { Authorizer } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { matchesGlob } from "../../core/text.ts";
import { defined, errorMessage, isObject } from "../../core/values.ts";
import { proxyFor } from "../../http/client/proxy.ts";
import { findSpawnProblem } from "../../process/program.ts";
import { EXIT } from "../command.ts";
import { plural, toFailure } from "../show/problems.ts";
import { oneLine } from "../terminal/text.ts";

export interface Check {
  /** What is checked: the name of a server, a file, a client. */
  readonly subject: string;
  readonly check: string;
  readonly status: "ok" | "warning" | "failed";
  readonly message: string;
  /** The next step. */
  readonly hint?: string;
  /** The exit code of a failed check. */
  readonly exit?: number;
}

export type Result = Omit<Check, "subject">;

export interface ServerCheckOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  readonly auth?: Authorizer | undefined;
  readonly revision?: string | undefined;
  /** Removes secrets from a text. */
  readonly hide: (text: string) => string;
  /** How to sign in, for the hint. */
  readonly signIn?: string;
  /** How to send a token, for the hint. */
  readonly sendToken?: string;
  /** The capabilities that we declare. Default: none. */
  readonly capabilities?: ConnectOptions["capabilities"];
  /** Called when the lists could be read, with the names of the tools. */
  readonly onListed?: (tools: readonly string[], client: Client) => void | Promise<void>;
  /** The tool that evaluates code. One evaluation shows whether a session can start. */
  readonly evaluate?: string;
}

/** All checks of a server. */
export async function checkServer(target: Target, options: ServerCheckOptions): Promise<readonly Result[]> {
  const results: Result[] = [];
  const found = await checkWay(target, results);
  if (!found) return results.map((one) => hidden(one, options));
  let client: Client | undefined;
  const noise: string[] = [];
  const begin = performance.now();
  try {
    const { timeoutMs: startTimeoutMs, signal, headers, auth, revision, capabilities } = options;
    const onNoise = (line: string): void => void noise.push(line);
    const common: ConnectOptions = {
      startTimeoutMs,
      timeoutMs: startTimeoutMs,
      signal,
      ...defined({ revision, capabilities }),
    };
    client = await connect(target, {
      ...common,
      ...(isUrl(target) && defined({ headers, auth })),
      ...(isCommand(target) && { onNoise }),
    });
    results.push(...connected(client, target, noise, performance.now() - begin));
    results.push(await checkLists(client, options));
    if (options.evaluate !== undefined) results.push(await checkEvaluation(client, options.evaluate));
  } catch (error) {
    results.push(...explain(error, target, noise, options));
  } finally {
    await client?.close().catch(() => undefined);
  }
  return results.map((one) => hidden(one, options));
}

function hidden({ message, hint, ...rest }: Result, { hide }: ServerCheckOptions): Result {
  return { ...rest, message: hide(message), ...(hint !== undefined && { hint: hide(hint) }) };
}

export const ok = (check: string, message: string): Result => ({ check, status: "ok", message });

export function warning(check: string, message: string, hint: string): Result {
  return { check, status: "warning", message, hint };
}

export function failed(check: string, message: string, hint: string, exit: number = EXIT.unreachable): Result {
  return { check, status: "failed", message, hint, exit };
}

function isUrl(target: Target): target is URL | string {
  return typeof target === "string" || target instanceof URL;
}

function isCommand(target: Target): target is Command {
  return typeof target === "object" && "command" in target;
}

/** Whether the server can be reached at all: its command exists, or its address answers. */
async function checkWay(target: Target, results: Result[]): Promise<boolean> {
  if (isCommand(target)) {
    results.push(await checkCommand(target));
  } else if (isUrl(target)) {
    const url = new URL(target);
    const steps = [checkName, checkTcp, ...(url.protocol === "https:" ? [checkTls] : [])];
    const proxy = checkProxy(url);
    if (proxy !== undefined) results.push(proxy);
    for (const step of proxy === undefined ? steps : []) {
      const result = await step(url);
      if (result !== undefined) results.push(result);
      if (result?.status === "failed") break;
    }
  }
  return results.every(({ status }) => status !== "failed");
}

/** Undefined without a proxy. With one, the address itself need not be reachable from here. */
function checkProxy(url: URL): Result | undefined {
  try {
    const proxy = proxyFor(url);
    return proxy && ok("proxy", `${url.hostname} is reached by the proxy of ${proxy.variable}`);
  } catch (error) {
    return failed("proxy", errorMessage(error), "correct the variable in the environment", EXIT.usage);
  }
}

async function checkCommand({ command, cwd, env }: Command): Promise<Result> {
  const problem = await findSpawnProblem({ command, ...defined({ cwd, env }) });
  if (problem === undefined) return ok("command", `${command} is there`);
  return failed("command", problem.problem, problem.hint?.text ?? "check the command", EXIT.notFound);
}

async function checkName({ hostname }: URL): Promise<Result | undefined> {
  const host = bare(hostname);
  if (isIP(host) !== 0 || host === "localhost") return undefined;
  try {
    const { address } = await lookup(host);
    return ok("dns", `${host} is ${address}`);
  } catch (error) {
    const message = `${host} is not found (${(error as NodeJS.ErrnoException).code ?? "?"})`;
    return failed("dns", message, "check the name in the URL, and the network: VPN, proxy, DNS");
  }
}

/** The host without the brackets of IPv6. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

const TCP_TIMEOUT_MS = 10_000;

/** Connects and disconnects. */
function attemptConnection(open: (done: () => void) => ReturnType<typeof connectTcp>): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = open(() => finish());
    const finish = (error?: Error): void => {
      socket.destroy();
      resolve(error);
    };
    socket.once("error", finish);
    socket.setTimeout(TCP_TIMEOUT_MS, () => finish(new Error("no answer")));
  });
}

/** Whether something listens at the address of a URL. */
export async function checkTcp(url: URL): Promise<Result> {
  const [host, port] = [bare(url.hostname), portOf(url)];
  const error = await attemptConnection((done) => connectTcp({ host, port }, done));
  if (error === undefined) return ok("tcp", `${url.hostname} answers on port ${port}`);
  const { code } = error as NodeJS.ErrnoException;
  return code === "ECONNREFUSED"
    ? failed("tcp", `Nothing listens at ${url.hostname}:${port}`, "start the server, or correct the port in the URL")
    : failed(
        "tcp",
        `No connection to ${url.hostname}:${port} (${code ?? error.message})`,
        "check the network: VPN, proxy, firewall",
      );
}

async function checkTls(url: URL): Promise<Result> {
  const host = bare(url.hostname);
  const servername = isIP(host) === 0 ? host : "";
  const error = await attemptConnection((done) => connectTls({ host, port: portOf(url), servername }, done));
  if (error === undefined) return ok("tls", "the certificate is valid");
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (/CERT|SELF_SIGNED|UNABLE_TO|ISSUER/.test(code)) {
    const hint = "if you trust it, name the certificate of its CA: NODE_EXTRA_CA_CERTS=ca.pem catenary ...";
    return failed("tls", `The certificate is not accepted: ${error.message}`, hint);
  }
  return failed("tls", `No TLS: ${error.message}`, `if the server has no TLS, write http:// instead of https://`);
}

/** What a successful connection has shown. */
function connected(client: Client, target: Target, noise: readonly string[], ms: number): Result[] {
  const { name = "?", version = "" } = client.server ?? {};
  const seconds = `${(ms / 1_000).toFixed(1)} s`;
  const results = isCommand(target)
    ? [ok("start", `answered in ${seconds}`), checkNoise(noise)]
    : isUrl(target)
      ? [ok("http", `answered in ${seconds}`), ok("auth", "we may use it")]
      : [];
  return [...results, ok("initialize", `${oneLine(`${name} ${version}`)}, revision ${client.revision}`)];
}

function checkNoise([first]: readonly string[]): Result {
  if (first === undefined) return ok("stdout", "has only messages");
  const message = `has lines that are not messages, such as: ${oneLine(first).slice(0, 100)}`;
  return warning("stdout", message, "they are ignored; a server should write its log to stderr");
}

async function checkLists(client: Client, { onListed }: ServerCheckOptions): Promise<Result> {
  const { capabilities } = client;
  const counts: string[] = [];
  const tools = capabilities["tools"] === undefined ? [] : (await client.listTools()).tools;
  if (capabilities["tools"] !== undefined) counts.push(plural(tools.length, "tool"));
  if (capabilities["prompts"] !== undefined) counts.push(plural((await client.listPrompts()).prompts.length, "prompt"));
  if (capabilities["resources"] !== undefined) {
    counts.push(plural((await client.listResources()).resources.length, "resource"));
  }
  await onListed?.(
    tools.map(({ name }) => name),
    client,
  );
  if (counts.length > 0) return ok("lists", counts.join(", "));
  return warning("lists", "it has no tools, prompts or resources", "check that this is the server you want");
}

/** Evaluates a number, which is an expression in every language. */
async function checkEvaluation(client: Client, tool: string): Promise<Result> {
  const { isError, content } = await client.callTool(tool, { code: "1" });
  if (isError !== true) return ok("evaluate", "a session starts, and evaluates code");
  const said = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(" ");
  const [what = "", advice = "correct the entry in the config"] = said.split(/; (?=install|or )(.*)/s);
  return failed("evaluate", oneLine(what), oneLine(advice));
}

/** What programs say on stderr if something usual is missing, and what to do about it. */
const STDERR_HINTS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [/E404|npm error 404/, "npm has no such package: check its name"],
  [/ETARGET|No matching version/, "npm has no such version of the package: check the version after @"],
  [/ENOTFOUND|EAI_AGAIN|ECONNREFUSED.*registry|network/i, "the package could not be downloaded: check the network"],
  [/could not determine executable/, "the package has no program to run: check its name"],
  [
    /Cannot find module|ERR_MODULE_NOT_FOUND|No such file|can't open file/i,
    "a file is missing: check the path in args",
  ],
  [/ERR_UNKNOWN_FILE_EXTENSION.*"\.[cm]?ts"/, "this version of Node does not load TypeScript: start it with npx tsx"],
  [
    /(?:api[ _-]?key|token|secret|credential|password|environment variable|env var)/i,
    "it needs a key: set the variable that it names in the environment (env in the config, or --env KEY=VALUE)",
  ],
  [
    /usage:|unknown (?:option|argument)|required argument/i,
    "it wants other arguments: see the documentation of the server",
  ],
  [/EACCES|permission denied/i, "it may not read or write a file: check the permissions"],
  [/EADDRINUSE/, "it listens on a port that is in use: it may be an HTTP server; start it and use its URL"],
];

/** What the program wrote is shown by the check of its stdout. */
function withoutOutput(error: unknown, message: string): string {
  const { diagnostics = "" } = error instanceof ConnectionError ? error : {};
  return diagnostics !== "" && message.endsWith(diagnostics) ? message.slice(0, -diagnostics.length) : message;
}

/** The check that an error belongs to, and those before it. */
function explain(error: unknown, target: Target, noise: readonly string[], options: ServerCheckOptions): Result[] {
  const { exit, message } = toFailure(error);
  const kind = error instanceof ConnectionError ? error.kind : undefined;
  if (kind === "cancelled") throw error;
  if (!isCommand(target)) {
    if (!isUrl(target)) return [failed("initialize", message, "correct the module", exit)];
    if (exit === EXIT.auth) {
      const { sendToken = "send a token: headers in the config, or CATENARY_TOKEN", signIn = sendToken } = options;
      const { server } = NoSignInError.in(error) ?? {};
      if (server === undefined) return [ok("http", "answers"), failed("auth", message, signIn, exit)];
      return [ok("http", "answers"), failed("auth", `${server} needs a token, and offers no sign-in`, sendToken, exit)];
    }
    const isHostRefused = error instanceof ConnectionError && error.status === 403;
    const hint = isHostRefused
      ? "restart the server with this host allowed, or use a URL with a host that it accepts"
      : "check the path of the URL, such as /mcp; `catenary tools URL --verbose` shows more";
    return [failed("http", message, hint, exit)];
  }
  const written = noise.length === 0 ? [] : [checkNoise(noise)];
  if (kind === "closed" || kind === "spawn") {
    const [, hint] = STDERR_HINTS.find(([pattern]) => pattern.test(message)) ?? [];
    const general = "start the command by itself in a terminal and see what it says";
    return [...written, failed("start", message, hint ?? general, exit)];
  }
  const hint =
    written.length > 0
      ? "it writes to stdout what is not a message: check that it serves MCP on stdio, perhaps with an option such as --stdio"
      : kind === "timeout"
        ? "it may still be installing: try again with --timeout 300; or it does not serve MCP on stdio"
        : "check that it is an MCP server, and its version";
  return [ok("start", "runs"), ...written, failed("initialize", withoutOutput(error, message), hint, exit)];
}

// Finds the patterns of a config that match no tool, for `catenary doctor`, which lists the tools anyway: what the entries
// of servers include, exclude and rename, middleware with rules for tools, and profiles. A typing error in one would show
// a tool that should be hidden. Only tools are looked at, since most servers have nothing else.

type Use = UpstreamEntry["use"][number];

/** A tool, by all names that it may have at some place. */
type Forms = ReadonlySet<string>;

const HINT = "correct the pattern, or remove it; `catenary tools` lists the names, and only * is a wildcard";

/** Checks what the entry of a server says of its tools, which are listed by their own names. */
export function checkEntryPatterns(entry: UpstreamEntry, tools: readonly string[]): Check[] {
  const subject = entry.name;
  const { line, column } = entry.position;
  const isEntryFilter = ({ position }: Use): boolean => position.line === line && position.column === column;
  const unmatched = walk(entry.use, asForms(tools), (use, key) =>
    isEntryFilter(use) ? key : `use: filter: tools.${key}`,
  ).problems.map(({ place, pattern }) =>
    patternWarning(subject, `${place}: "${pattern}" matches no tool of ${subject}`),
  );
  return [...unmatched, ...countHidden(entry, tools)];
}

/** Checks the profiles and the middleware for all servers. `tools`: the tools of all servers, by server. */
export function checkSharedPatterns(
  config: Config,
  path: string,
  tools: ReadonlyMap<string, readonly string[]>,
): Check[] {
  // A pattern may be for a server that is disabled, or cannot be listed now.
  const isComplete = [...config.upstreams.keys()].every((name) => tools.has(name)) && config.disabled.length === 0;
  const shown = new Map(
    [...config.upstreams.values()].map((entry) => {
      const { forms, isKnown } = walk(entry.use, asForms(tools.get(entry.name) ?? []), () => "");
      const label = (name: string): string => `${entry.naming.prefix ?? entry.name}${SEPARATOR}${name}`;
      const labelled = forms.map((names) => new Set([...names].flatMap((name) => [name, label(name)])));
      return [entry.name, isKnown && tools.has(entry.name) ? labelled : undefined];
    }),
  );
  const problems: Unmatched[] = [];
  for (const [name, profile] of config.profiles) {
    const servers = profile.servers ?? (isComplete ? [...shown.keys()] : undefined);
    const forms = servers?.map((server) => shown.get(server));
    if (forms === undefined || forms.includes(undefined)) continue;
    const all = forms.flatMap((some) => some ?? []);
    for (const key of ["include", "exclude"] as const) {
      problems.push(...unmatchedIn(profile.tools?.[key] ?? [], all, `profiles.${name}.tools.${key}`));
    }
  }
  const all = [...shown.values()];
  if (isComplete && !all.includes(undefined)) {
    const own = all.flatMap((some) => some ?? []);
    const chain = walk(config.chain, own, (_use, key) => `chain: filter: tools.${key}`, "chain");
    problems.push(...chain.problems);
    if (chain.isKnown) problems.push(...unmatchedIn(config.code?.include ?? [], chain.forms, "code.include"));
  }
  return problems.map(({ place, pattern }) => patternWarning(path, `${place}: "${pattern}" matches no tool`));
}

function patternWarning(subject: string, message: string): Check {
  return { subject, check: "patterns", status: "warning", message: oneLine(message), hint: HINT };
}

interface Unmatched {
  readonly place: string;
  readonly pattern: string;
}

function asForms(tools: readonly string[]): Forms[] {
  return tools.map((name) => new Set([name]));
}

function unmatchedIn(patterns: readonly string[], tools: readonly Forms[], place: string): Unmatched[] {
  const isMatched = (pattern: string): boolean =>
    tools.some((forms) => [...forms].some((name) => matchesGlob(pattern, name)));
  return patterns.filter((pattern) => !isMatched(pattern)).map((pattern) => ({ place, pattern }));
}

type Options = { readonly [name: string]: unknown };

const byTool = ({ tools }: Options): [string, string[]][] => [["tools", isObject(tools) ? Object.keys(tools) : []]];

const includes = ({ include }: Options): [string, string[]][] => [["include", stringsIn(include)]];

/** Where other middleware has names and patterns of tools. */
const RULES: Readonly<Record<string, (options: Options) => [string, string[]][]>> = {
  authorize: ({ rules }) =>
    (Array.isArray(rules) ? (rules as readonly unknown[]) : []).map((rule, at) => [
      `rules.${at}.tools`,
      stringsIn(isObject(rule) ? rule["tools"] : []),
    ]),
  cache: byTool,
  confirm: includes,
  describe: byTool,
  inject: byTool,
  "read-only": includes,
  search: includes,
};

/** Goes through middleware from the inside out, and adds the new names of tools that are renamed. */
function walk(
  uses: readonly Use[],
  tools: readonly Forms[],
  placeOf: (use: Use, key: "include" | "exclude") => string,
  where = "use",
): { readonly problems: readonly Unmatched[]; readonly forms: readonly Forms[]; readonly isKnown: boolean } {
  const problems: Unmatched[] = [];
  let forms = tools;
  for (const use of uses.toReversed()) {
    // What is outside of these sees other tools.
    if (use.kind === "module") return { problems, forms, isKnown: false };
    for (const [option, patterns] of RULES[use.name]?.(isObject(use.options) ? use.options : {}) ?? []) {
      problems.push(...unmatchedIn(patterns, forms, `${where}: ${use.name}: ${option}`));
    }
    if (use.name === "search") return { problems, forms, isKnown: false };
    const rules = isObject(use.options) && isObject(use.options["tools"]) ? use.options["tools"] : {};
    if (use.name === "filter") {
      for (const key of ["include", "exclude"] as const) {
        problems.push(...unmatchedIn(stringsIn(rules[key]), forms, placeOf(use, key)));
      }
    } else if (use.name === "rename") {
      const names = new Map(Object.entries(rules));
      const isThere = (own: string): boolean => forms.some((one) => one.has(own));
      const missing = [...names.keys()].filter((own) => !isThere(own));
      problems.push(...missing.map((pattern) => ({ place: `${where}: rename: tools`, pattern })));
      forms = forms.map((one) => new Set([...one, ...stringsIn([...one].map((name) => names.get(name)))]));
    }
  }
  return { problems, forms, isKnown: true };
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** Says how many tools the innermost filter hides, which is that of `include` and `exclude` of the entry, if there is one. */
function countHidden({ name: subject, use }: UpstreamEntry, tools: readonly string[]): Check[] {
  const last = use.at(-1);
  if (last?.kind !== "named" || last.name !== "filter" || !isObject(last.options)) return [];
  const { include, exclude } = isObject(last.options["tools"]) ? last.options["tools"] : {};
  const isShown = nameMatcher("tools", include === undefined ? undefined : stringsIn(include), stringsIn(exclude));
  const hidden = tools.filter((name) => !isShown(name)).length;
  if (hidden === 0) return [];
  return [{ subject, check: "hidden", status: "ok", message: `${plural(hidden, "tool")}, by the config` }];
}
