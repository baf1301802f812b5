// `catenary doctor [TARGET]`: checks a config and its servers, one server, or what is set up on this machine, and says for
// each step that it is ok, or what is wrong and what to do next. The checks are the result, so they go to stdout.

import { stat } from "node:fs/promises";
import { ALL_REQUESTS } from "../../chain/upstream/sharing.ts";
import { rememberLists } from "../../chain/upstream/create-pool.ts";
import { commandWith } from "../../chain/upstream/upstream.ts";
import { CLIENTS, clientFilePath, type Client, type ClientFile } from "../../config/clients.ts";
import { readConfigText, type Problem } from "../../config/document.ts";
import { moduleProblems } from "../../config/gateway.ts";
import { ConfigError, type UpstreamEntry } from "../../config/index.ts";
import { isHttpUrl } from "../../config/kinds.ts";
import { loadConfigText } from "../../config/load.ts";
import { type CodeSettings, createCodeMode } from "../../config/live.ts";
import { findMissingPrograms } from "../../config/upstreams.ts";
import { isOwnEntry, isOwnUrl } from "../../config/self-calls.ts";
import { createRedactor } from "../../config/redaction.ts";
import { Semaphore } from "../../core/async.ts";
import { boolean } from "../../core/fields.ts";
import type { Secret } from "../../core/secrets.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import { findSpawnProblem } from "../../process/spawn-problem.ts";
import { createServer } from "../../server/server.ts";
import type { Closeable } from "../../serve.ts";
import { beforeSeparator, EXIT, Interruption } from "../command.ts";
import { command, type Command, unexpectedArguments } from "../define.ts";
import { parseFlags, seconds, section } from "../flags.ts";
import { findGateways } from "../serve/control.ts";
import { findServer, inputsFrom } from "../serve/gateway.ts";
import { confirmConfig } from "../serve/trust.ts";
import { shortPath, valueIn } from "../setup/change-file.ts";
import { checkEntryPatterns, checkSharedPatterns } from "../setup/check-patterns.ts";
import {
  type Check,
  checkServer,
  checkTcp,
  failed,
  ok,
  type Result,
  type ServerCheckOptions,
  warning,
} from "../setup/check-server.ts";
import { openClientFile } from "../setup/client-files.ts";
import { plural } from "../show/problems.ts";
import { createAuthorizer, findAuthorizer, takeToken } from "../target/sign-in.ts";
import {
  type CliTarget,
  CONFIG,
  type ConfigTarget,
  parseHeaders,
  parseTargetLine,
  requireConfig,
  TARGET_FLAGS,
  targetName,
  type TargetValues,
  TIMEOUT_MS,
} from "../target/target.ts";
import { hintFor, paint, printJson, printStatus, printTrusted } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { ProgressLine } from "../terminal/progress-line.ts";

const { env, cwd, header, token, revision } = TARGET_FLAGS;
const FLAGS = {
  timeout: seconds(`How long a server may take to answer. Default ${TIMEOUT_MS / 1_000}.`),
  ...section(undefined, { env, cwd, header, token, revision }),
  quiet: boolean("Shows only what is wrong."),
  json: boolean(
    'Prints `{"ok", "checks"}`. A check is `{"subject", "check", "status", "message", "hint"}`; its status is `ok`, `warning` or `failed`.',
  ),
};

export const doctorCommand: Command = command({
  name: "doctor",
  usage: "[TARGET] [OPTIONS]\n[OPTIONS] -- COMMAND ARGS...",
  about: `Checks step by step why a server does not work, and says what to do next. TARGET is a config, the name of a server in
./${CONFIG}, or a URL. Without TARGET: checks ./${CONFIG}, its servers, and the configs of the MCP clients on this machine.
Starts the servers; changes no config. What the servers of a config list is remembered, so that the next \`catenary up\`
knows it from the start.

For a config: the file and its entries. For a command: found, starts, stdout, initialize, lists. For a URL: DNS, TCP, TLS,
HTTP, sign-in, initialize, lists. For live sessions and code mode: evaluate.`,
  flags: FLAGS,
  exits: `0 nothing failed; otherwise that of the first check that failed: 1 config, 2 no such file, command or server, 3 not
signed in, 4 unreachable or not answering; 130 interrupted.`,
  runArguments: doctor,
});

