// The host's side of a guest process. Requests and replies are frames on fd 3. Everything that the process writes to
// fd 1 and 2 is raw output. Each request gets one reply, or is rejected when the process exits. The session decides
// when to send requests, interrupt them and end the process.

import { constants } from "node:os";
import { StringDecoder } from "node:string_decoder";
import { onAbort, within } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { PacedReader } from "../core/turn-budget.ts";
import { isObject, errorMessage } from "../core/values.ts";
import { startChild, type Child } from "../process/child.ts";
import { cpuTimeMs } from "../process/process-tree.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime, StopStep } from "./runtime.ts";
import { frame, FrameReader } from "./frames.ts";

export type OutputStream = "stdout" | "stderr";
export type OutputListener = (text: string, stream: OutputStream) => void;
/** The parameters of one request. Use a new object for each: `id` and `op` are added to it. */
export type GuestParams = { [param: string]: unknown };

/** A message from the guest, or the result in it. */
export type GuestReply = { readonly [key: string]: unknown };

/** How long a guest may take until it is ready. */
const START_TIMEOUT_MS = 60_000;
/** How long it may take to exit after its channel is closed. */
const EXIT_GRACE_MS = 300;

/**
 * The longest frame accepted: a fixed amount, plus some bytes for each character of output that is kept. Guests truncate
 * their replies, so a longer frame comes from the user's code, and reading it would block the host.
 */
const MIN_FRAME_LIMIT_BYTES = 1024 * 1024;
const FRAME_BYTES_PER_CHAR = 16;
/** A guest that leaves more answers unread is ended. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** How many turns a reply waits for output that was written before it. */
const MAX_OUTPUT_TURNS = 100;

/** A guest that sends more messages which belong to no request, in a second, is ended. */
const MAX_STRAYS = 1_000;
const STRAY_WINDOW_MS = 1_000;

const RUN_ENDED = "Tools can be called only while the code of a run is running, and this run has ended";

/** Gets what the guest sends about a request while it runs: calls of tools, and content to show. */
export type MessageListener = (message: GuestReply) => void;

interface PendingRequest {
  readonly onOutput: OutputListener | undefined;
  readonly onMessage: MessageListener | undefined;
  /** Whether raw output written before the reply must be read before the reply is delivered. */
  readonly readsOutputFirst: boolean;
  readonly resolve: (reply: GuestReply) => void;
  readonly reject: (error: Error) => void;
}

/** The process has exited, so the request gets no reply. */
export class GuestExited extends Error {
  /** Whether it exited by itself, with an exit code. */
  readonly isExit: boolean;

  constructor(how: string, isExit = false) {
    super(how);
    this.isExit = isExit;
  }
}

export class Guest {
  readonly child: Child;
  /** Called with output that belongs to no request. */
  onRawOutput: OutputListener = () => undefined;
  /** Called when the process has exited, with its exit code or signal. */
  onExit: (how: string) => void = () => undefined;
  version = "";
  /** The processes of the guest that the user's code has not started: more than one in a sandbox. Known once ready. */
  ownPids: readonly number[];
  /** The output limit of the latest request. */
  outputChars = 0;
  readonly #runtime: Runtime;
  readonly #pending = new Map<number, PendingRequest>();
  #nextId = 1;
  #exited: string | undefined;
  #strays = 0;
  #straysSince = 0;
  #markReady: (() => void) | undefined;

