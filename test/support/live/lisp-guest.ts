// A Lisp guest without a session around it, for tests of what happens inside SBCL: each request returns the guest's own
// reply, with the output of the request.

import { Guest } from "../../../src/live/guest.ts";
import { lispRuntime, type LispRuntime } from "../../../src/live/lisp/index.ts";
import { DEFAULT_LIMITS, type GuestEvaluation, type Limits } from "../../../src/live/runtime.ts";

export interface LispReply extends GuestEvaluation {
  readonly stdout: string;
  readonly stderr: string;
  readonly [key: string]: unknown;
}

export interface LispRequest {
  readonly id: number;
  readonly answer: Promise<LispReply>;
}

export interface LispGuest {
  readonly guest: Guest;
  readonly runtime: LispRuntime;
  /** Output outside all requests, and on descriptors 1 and 2. */
  raw(): string;
  ask(op: string, params?: Readonly<Record<string, unknown>>): LispRequest;
  evaluate(code: string, params?: Readonly<Record<string, unknown>>): Promise<LispReply>;
  close(): Promise<void>;
}

const LIMITS = { printLength: 100, printDepth: 10, outputChars: 100_000 };

export async function startLispGuest(limits: Partial<Limits> = {}, runtime = lispRuntime()): Promise<LispGuest> {
  const guest = await Guest.start(runtime, { ...DEFAULT_LIMITS, ...limits });
  let raw = "";
  guest.onRawOutput = (text) => void (raw += text);
  const ask = (op: string, params: Readonly<Record<string, unknown>> = {}): LispRequest => {
    const output = { stdout: "", stderr: "" };
    const { id, reply } = guest.request(op, { ...LIMITS, ...params }, (text, stream) => void (output[stream] += text));
    return { id, answer: reply.then((result) => ({ ...(result as unknown as GuestEvaluation), ...output })) };
  };
  return {
    guest,
    runtime,
    raw: () => raw,
    ask,
    evaluate: (code, params) => ask("eval", { code, ...params }).answer,
    async close() {
      await guest.close(0);
      await runtime.close?.();
    },
  };
}