/** How many servers are started at the same time. */
const PARALLEL = 4;

type Report = (subject: string, results: readonly Result[]) => void;

function parseLine(args: readonly string[]) {
  // Refuses the options that only the other commands with a TARGET have.
  const { words, values } = parseFlags("doctor", beforeSeparator(args), FLAGS);
  if (words.length === 0 && !args.includes("--")) return { target: undefined, values };
  const line = parseTargetLine("doctor", args, {}, doctorCommand.usage);
  if (line.words.length > 0) throw unexpectedArguments("doctor", line.words, doctorCommand.usage);
  return line;
}

async function doctor(args: readonly string[]): Promise<number> {
  const { target, values } = parseLine(args);
  const progress = new ProgressLine(process.stderr, {
    quiet: values.quiet === true || values.json === true,
    dumb: process.env["TERM"] === "dumb",
  });
  const interruption = new Interruption((text) => progress.note(text));
  const checks: Check[] = [];
  const report: Report = (subject, results) => {
    const checked = results.map((result): Check => ({ subject, ...result }));
    checks.push(...checked);
    progress.stop();
    if (values.json !== true) printChecks(checked, values.quiet === true);
  };
  const session: Session = { values, report, signal: interruption.signal, busy: (text) => progress.busy(text) };
  try {
    if (target === undefined) await checkMachine(session);
    else if ("config" in target) await checkConfig(target, session, target.server === undefined);
    else report(targetName(target), await checkServer(target, await targetOptions(target, session)));
  } finally {
    progress.stop();
    interruption.dispose();
  }
  const failed = checks.filter(({ status }) => status === "failed");
  if (values.json === true)
    printJson({ ok: failed.length === 0, checks: checks.map(({ exit: _, ...check }) => check) });
  else printSummary(failed, checks);
  return failed[0] === undefined ? EXIT.ok : (failed[0].exit ?? EXIT.usage);
}

interface Session {
  readonly values: TargetValues;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly busy: (text: string) => void;
}

function commonOptions({ values, signal }: Session): ServerCheckOptions {
  const timeoutMs = values.timeout ?? TIMEOUT_MS;
  return { timeoutMs, signal, hide: (text) => text, revision: values.revision };
}

async function targetOptions(target: CliTarget, session: Session): Promise<ServerCheckOptions> {
  const { values } = session;
  const common = commonOptions(session);
  const fromEnvironment = takeToken();
  if (!(target instanceof URL)) return common;
  const token = values.token ?? fromEnvironment;
  const auth = await findAuthorizer(target, values, token, quietly(session));
  const how = "in CATENARY_TOKEN, or with --header 'Authorization: Bearer TOKEN'";
  const sendToken = `send the token of its owner: ${how}`;
  const signIn =
    token === undefined
      ? `sign in: catenary login ${target.origin}${target.pathname}; or send a token ${how}`
      : `use another token, ${how}`;
  return { ...common, headers: parseHeaders(values), auth, signIn, sendToken };
}

/** Stored tokens are used, but the user is not asked to sign in. */
function quietly({ busy }: Session): Parameters<typeof createAuthorizer>[2] {
  return { canSignIn: false, print: printStatus, note: () => undefined, busy };
}