  private constructor(runtime: Runtime, child: Child, command: GuestCommand) {
    this.#runtime = runtime;
    this.child = child;
    this.ownPids = [child.pid];
    const maxBytes = (): number => MIN_FRAME_LIMIT_BYTES + FRAME_BYTES_PER_CHAR * this.outputChars;
    const frames = new FrameReader((text) => this.#receive(text), maxBytes);
    const { channel } = child;
    if (channel !== undefined) {
      // The user's code can write any number of frames.
      const reader = new PacedReader(channel, {
        take: (chunk, from) => {
          try {
            if (this.#exited === undefined) return frames.take(chunk, from);
          } catch (error) {
            this.#fail(`it violated the protocol: ${errorMessage(error)}`);
          }
          return chunk.length;
        },
      });
      reader.start();
      // Without its channel the process cannot be used any more, even if it still runs.
      channel.on("end", () => {
        reader.end();
        void this.close();
      });
    }
    const decoder = new StringDecoder("utf8");
    child.stdout.on("data", (chunk: Buffer) => this.#rawOutput(decoder.write(chunk), "stdout"));
    void child.exited.then(({ code, signal }) => {
      const how = command.usedTooMuch?.() ?? signal ?? (command.inner === undefined ? undefined : signalOf(code));
      this.#exit(how ?? `exit code ${code}`, how === undefined);
    });
  }

  /**
   * Resolves when the guest is ready. Rejects with a ConnectionError that has the reason and the end of stderr. Aborting
   * the signal ends the process.
   */
  static async start(runtime: Runtime, limits: Limits, signal?: AbortSignal): Promise<Guest> {
    const command = await runtime.start(limits);
    try {
      return await Guest.#spawn(runtime, command, signal);
    } catch (error) {
      const isCancelled = signal?.aborted === true;
      if ((await runtime.startFailed?.(command, isCancelled)) !== true || isCancelled) throw error;
      return Guest.#spawn(runtime, await runtime.start(limits), signal);
    }
  }

  static async #spawn(runtime: Runtime, command: GuestCommand, signal: AbortSignal | undefined): Promise<Guest> {
    const decoder = new StringDecoder("utf8");
    let guest: Guest | undefined;
    let child: Child;
    try {
      child = await startChild({
        inheritEnv: true,
        ...command,
        channel: true,
        stdinGraceMs: EXIT_GRACE_MS,
        termGraceMs: EXIT_GRACE_MS,
        onStderr: (chunk: Buffer) => {
          if (guest !== undefined) guest.#stderr(decoder.write(chunk));
        },
      });
    } catch (error) {
      command.onEnd?.();
      throw error instanceof ConnectionError
        ? error
        : new ConnectionError("spawn", errorMessage(error), { cause: error });
    }
    void child.finished.then(() => command.onEnd?.());
    const spawned = (guest = new Guest(runtime, child, command));
    const forget = onAbort(signal, () => void spawned.close(0));
    if (signal?.aborted === true) void spawned.close(0);
    const settled = new Promise<boolean>((resolve) => {
      spawned.#markReady = () => resolve(true);
      spawned.onExit = () => resolve(false);
    });
    const isReady = await within(START_TIMEOUT_MS, settled);
    forget();
    if (isReady !== true) {
      const reason = spawned.#exited ?? `it was not ready after ${START_TIMEOUT_MS / 1000} s`;
      await spawned.close(0);
      const tail = child.stderrTail().trim().slice(-500);
      const message = `A ${runtime.language} session could not be started (${(command.inner ?? command).command}): ${reason}`;
      throw new ConnectionError("spawn", tail === "" ? message : `${message}; stderr: ${tail}`, { mayHaveRun: false });
    }
    spawned.onExit = () => undefined;
    if (command.inner !== undefined) spawned.ownPids = await child.findPids();
    runtime.onReady?.();
    return spawned;
  }

  get pid(): number {
    return this.child.pid;
  }

  /** The processor time that it and its programs have used, where that is known. */
  readonly cpuMs = (): number | undefined => cpuTimeMs(this.child.pid);

  get hasExited(): boolean {
    return this.#exited !== undefined;
  }

  /** Sends a request to the evaluator. `onOutput` gets the output that the guest attributes to this request. */
  request(
    op: string,
    params: GuestParams,
    onOutput?: OutputListener,
    onMessage?: MessageListener,
  ): { readonly id: number; readonly reply: Promise<GuestReply> } {
    return this.#send(op, params, true, onOutput, onMessage);
  }

  /** Sends a request that is answered at once, even while the evaluator is busy. */
  control(op: string, params: GuestParams): Promise<GuestReply> {
    return this.#send(op, params, false).reply;
  }

  /**
   * Sends the answer to a call of a tool, unless it is longer than `maxBytes`. Returns its length in bytes. The guest
   * need not reply. `call` is its first member, so that a guest can hand it to the code that waits before it is parsed.
   */
  answer(params: GuestParams, maxBytes: number = Infinity): number {
    params["id"] = this.#nextId++;
    params["op"] = "call-result";
    const payload = JSON.stringify(params);
    const bytes = Buffer.byteLength(payload);
    const { channel } = this.child;
    if (bytes > maxBytes || this.#exited !== undefined || channel === undefined) return bytes;
    channel.write(`${bytes}\n${payload}`);
    if (channel.writableLength > MAX_UNREAD_BYTES) this.#fail("it did not read the answers to its calls");
    return bytes;
  }

  /** Stops or resumes reading raw output. While it is stopped, the process blocks once its pipe is full. */
  pauseOutput(isPaused: boolean): void {
    for (const stream of [this.child.stdout, this.child.stderr]) {
      if (isPaused) stream.pause();
      else stream.resume();
    }
  }

  /** Ends the process; a budget of 0 kills it at once. Resolves when its whole process group has ended. */
  async close(budgetMs?: number): Promise<void> {
    await this.child.close(budgetMs).catch(() => undefined);
  }

  #send(
    op: string,
    params: GuestParams,
    readsOutputFirst: boolean,
    onOutput?: OutputListener,
    onMessage?: MessageListener,
  ): { id: number; reply: Promise<GuestReply> } {
    const id = this.#nextId++;
    if (this.#exited !== undefined) return { id, reply: Promise.reject(new GuestExited(this.#exited)) };
    const reply = new Promise<GuestReply>((resolve, reject) => {
      this.#pending.set(id, { onOutput, onMessage, readsOutputFirst, resolve, reject });
    });
    params["id"] = id;
    params["op"] = op;
    const request = params as GuestParams & GuestRequest;
    this.child.channel?.write(frame(JSON.stringify(this.#runtime.prepare?.(request) ?? request)));
    return { id, reply };
  }

  #receive(text: string): void {
    const message = parseMessage(text);
    const { id, event, output } = message;
    const pending = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (pending !== undefined && output === undefined) {
      this.#pending.delete(id as number);
      this.#settle(pending, message);
      return;
    }
    if (pending !== undefined) this.#requestOutput(pending, message);
    else if (message["target"] !== undefined) this.#requestMessage(message);
    else if (event === "background") this.#backgroundOutput(String(message["text"]), message["stream"]);
    else if (event === "ready" && this.#markReady !== undefined) {
      this.version = String(message["version"]);
      this.#markReady();
      this.#markReady = undefined;
    } else this.#stray();
  }

  /** Counts a message that belongs to no request. A guest sends few of them by itself. */
  #stray(): void {
    const now = performance.now();
    if (now - this.#straysSince > STRAY_WINDOW_MS) {
      this.#straysSince = now;
      this.#strays = 0;
    }
    this.#strays += 1;
    if (this.#strays > MAX_STRAYS)
      this.#fail(`it sent more than ${MAX_STRAYS} messages in a second that belong to no request`);
  }

  #requestOutput({ onOutput }: PendingRequest, { output, stream }: GuestReply): void {
    if (typeof output !== "string") return;
    // The runtime may print messages about itself to the stderr of an evaluation.
    const text = stream === "stderr" ? this.#withoutNoise(output) : output;
    if (text !== "") onOutput?.(text, stream === "stderr" ? "stderr" : "stdout");
  }

  #requestMessage(message: GuestReply): void {
    const { target, call } = message;
    const onMessage = typeof target === "number" ? this.#pending.get(target)?.onMessage : undefined;
    if (onMessage !== undefined) return onMessage(message);
    this.#stray();
    if (typeof call === "number") this.answer({ call, error: { kind: "cancelled", message: RUN_ENDED } });
  }

  #settle(pending: PendingRequest, { result, error }: GuestReply): void {
    const settle = (): void => {
      if (typeof error === "string") pending.reject(new Error(error));
      else pending.resolve(isObject(result) ? result : {});
    };
    if (pending.readsOutputFirst) this.#afterOutput(settle);
    else settle();
  }

  /** Output that was written before is readable by now: this turn of the event loop reads it, or the next ones. */
  #afterOutput(act: () => void, turns = MAX_OUTPUT_TURNS): void {
    setImmediate(() => {
      if (turns > 0 && this.child.isBehind) this.#afterOutput(act, turns - 1);
      else act();
    });
  }

  /** What other threads print; what the guest reports about them comes without a stream. */
  #backgroundOutput(text: string, stream: unknown): void {
    if (stream === "stdout") this.#rawOutput(text, "stdout");
    else this.#stderr(text);
  }

