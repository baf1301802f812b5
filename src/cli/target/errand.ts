// One errand at an end: connect, do one thing, close, with all that a person sees of it meanwhile. Every command toward
// an end is such an errand; what it does there is its own file's affair. The connection, a child process with it, is
// closed whatever happens.

import { LONGEST_MS, type CallOptions } from "../../client/calls.ts";
import type { Client } from "../../client/client.ts";
import { connect, type ConnectOptions } from "../../client/connect.ts";
import type { LogLevel } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { LogMessageParams } from "../../protocol/model/index.ts";
import { elicitation } from "../terminal/elicitation.ts";
import { EXIT } from "../exit-codes.ts";
import { fitFor, oneLine } from "../terminal/harmless.ts";
import { Interruption } from "../terminal/interruption.ts";
import { Linewise } from "../terminal/linewise.ts";
import { Person } from "../terminal/person.ts";
import { ProgressLine } from "../terminal/progress-line.ts";
import { authorizerFor, openPage, takeToken, withAdvice } from "./sign-in.ts";
import { upstreamName, headersOf, rootsOf, type Upstream, type TargetValues } from "./target.ts";

export interface Errand {
  readonly client: Client;
  /** With every call: how it is cancelled, and where its progress goes. */
  readonly call: CallOptions;
  /** What is under way, for whoever waits. */
  readonly busy: (text: string) => void;
  /** A line for the person, unless they want none. */
  readonly note: (text: string) => void;
  /** Before data is written: nothing of ours stands on the screen then. */
  readonly done: () => void;
}

/** A first start may have to install something. */
const PATIENCE_MS = 60_000;
/** A file that is read comes as one message; over HTTP, as much is taken by default. */
const MESSAGE_BYTES = 64 * 1024 * 1024;
/** For the end of a call that was cancelled, and of a child process. */
const CANCEL_MS = 3_000;

/** Resolves to the exit code. */
export async function errand(
  { end, values }: { readonly end: Upstream; readonly values: TargetValues },
  work: (errand: Errand) => Promise<number>,
): Promise<number> {
  const token = values.token ?? takeToken();
  const options = await optionsOf(end, values);
  const line = new ProgressLine(process.stderr, { quiet: values.quiet === true, dumb: process.env["TERM"] === "dumb" });
  const interruption = new Interruption((text) => {
    line.idle();
    line.note(text);
  });
  const person = Person.isThere() ? new Person(line, interruption.interrupt) : undefined;
  const say = (text: string): void => line.note(fitFor(process.stderr, text));
  const stderr = new Linewise((text) => say(`stderr: ${text}`));
  const note = values.quiet === true ? (): void => undefined : say;
  const busy = (text: string): void => line.busy(text);
  const isPerson = person !== undefined && values["no-login"] !== true;
  let client: Client | undefined;
  try {
    busy(`Connecting to ${upstreamName(end)}`);
    const auth =
      end instanceof URL ? await authorizerFor(end, values, token, { isPerson, say, note, busy }) : undefined;
    const asks = person && elicitation(person, () => whoOf(client, end), openPage);
    client = await connect(end, {
      ...options,
      ...listeners(values, say, stderr),
      ...(auth === undefined ? undefined : { auth }),
      ...(asks === undefined ? undefined : { elicit: asks }),
      signal: interruption.connecting,
    });
    interruption.connected();
    line.idle();
    if (values.verbose === true) note(`Connected to ${whoOf(client, end)}, revision ${client.revision}`);
    const code = await work({
      client,
      call: { signal: interruption.signal, onProgress: (progress) => line.progress(progress) },
      busy,
      note,
      done: () => line.idle(),
    });
    return interruption.signal.aborted ? EXIT.interrupted : code;
  } catch (error) {
    if (interruption.signal.aborted) throw new ConnectionError("cancelled", "Cancelled", { cause: error });
    if (person === undefined && wantsPerson(error)) throw nobody(error);
    throw end instanceof URL ? withAdvice(error, { isPerson, hasToken: token !== undefined }) : error;
  } finally {
    line.idle();
    await client?.close(interruption.signal.aborted ? CANCEL_MS : undefined).catch(() => undefined);
    stderr.flush();
    interruption.end();
  }
}

function wantsPerson(error: unknown): error is McpError {
  if (!(error instanceof McpError) || error.kind !== "missing_capability") return false;
  const { requiredCapabilities: wanted } = error.data as { readonly requiredCapabilities?: unknown };
  return isObject(wanted) && wanted["elicitation"] !== undefined;
}

function nobody({ code, data }: McpError): McpError {
  const message = "The server wants to ask a person, and there is none: run it in a terminal";
  return new McpError(code, message, data);
}

async function optionsOf(end: Upstream, values: TargetValues): Promise<ConnectOptions> {
  const { revision, timeout } = values;
  const roots = await rootsOf(values);
  const ms = timeout === undefined ? undefined : Number(timeout) * 1_000;
  return {
    limits: { messageBytes: MESSAGE_BYTES },
    startTimeout: ms === undefined ? PATIENCE_MS : ms === 0 ? LONGEST_MS : ms,
    ...(ms === undefined ? undefined : { timeout: ms }),
    ...(revision === undefined ? undefined : { revision }),
    ...(roots.length === 0 ? undefined : { roots }),
    ...(end instanceof URL ? { headers: headersOf(values) } : undefined),
  };
}

/** What an end says beside its answers, where the person wants to hear it. */
function listeners(values: TargetValues, say: (text: string) => void, stderr: Linewise): ConnectOptions {
  const level = values["log-level"] ?? (values.verbose === true ? "info" : undefined);
  return {
    ...(level === undefined
      ? undefined
      : { logLevel: level as LogLevel, onLog: (message: LogMessageParams) => say(logText(message)) }),
    ...(values.verbose === true
      ? { onStderr: stderr.add, onNoise: (text: string) => say(`stdout, but no message: ${text}`) }
      : undefined),
  };
}

function logText({ level, logger, data }: LogMessageParams): string {
  const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "");
  return `[${typeof level === "string" ? oneLine(level) : "?"}] ${typeof logger === "string" ? `${oneLine(logger)}: ` : ""}${text}`;
}

function whoOf(client: Client | undefined, end: Upstream): string {
  const { name, version } = client?.server ?? {};
  return typeof name === "string" ? oneLine(`${name} ${version ?? ""}`) : upstreamName(end);
}