/** The config, its entries, and all its servers, or one of them. */
async function checkConfig({ config: file, server }: ConfigTarget, session: Session, isNamed: boolean): Promise<void> {
  const { report, busy } = session;
  const path = await requireConfig(file, "doctor");
  const text = (isNamed ? undefined : await confirmConfig(path, false)) ?? (await readConfigText(path));
  const inputs = inputsFrom({ ...process.env }, false);
  const config = await loadConfigText(text, path, { inputs }).catch((error: unknown) => {
    if (error instanceof ConfigError) return error;
    throw error;
  });
  const isWrong = config instanceof ConfigError;
  const asResult = ({ line, column, severity, message, hint }: Problem): Result => {
    const text = `line ${line}, column ${column}: ${message}`;
    const advice = hint ?? `\`catenary check ${path}\` shows the line`;
    return severity === "error" ? failed("entries", text, advice, EXIT.usage) : warning("entries", text, advice);
  };
  report(path, [ok("file", "can be read"), ...(isWrong ? config.problems : config.warnings).map(asResult)]);
  if (isWrong) return;
  const names = [...config.upstreams.keys()].map(oneLine);
  report(path, [ok("entries", `${plural(names.length, "server")} (${names.join(", ")})`)]);
  const entries = server === undefined ? [...config.upstreams.values()] : [findServer(config, path, server)];
  const slots = new Semaphore(PARALLEL);
  const tools = new Map<string, readonly string[]>();
  const all = entries.map(async (entry) => {
    await slots.acquire(session.signal);
    try {
      const entryChecks = await checkEntry(entry, path, session, (names) => tools.set(entry.name, names));
      const names = tools.get(entry.name);
      return names === undefined ? entryChecks : [...entryChecks, ...checkEntryPatterns(entry, names)];
    } finally {
      slots.release();
    }
  });
  // In the order of the config, each as soon as it is known.
  for (const [at, checks] of all.entries()) {
    const { name = "" } = entries[at] ?? {};
    busy(`Checking ${oneLine(name)}`);
    report(name, await checks);
  }
  if (server !== undefined) return;
  report(path, [...(await moduleProblems(config)).map(asResult), ...checkSharedPatterns(config, tools)]);
  if (config.code === undefined) return;
  busy("Checking code mode");
  report("code", await checkCodeMode(config.code, session));
}

/** Whether code can run. The servers have been checked, so there is one tool in their place. */
async function checkCodeMode(settings: CodeSettings, session: Session): Promise<readonly Result[]> {
  const tools = createServer({ name: "code", version: "0" }).tool("none", {}, () => "");
  const handler = await createCodeMode(tools, settings);
  try {
    const checks = await checkServer(handler, { ...commonOptions(session), evaluate: "run-code" });
    return checks.filter(({ check, status }) => check === "evaluate" || status !== "ok");
  } finally {
    await handler.close();
  }
}

async function checkEntry(
  entry: UpstreamEntry,
  path: string,
  session: Session,
  onTools: (names: readonly string[]) => void,
): Promise<readonly Result[]> {
  const { name, policy, secrets, evaluate } = entry;
  try {
    const { target, options: { headers } = {}, signIn } = await entry.resolve();
    const url = typeof target === "string" || target instanceof URL ? new URL(target) : undefined;
    const needsAuth = url !== undefined && signIn !== undefined;
    // As the gateway starts it.
    const command = typeof target === "object" && "command" in target ? commandWith(target, policy) : undefined;
    const isRemembered = command !== undefined && session.values.revision === undefined;
    const optional = entry.programs?.filter(({ isOptional }) => isOptional === true) ?? [];
    const missing = await findMissingPrograms([{ programs: optional, secrets }]);
    const programs = missing.map(({ message, hint = "" }) => warning("programs", message, hint));
    const checks = await checkServer(command ?? target, {
      ...commonOptions(session),
      ...(isRemembered && { capabilities: ALL_REQUESTS }),
      onListed: async (names, { handler }) => {
        onTools(names);
        if (isRemembered) await rememberLists(command, policy, handler).catch(() => undefined);
      },
      ...(evaluate !== undefined && { evaluate }),
      ...(policy.revision !== undefined && { revision: policy.revision }),
      ...(headers && { headers }),
      sendToken: `write the token in the entry: "headers": {"Authorization": "Bearer \${TOKEN}"}`,
      ...(needsAuth && {
        auth: await createAuthorizer(url, signIn, quietly(session)),
        signIn: `sign in: catenary login ${name}${path === CONFIG ? "" : ` --config ${path}`}`,
      }),
      hide: createRedactor([...secrets, ...pathOf(url)]),
    });
    if (evaluate !== undefined) await (target as Closeable).close?.();
    return [...programs, ...checks];
  } catch (error) {
    if (session.signal.aborted) throw error;
    return [failed("entry", createRedactor(secrets)(errorMessage(error)), `correct it in ${path}`, EXIT.usage)];
  }
}

