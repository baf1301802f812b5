// Connects to the server, runs one command, and always disconnects. Every command with a TARGET uses this. It also
// shows the server's progress and log messages, and lets the user answer its questions.

import type { Gateway } from "../../chain/gateway.ts";
import type { CallOptions } from "../../client/calls.ts";
import type { Client } from "../../client/client.ts";
import { connect, type ConnectOptions } from "../../client/connect.ts";
import type { CodeSettings } from "../../config/live.ts";
import { abortable, deferred, MAX_DELAY_MS, onAbort, within } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import { defined, isObject } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import { McpError } from "../../protocol/errors.ts";
import type { LogMessageParams } from "../../protocol/model/index.ts";
import { EXIT, Interruption } from "../command.ts";
import { createElicitation } from "../terminal/elicitation.ts";
import { LineSplitter } from "../terminal/line-splitter.ts";
import { hintFor } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { ProgressLine } from "../terminal/progress-line.ts";
import { Prompter } from "../terminal/prompter.ts";
import { findAuthorizer, openPage, takeToken, withAdvice } from "./sign-in.ts";
import {
  parseHeaders,
  requireConfig,
  resolveRoots,
  targetName,
  TIMEOUT_MS,
  type CliTarget,
  type ConfigTarget,
  type TargetValues,
} from "./target.ts";

/** A server in this process. */
export interface LocalTarget {
  readonly handler: Handler;
  readonly name: string;
}

export interface CommandContext {
  readonly client: Client;
  /** Code mode as the config has it or by default, if the target is a config. */
  readonly code?: CodeSettings | undefined;
  /** Pass these options to every call, so that Ctrl-C cancels the call and its progress is shown. */
  readonly callOptions: CallOptions;
  /** Shows this text on the progress line if the work takes a while. */
  readonly busy: (text: string) => void;
  /** Prints a line on stderr, unless --quiet is given. */
  readonly note: (text: string) => void;
  /** Removes the progress line; call it before printing data. */
  readonly done: () => void;
}

/** How long a cancelled call, and then the child process, may take to end. */
const CANCEL_TIMEOUT_MS = 3_000;

/** Resolves to the exit code. */
export async function withClient(
  { target, values }: { readonly target: CliTarget | LocalTarget; readonly values: TargetValues },
  work: (context: CommandContext) => Promise<number>,
): Promise<number> {
  // Take the token out of the environment even if --token is given, so that no child process inherits it.
  const fromEnvironment = takeToken();
  const token =
    values.token ?? fromEnvironment ?? (target instanceof URL ? await localToken(target, values) : undefined);
  const options = await connectOptions(target, values);
  const line = new ProgressLine(process.stderr, { quiet: values.quiet === true, dumb: process.env["TERM"] === "dumb" });
  const interruption = new Interruption((text) => {
    line.stop();
    line.note(text);
  });
  const prompter = Prompter.isAvailable() ? new Prompter(interruption.interrupt, line) : undefined;
  const print = (text: string): void => line.note(hintFor(process.stderr, text));
  const stderr = new LineSplitter((text) => print(`stderr: ${text}`));
  const note = values.quiet === true ? (): void => undefined : print;
  const busy = (text: string): void => line.busy(text);
  const canSignIn = prompter !== undefined && values["no-login"] !== true;
  // Once connected, we close the connection ourselves, so that a cancelled call can still end.
  const connecting = new AbortController();
  const stopConnecting = onAbort(interruption.signal, () => connecting.abort(interruption.signal.reason));
  let client: Client | undefined;
  let gateway: LocalGateway | undefined;
  try {
    if ("config" in target) gateway = await openConfigTarget(target, values, print);
    busy(`Connecting to ${nameOf(target)}`);
    const auth =
      target instanceof URL ? await findAuthorizer(target, values, token, { canSignIn, print, note, busy }) : undefined;
    const elicit = prompter && createElicitation(prompter, () => serverName(client, target), openPage);
    client = await connect(
      "handler" in target ? target.handler : "config" in target ? (gateway?.handler as Handler) : target,
      {
        ...options,
        ...listeners(values, print, stderr),
        ...defined({ auth, elicit }),
        signal: connecting.signal,
      },
    );
    stopConnecting();
    await gateway?.started(options.startTimeoutMs ?? TIMEOUT_MS, interruption.signal, busy);
    line.stop();
    if (values.verbose === true) note(`Connected to ${serverName(client, target)}, revision ${client.revision}`);
    const code = await work({
      client,
      code: gateway?.code,
      callOptions: { signal: interruption.signal, onProgress: (progress) => line.progress(progress) },
      busy,
      note,
      done: () => line.stop(),
    });
    return interruption.signal.aborted ? EXIT.interrupted : code;
  } catch (error) {
    if (interruption.signal.aborted) throw new ConnectionError("cancelled", "Cancelled", { cause: error });
    if (prompter === undefined && needsUser(error)) throw noTerminal(error);
    throw target instanceof URL ? withAdvice(error, { canSignIn, hasToken: token !== undefined }) : error;
  } finally {
    line.stop();
    const budgetMs = interruption.signal.aborted ? CANCEL_TIMEOUT_MS : undefined;
    await client?.close(budgetMs).catch(() => undefined);
    await gateway?.close(budgetMs).catch(() => undefined);
    stderr.flush();
    interruption.dispose();
  }
}