  #stderr(text: string): void {
    this.#rawOutput(this.#withoutNoise(text), "stderr");
  }

  #withoutNoise(text: string): string {
    const { noise } = this.#runtime;
    return noise === undefined ? text : text.replaceAll(noise, "");
  }

  #rawOutput(text: string, stream: OutputStream): void {
    if (text !== "") this.onRawOutput(text, stream);
  }

  /** Ends a process that cannot be used any more. */
  #fail(why: string): void {
    this.#exit(why);
    void this.close(0);
  }

  #exit(how: string, isExit = false): void {
    if (this.#exited !== undefined) return;
    this.#exited = how;
    // Deliver the last output first, as in #settle.
    this.#afterOutput(() => {
      for (const { reject } of this.#pending.values()) reject(new GuestExited(how, isExit));
      this.#pending.clear();
      this.onExit(how);
    });
  }
}

/** In a sandbox, the exit code of a program that a signal has ended is 128 and the number of the signal, as in a shell. */
function signalOf(code: number | null): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === (code ?? 0) - 128)?.[0];
}

/** Throws if the text is not a message. The user's code can write to the channel too. */
function parseMessage(text: string): GuestReply {
  // JSON can contain an escaped half of a surrogate pair, which many clients refuse.
  const message: unknown = /\\ud/i.test(text) ? JSON.parse(text, withoutLoneSurrogates) : JSON.parse(text);
  if (!isObject(message)) throw new Error("a message is not an object");
  return message;
}

