// The checks of `catenary doctor` for one server, in the order in which things can go wrong. Each says that it is ok, or
// what is wrong and what to do next. After a check that failed, the later ones are left out, since they cannot succeed.

import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { NoSignInError } from "../../auth/oauth/errors.ts";
import type { Client } from "../../client/client.ts";
import type { Command } from "../../client/command.ts";
import { connect, type ConnectOptions, type Target } from "../../client/connect.ts";
import type { Authorizer } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { withoutBrackets } from "../../core/hosts.ts";
import { defined, errorMessage } from "../../core/values.ts";
import { proxyFor } from "../../http/client/proxy.ts";
import { ADVICE, adviceOnStart } from "../../process/start-advice.ts";
import { findSpawnProblem } from "../../process/spawn-problem.ts";
import { HINT, withoutHint } from "../../protocol/failed-evaluation.ts";
import { EXIT } from "../command.ts";
import { plural } from "../show/problems.ts";
import { toFailure, withFlags } from "../show/failures.ts";
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
  const isReachable = await checkWay(target, results);
  if (!isReachable) return results.map((result) => hidden(result, options));
  let client: Client | undefined;
  const noise: string[] = [];
  const begin = performance.now();
  try {
    const { timeoutMs: startTimeoutMs, signal, headers, auth, revision, capabilities } = options;
    const onNoise = (line: string): void => void noise.push(line);
    client = await connect(target, {
      startTimeoutMs,
      timeoutMs: startTimeoutMs,
      signal,
      ...defined({ revision, capabilities }),
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
  return results.map((result) => hidden(result, options));
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
  const host = withoutBrackets(hostname);
  if (isIP(host) !== 0 || host === "localhost") return undefined;
  try {
    const { address } = await lookup(host);
    return ok("dns", `${host} is ${address}`);
  } catch (error) {
    const message = `${host} is not found (${(error as NodeJS.ErrnoException).code ?? "?"})`;
    return failed("dns", message, "check the name in the URL, and the network: VPN, proxy, DNS");
  }
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
  const [host, port] = [withoutBrackets(url.hostname), portOf(url)];
  const error = await attemptConnection((done) => connectTcp({ host, port }, done));
  if (error === undefined) return ok("tcp", `${url.hostname} answers on port ${port}`);
  const { code } = error as NodeJS.ErrnoException;
  return code === "ECONNREFUSED"
    ? failed("tcp", `Nothing listens at ${url.hostname}:${port}`, ADVICE.refused)
    : failed("tcp", `No connection to ${url.hostname}:${port} (${code ?? error.message})`, ADVICE.network);
}

async function checkTls(url: URL): Promise<Result> {
  const host = withoutBrackets(url.hostname);
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
  const hint = content[0]?._meta?.[HINT];
  const advice = typeof hint === "string" ? hint : "correct the entry in the config";
  return failed("evaluate", oneLine(withoutHint(said, advice)), oneLine(advice));
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
    const hint = isHostRefused ? ADVICE.hostRefused : ADVICE.http;
    return [failed("http", message, hint, exit)];
  }
  const written = noise.length === 0 ? [] : [checkNoise(noise)];
  if (kind === "closed" || kind === "spawn") {
    return [...written, failed("start", message, adviceOnStart(message), exit)];
  }
  const hint =
    written.length > 0
      ? "it writes to stdout what is not a message: check that it serves MCP on stdio, perhaps with an option such as --stdio"
      : kind === "timeout"
        ? "it may still be installing: try again with --timeout 300; or it does not serve MCP on stdio"
        : ADVICE.protocol;
  // What the program wrote is shown by the check of its stdout.
  const said =
    error instanceof ConnectionError
      ? withFlags({ problem: error.problem, hint: error.hint, diagnostics: "" })
      : message;
  return [ok("start", "runs"), ...written, failed("initialize", said, hint, exit)];
}