/** The token of a gateway that this user runs on this machine, unless another credential is given. */
async function localToken({ href, hostname }: URL, { header = [] }: TargetValues): Promise<string | undefined> {
  if (!isLoopback(hostname) || header.some((text) => /^authorization:/i.test(text))) return undefined;
  const { tokenOf } = await import("../serve/control.ts");
  return tokenOf(href);
}

/** Whether the server refused the call because this client does not support elicitation. */
function needsUser(error: unknown): error is McpError {
  if (!(error instanceof McpError) || error.kind !== "missing_capability") return false;
  const { requiredCapabilities: required } = error.data as { readonly requiredCapabilities?: unknown };
  return isObject(required) && required["elicitation"] !== undefined;
}

function noTerminal({ code, data }: McpError): McpError {
  return new McpError(code, "The server wants to ask you something: run this command in a terminal", data);
}

async function connectOptions(target: CliTarget | LocalTarget, values: TargetValues): Promise<ConnectOptions> {
  const { revision, timeout: timeoutMs } = values;
  const roots = await resolveRoots(values);
  return {
    startTimeoutMs: timeoutMs === undefined ? TIMEOUT_MS : timeoutMs === 0 ? MAX_DELAY_MS : timeoutMs,
    ...defined({ timeoutMs, revision }),
    ...(roots.length > 0 && { roots }),
    ...(target instanceof URL && { headers: parseHeaders(values) }),
  };
}

/** Prints the log messages and the stderr of the server, if the flags ask for them. */
function listeners(values: TargetValues, print: (text: string) => void, stderr: LineSplitter): ConnectOptions {
  const level = values["log-level"] ?? (values.verbose === true ? "info" : undefined);
  return {
    ...(level !== undefined && { logLevel: level, onLog: (message) => print(formatLog(message)) }),
    ...(values.verbose === true && {
      onStderr: stderr.add,
      onNoise: (text: string) => print(`stdout (not a message): ${text}`),
    }),
  };
}

function formatLog({ level, logger, data }: LogMessageParams): string {
  const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "");
  return `[${typeof level === "string" ? oneLine(level) : "?"}] ${typeof logger === "string" ? `${oneLine(logger)}: ` : ""}${text}`;
}

function nameOf(target: CliTarget | LocalTarget): string {
  return "handler" in target ? target.name : targetName(target);
}

function serverName(client: Client | undefined, target: CliTarget | LocalTarget): string {
  const { name, version } = client?.server ?? {};
  return typeof name === "string" ? oneLine(`${name} ${version ?? ""}`) : nameOf(target);
}

/**
 * A config as the target of a command: its gateway runs in this process while the command runs. A list waits until the
 * servers have started, since a user would rather wait than see a part of it.
 */
interface LocalGateway {
  readonly handler: Gateway;
  /** Code mode, as the config has it or by default. */
  readonly code: CodeSettings;
  /** Waits until no server is starting any more, at most this long. `busy` shows which ones are. */
  started(limitMs: number, signal: AbortSignal, busy: (text: string) => void): Promise<void>;
  /** Ends all servers. */
  close(budgetMs?: number): Promise<void>;
}

async function openConfigTarget(
  { config, server, withoutCode }: ConfigTarget,
  values: TargetValues,
  print: (text: string) => void,
): Promise<LocalGateway> {
  const path = await requireConfig(config, "check");
  const { openGateway } = await import("../serve/gateway.ts");
  const text = server === undefined ? undefined : await (await import("../serve/trust.ts")).confirmConfig(path, false);
  const stderr = new Map<string, LineSplitter>();
  let changed = deferred();
  const report = {
    onState: (): void => {
      changed.resolve();
      changed = deferred();
    },
    onStderr: (name: string, text: string): void => {
      if (values.verbose !== true) return;
      const lines = stderr.get(name) ?? new LineSplitter((line) => print(`${oneLine(name)}: stderr: ${line}`));
      stderr.set(name, lines);
      lines.add(text);
    },
    onNoise: (name: string, line: string): void => {
      if (values.verbose === true) print(`${oneLine(name)}: stdout (not a message): ${line}`);
    },
    onWarning: (name: string, message: string): void => {
      if (values.verbose === true) print(`${oneLine(name)}: ${oneLine(message)}`);
    },
  };
  const off = withoutCode === true ? { code: false } : undefined;
  const { gateway, release, code } = await openGateway(path, report, false, { only: server, text, ...off });
  return {
    handler: gateway,
    code,
    async started(limitMs, signal, busy) {
      const until = performance.now() + limitMs;
      for (;;) {
        const starting = Object.entries(gateway.status()).filter(([, { state }]) => state === "starting");
        const leftMs = until - performance.now();
        if (starting.length === 0 || leftMs <= 0) return;
        busy(`Starting ${starting.map(([name]) => oneLine(name)).join(", ")}`);
        await abortable(signal, within(leftMs, changed.promise));
      }
    },
    async close(budgetMs) {
      await gateway.close(budgetMs);
      for (const lines of stderr.values()) lines.flush();
      release();
    },
  };
}