/** The path and query of a server in a config, which may be secret. Short ones are no secret and occur in any text. */
function pathOf(url: URL | undefined): Secret[] {
  const path = url === undefined ? "" : `${url.pathname}${url.search}`;
  return [path, url?.pathname ?? ""].flatMap((value) => (value.length < 6 ? [] : [{ value, reference: "..." }]));
}

/** The config of this folder, if there is one, and the configs of clients. */
async function checkMachine(session: Session): Promise<void> {
  const { report } = session;
  const hasConfig = (await stat(CONFIG).catch(() => undefined))?.isFile() === true;
  if (hasConfig) await checkConfig({ config: CONFIG }, session, false);
  const all = CLIENTS.flatMap((client) =>
    client.files.filter(({ isOld }) => isOld !== true).map((file) => ({ client, file })),
  );
  // In the home folder, a client's file for all projects is also that of the project.
  const files = all.filter(
    ({ file }, at) => all.findIndex((source) => clientFilePath(source.file) === clientFilePath(file)) === at,
  );
  const running = (await findGateways().catch(() => [])).map(({ url }) => new URL(url));
  const results = await Promise.all(files.map(({ client, file }) => checkClient(client, file, running)));
  const hasClient = results.some((result) => result.length > 0);
  if (!hasConfig) {
    const hint = hasClient
      ? "catenary import brings the servers of your clients into one"
      : "write one: catenary add NAME COMMAND ...";
    report(CONFIG, [warning("file", "there is none in this folder", hint)]);
  }
  for (const [at, result] of results.entries()) report(files[at]?.client.title ?? "", result);
  if (!hasConfig || hasClient) return;
  const hint = "to write the gateway into one: catenary install CLIENT";
  report("clients", [warning("client", "no config of a client was found", hint)]);
}

/** Nothing if the client has no such file. `running`: the addresses of running gateways. */
async function checkClient(client: Client, file: ClientFile, running: readonly URL[]): Promise<readonly Result[]> {
  const path = clientFilePath(file);
  if ((await stat(path).catch(() => undefined)) === undefined) return [];
  const shortened = shortPath(path);
  const check: CreateCheck = (status, message, hint) => [
    {
      check: "client",
      status,
      message: `${shortened} ${message}`,
      ...(hint !== undefined && { hint, exit: EXIT.usage }),
    },
  ];
  try {
    const opened = await openClientFile(client, file);
    const value = await valueIn(opened, file.servers);
    const entries = Object.entries(isObject(value) ? value : {});
    const started = entries.filter(([, entry]) => isOwnEntry(entry) && bridgedUrl(entry) === undefined);
    const urls = entries.flatMap(([name, entry]) => ownUrl(name, entry, running) ?? []);
    if (started.length + urls.length > 0) {
      const reached = await Promise.all(urls.map((url) => checkOwnUrl(url, check)));
      return [...(await checkOwnEntries(started, client, check)), ...reached.flat()];
    }
    const isProject = file.scope === "project";
    // A project may have a file for other settings of a client that its owner does not use.
    if (entries.length === 0 && isProject) return [];
    const has = entries.length === 0 ? "has no servers" : `has ${plural(entries.length, "server")}, but not Catenary`;
    const advice = `to use the gateway there: catenary install ${client.name}${isProject ? " --project" : ""}`;
    return check("ok", `${has}; ${advice}`);
  } catch (error) {
    return check(
      "failed",
      `cannot be read: ${errorMessage(error)}`,
      "correct the file; the client cannot read it either",
    );
  }
}

type CreateCheck = (status: Check["status"], message: string, hint?: string) => Result[];

interface OwnUrl {
  readonly name: string;
  readonly url: URL;
}