function withoutLoneSurrogates(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.replace(/\p{Cs}/gu, "\ufffd") : value;
}

/** How an evaluation was stopped. "children" kills the programs that it waits for; "restart" ends the process, and its state is lost. */
export type Step = StopStep | "children" | "restart";

/** How long each step may take before the next is tried. */
const STEP_TIMEOUT_MS = 2_000;
/** How long code may take to end, once the programs that it waited for were killed. */
const CHILDREN_TIMEOUT_MS = 1_000;

/**
 * Waits as `within` does, but in ten parts: when the machine has stalled, timers fire before what was received meanwhile
 * is read. So a stall counts as one part, and does not cost a session its state.
 */
async function withinParts<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  for (let part = 0; part < 10; part += 1) {
    const value = await within(ms / 10, promise);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Stops the request `target`, whose reply is `reply`, and returns the step that worked. */
export async function stopRequest(
  guest: Guest,
  steps: readonly StopStep[],
  target: number,
  reply: Promise<GuestReply>,
): Promise<Step> {
  const answered = reply.then(
    () => true,
    () => true,
  );
  for (const step of steps) {
    // A guest that does not support the step refuses at once.
    const stopped = guest.control(step, { target }).then(
      () => answered,
      () => false,
    );
    const isStopped = await withinParts(STEP_TIMEOUT_MS, Promise.race([answered, stopped]));
    if (guest.hasExited) break;
    if (isStopped === true) return step;
  }
  // Code that waits for a program which it has started cannot be interrupted, but it goes on when the program ends.
  if (!guest.hasExited && (await killDescendants(guest))) {
    for (const step of ["interrupt", undefined] as const) {
      const isStopped = await withinParts(CHILDREN_TIMEOUT_MS, answered);
      if (isStopped === true && !guest.hasExited) return "children";
      // It may go on with other work instead of ending.
      if (step !== undefined && !guest.hasExited) guest.control(step, { target }).catch(() => undefined);
    }
  }
  await guest.close(0);
  return "restart";
}

/** Returns whether there were any. */
async function killDescendants({ child, ownPids }: Guest): Promise<boolean> {
  const others = (await child.findPids()).filter((pid) => !ownPids.includes(pid));
  for (const other of others) {
    try {
      process.kill(other, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
  return others.length > 0;
}
