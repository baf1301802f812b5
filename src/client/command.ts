// Connects to a server that is a command: starts the process, communicates over its stdin and stdout, and exposes its
// stderr and its noise, the lines on stdout that are not messages. If connecting fails, the error quotes both, since
// they usually explain it.

import { deferred } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { callListener, type ListenerErrors } from "../core/listeners.ts";
import { defined, lastLines, type Optional } from "../core/values.ts";
import { openConnection, type ServerConnection, type ServerConnectionOptions } from "../dialogue/connect.ts";
import type { Limits } from "../jsonrpc/codec.ts";
import { McpError } from "../protocol/errors.ts";
import type { ChildTransport, Noise } from "../transport/child-process.ts";
import type { Transport } from "../transport/transport.ts";

/** A program to start as a server. It is started without a shell. */
export interface Command {
  /** The program: a path, or a name that is looked up in PATH. */
  readonly command: string;
  /** Its arguments. */
  readonly args?: readonly string[] | undefined;
  /** Added to the environment that it inherits. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * Which variables of our environment it inherits. `false`: those that most programs need. `true`: all but the secrets
   * of Catenary. An array: those of `false`, and the variables of these names, in which `*` matches any characters.
   * Default: all for `connect()`, `false` for `upstream()`.
   */
  readonly inheritEnv?: boolean | readonly string[] | undefined;
  /** The folder in which it is started. Default: ours. */
  readonly cwd?: string | undefined;
}

/** Options of `connect()` for commands. */
export interface CommandOptions {
  /** Gets what the process writes to stderr. */
  readonly onStderr?: ((text: string) => void) | undefined;
  /** Gets each line on stdout that is not a message. */
  readonly onNoise?: ((line: string) => void) | undefined;
  /** The maximum size and depth of a message from the process. */
  readonly limits?: Optional<Limits> | undefined;
}

/** The process behind a connection. */
export interface Program {
  /** The id of the process, if it was started. */
  readonly pid: number | undefined;
  /** Lines on stdout that are not messages: their number and the last few. */
  readonly noise: Noise;
  /** The last 8 KiB of stderr. */
  stderrTail(): string;
}

/** How much of stderr an error quotes. */
const MAX_QUOTED_LENGTH = 1_000;

export async function openCommand(
  target: Command,
  { onStderr, onNoise, limits, onError }: CommandOptions & { readonly onError?: ListenerErrors | undefined },
  options: ServerConnectionOptions,
): Promise<{ opened: ServerConnection; program: Program }> {
  // Loaded on first use, since many clients start no process.
  const { childTransport } = await import("../transport/child-process.ts");
  let transport: ChildTransport | undefined;
  let firstOutput: Promise<void> | undefined;
  const start = (): Transport => {
    const decoder = new TextDecoder();
    const output = deferred();
    firstOutput = output.promise;
    transport = childTransport({
      ...target,
      ...defined({ limits }),
      onStderr: (chunk) => {
        output.resolve();
        callListener("onStderr", onStderr, [decoder.decode(chunk, { stream: true })], onError);
      },
      onNoise: (line) => {
        output.resolve();
        callListener("onNoise", onNoise, [line], onError);
      },
    });
    return transport;
  };
  try {
    const opened = await openConnection(start, { ...options, firstOutput: () => firstOutput });
    const program: Program = {
      get pid() {
        return transport?.child?.pid;
      },
      get noise() {
        return transport?.noise ?? { count: 0, last: [] };
      },
      stderrTail: () => transport?.stderrTail() ?? "",
    };
    return { opened, program };
  } catch (error) {
    throw withOutput(error, target.command, transport);
  }
}

function withOutput(error: unknown, command: string, transport: ChildTransport | undefined): unknown {
  // If the process has exited, the error already quotes its output.
  if (!(error instanceof ConnectionError) || (error.kind !== "timeout" && !(error.cause instanceof McpError))) {
    return error;
  }
  const { problem, subject, message, hint, diagnostics = "" } = error;
  // Leave out lines that the message already has: a gateway quotes the output of its upstream.
  const stderr = lastLines(transport?.stderrTail() ?? "", MAX_QUOTED_LENGTH)
    .split("\n")
    .filter((line) => line.trim() === "" || !message.includes(line.trim()))
    .join("\n")
    .trim();
  const noise = transport?.noise.last.slice(-3).join("\n") ?? "";
  const named =
    subject === undefined ? `${command}: ${problem}` : `${subject} ${command}${problem.slice(subject.length)}`;
  const output = [
    diagnostics,
    ...(noise === "" ? [] : [`\nits stdout has lines that are not messages:\n${noise}`]),
    ...(stderr === "" ? [] : [`\nthe end of its stderr:\n${stderr}`]),
  ];
  return new ConnectionError(error.kind, named, { cause: error, hint, diagnostics: output.join("") });
}