/** The URL of an entry that is that of a running gateway, or on this machine and named as `catenary install` does. */
function ownUrl(name: string, entry: unknown, running: readonly URL[]): OwnUrl | undefined {
  const { url: oldUrl = bridgedUrl(entry), httpUrl = oldUrl, serverUrl: text = httpUrl } = isObject(entry) ? entry : {};
  if (typeof text !== "string" || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isRunning = running.some(({ hostname: host, port }) => isOwnUrl(text, { host, port: Number(port || 80) }));
  return isRunning || (name === "catenary" && isLoopback(url.hostname)) ? { name, url } : undefined;
}

/** The URL of an entry that starts `catenary run URL`. */
function bridgedUrl(entry: unknown): unknown {
  const { args } = isObject(entry) && isOwnEntry(entry) ? entry : {};
  const words: readonly unknown[] = Array.isArray(args) ? args : [];
  const url = words[words.indexOf("run") + 1];
  return typeof url === "string" && isHttpUrl(url) ? url : undefined;
}

async function checkOwnUrl({ name, url }: OwnUrl, check: CreateCheck): Promise<readonly Result[]> {
  const address = oneLine(`${url.origin}${url.pathname}`);
  if ((await checkTcp(url)).status === "ok") return check("ok", `uses the gateway at ${address} (${oneLine(name)})`);
  const message = `uses the gateway at ${address} (${oneLine(name)}), which does not run`;
  return check("warning", message, "start it: catenary up");
}

async function checkOwnEntries(
  entries: readonly (readonly [string, unknown])[],
  { name: clientName }: Client,
  check: CreateCheck,
): Promise<readonly Result[]> {
  const checks = entries.map(async ([name, entry]) => {
    const { command, args } = entry as { readonly command: unknown; readonly args?: unknown };
    const [first, ...rest] = [command, args].flat().filter((word) => typeof word === "string");
    const again = `write it anew: catenary install ${clientName} CONFIG`;
    const problem = first === undefined ? undefined : await findSpawnProblem({ command: first });
    if (problem !== undefined)
      return check("failed", `has an entry ${name} that cannot start: ${problem.message}`, again);
    const files = rest.filter((word) => word.startsWith("/"));
    const there = await Promise.all(files.map(async (path) => stat(path).catch(() => undefined)));
    const missing = files.find((_, at) => there[at] === undefined);
    if (missing !== undefined) return check("failed", `has an entry ${name}, but there is no ${missing}`, again);
    return check("ok", `starts the gateway (${name})`);
  });
  return (await Promise.all(checks)).flat();
}

const STYLES = { ok: "green", warning: "yellow", failed: "red" } as const;

let lastSubject = "";

function printChecks(checks: readonly Check[], isQuiet: boolean): void {
  const { stdout } = process;
  for (const { subject, check, status, message, hint } of checks) {
    if (isQuiet && status === "ok") continue;
    const safe = (text: string): string => hintFor(stdout, text);
    if (subject !== lastSubject) printTrusted(`${paint("bold", safe(oneLine(subject)), stdout)}\n`);
    lastSubject = subject;
    const [first = "", ...more] = message.split("\n");
    printTrusted(`  ${paint(STYLES[status], status.padEnd(7), stdout)}  ${check.padEnd(10)}  ${safe(first)}\n`);
    for (const line of more) printTrusted(`  ${" ".repeat(21)}${safe(line)}\n`);
    if (hint !== undefined) printTrusted(`  ${" ".repeat(19)}-> ${safe(hint)}\n`);
  }
}

function printSummary(failed: readonly Check[], checks: readonly Check[]): void {
  const warnings = checks.filter(({ status }) => status === "warning").length;
  const rest = warnings === 0 ? "" : `, ${plural(warnings, "warning")}`;
  const subjects = [...new Set(failed.map(({ subject }) => oneLine(subject)))].join(", ");
  printStatus(
    failed.length === 0 ? `Nothing failed${rest}` : `${plural(failed.length, "check")} failed (${subjects})${rest}`,
  );
}
