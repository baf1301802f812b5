// Runs a program to its end: without a shell and without input, with a time limit, and with its output kept at its
// beginning and its end. Ending the run ends all processes that it has started.

import { StringDecoder } from "node:string_decoder";
import { MAX_DELAY_MS } from "../core/async.ts";
import { OutputReports, type ProgressListener } from "../core/text.ts";
import { readPieces } from "../core/turn-budget.ts";
import { startChild, type ChildOptions, type Exit } from "../process/child.ts";

interface RunOptions extends Pick<ChildOptions, "command" | "args" | "cwd" | "env" | "inheritEnv"> {
  /** 0: no limit. */
  readonly timeoutMs: number;
  /** How many bytes of stdout are kept, and how many of stderr. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
  readonly onProgress?: ProgressListener;
}

export interface RunResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
  readonly hasTimedOut: boolean;
}

/** How long the processes may take to end after SIGTERM, before SIGKILL. */
const TERM_GRACE_MS = 2_000;

/** Rejects if the program cannot be started, or with the signal's reason when all its processes are gone. */
export async function runProgram(options: RunOptions): Promise<RunResult> {
  const { timeoutMs, maxOutputBytes, signal, onProgress, ...program } = options;
  signal.throwIfAborted();
  const reports = onProgress && new OutputReports(onProgress, false);
  const stderr = new OutputEnds(maxOutputBytes, reports);
  const stdout = new OutputEnds(maxOutputBytes, reports);
  const onStderr = (chunk: Buffer): void => stderr.write(chunk);
  // Its input has ended already, so that closing it begins with SIGTERM.
  const child = await startChild({ ...program, onStderr, stdinGraceMs: 0, termGraceMs: TERM_GRACE_MS });
  child.stdin.end();
  const output = readPieces(child.stdout, (piece) => stdout.write(piece));
  let hasTimedOut = false;
  const end = (): void => void child.close().catch(() => undefined);
  const expire = (): void => {
    hasTimedOut = true;
    end();
  };
  const timer = timeoutMs > 0 ? setTimeout(expire, Math.min(timeoutMs, MAX_DELAY_MS)) : undefined;
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    const exit = await child.finished;
    await output.finish();
    signal.throwIfAborted();
    return { ...exit, stdout: stdout.text(), stderr: stderr.text(), hasTimedOut };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    reports?.close();
  }
}

/** The beginning and the end of an output, each at most half of the budget. */
class OutputEnds {
  readonly #half: number;
  readonly #reports: OutputReports | undefined;
  readonly #decoder = new StringDecoder("utf8");
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #dropped = 0;

  constructor(maxBytes: number, reports?: OutputReports) {
    this.#half = Math.ceil(maxBytes / 2);
    this.#reports = reports;
  }

  write(chunk: Buffer): void {
    this.#reports?.write(this.#decoder.write(chunk), chunk.length);
    const forHead = chunk.subarray(0, this.#half - this.#headBytes);
    const rest = chunk.subarray(forHead.length);
    if (forHead.length > 0) this.#head.push(forHead);
    this.#headBytes += forHead.length;
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    // Joined now and then, so that many small chunks do not add up to a long list.
    if (this.#tailBytes > 2 * this.#half || this.#tail.length > 1_000) this.#cutTail();
  }

  /** Bytes that are not valid UTF-8 become U+FFFD. */
  text(): string {
    this.#cutTail();
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (this.#dropped === 0) return Buffer.concat([head, tail]).toString();
    const first = withoutCutEnd(head);
    const last = withoutCutStart(tail);
    const omitted = this.#dropped + head.length - first.length + tail.length - last.length;
    return `${first.toString()}\n[${omitted} bytes left out]\n${last.toString()}`;
  }

  #cutTail(): void {
    const all = Buffer.concat(this.#tail);
    const kept = all.subarray(Math.max(0, all.length - this.#half));
    this.#dropped += all.length - kept.length;
    // A copy, so that the rest of the memory is freed.
    this.#tail = [Buffer.from(kept)];
    this.#tailBytes = kept.length;
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Without the first bytes of a character whose other bytes are missing. */
function withoutCutEnd(bytes: Buffer): Buffer {
  let back = 1;
  while (back < 4 && isContinuation(bytes.at(-back))) back += 1;
  const first = bytes.at(-back) ?? 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
}

/** Without the last bytes of a character whose first byte is missing. */
function withoutCutStart(bytes: Buffer): Buffer {
  let at = 0;
  while (at < 3 && isContinuation(bytes[at])) at += 1;
  return bytes.subarray(at);
}
