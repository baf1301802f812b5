// An end that is a program: started here, spoken to over its stdin and stdout, and shown to the client's owner as
// far as it is more than an end: what it wrote where only messages belong, and the last of its stderr. A program
// that never came to speak says why in one of these two; an error about it quotes both.

import { ConnectionError } from "../core/errors.ts";
import { lastLines } from "../core/text.ts";
import { open, type Opened, type OpenOptions } from "../dialogue/connect.ts";
import { McpError } from "../protocol/errors.ts";
import type { ChildTransport, ChildTransportOptions, Noise } from "../transport/child.ts";
import type { Transport } from "../transport/transport.ts";
import { tell } from "./contexts.ts";

export interface Command {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface CommandOptions {
  /** What a command writes to its stderr. */
  readonly onStderr?: (text: string) => void;
  /** Each line on a command's stdout that is no message. */
  readonly onNoise?: (line: string) => void;
  /** How long and how deep a message of a command may be. */
  readonly limits?: NonNullable<ChildTransportOptions["limits"]>;
}

/** The program behind a connection. */
export interface Program {
  readonly pid: number | undefined;
  /** Lines on its stdout that are no messages: how many, and the last few. */
  readonly noise: Noise;
  /** The last 8 KiB that it wrote to its stderr. */
  stderrTail(): string;
}

/** How much of a program's stderr an error quotes. */
const EVIDENCE_LENGTH = 1_000;
/** How many errors about an end begin; with its name they say which. */
const THE_END = "The end ";

export async function openCommand(
  target: Command,
  { onStderr, onNoise, limits }: CommandOptions,
  how: OpenOptions,
): Promise<{ opened: Opened; program: Program }> {
  // Loaded here: who connects to no command needs no child processes.
  const { childTransport } = await import("../transport/child.ts");
  let started: ChildTransport | undefined;
  const start = (): Transport => {
    const decoder = new TextDecoder();
    started = childTransport({
      ...target,
      ...(limits === undefined ? undefined : { limits }),
      onStderr: (chunk) => tell(onStderr, decoder.decode(chunk, { stream: true })),
      onNoise: (line) => tell(onNoise, line),
    });
    return started;
  };
  try {
    const opened = await open(start, how);
    const program: Program = {
      get pid() {
        return started?.child?.pid;
      },
      get noise() {
        return started?.noise ?? { count: 0, last: [] };
      },
      stderrTail: () => started?.stderrTail() ?? "",
    };
    return { opened, program };
  } catch (error) {
    throw withEvidence(error, target.command, started);
  }
}

function withEvidence(error: unknown, command: string, started: ChildTransport | undefined): unknown {
  // One that has ended says all this itself.
  if (!(error instanceof ConnectionError) || (error.kind !== "timeout" && !(error.cause instanceof McpError)))
    return error;
  const { message } = error;
  // A program that stands before another has perhaps quoted it already.
  const said = lastLines(started?.stderrTail() ?? "", EVIDENCE_LENGTH)
    .split("\n")
    .filter((line) => line.trim() === "" || !message.includes(line.trim()))
    .join("\n")
    .trim();
  const noise = started?.noise.last.slice(-3).join("\n") ?? "";
  const named = message.startsWith(THE_END)
    ? `${THE_END}${command} ${message.slice(THE_END.length)}`
    : `${command}: ${message}`;
  const evidence = [
    ...(noise === "" ? [] : [`\non its stdout, where only messages belong:\n${noise}`]),
    ...(said === "" ? [] : [`\nthe end of its stderr:\n${said}`]),
  ];
  return new ConnectionError(error.kind, named, { cause: error, evidence: evidence.join("") });
}
