// A JavaScript guest without a session around it, so that a test sees the guest's own replies. Output is collected for each
// evaluation.

import { Guest, type GuestReply } from "../../../src/live/guest.ts";
import { jsLanguage, type JavaScriptGuestOptions } from "../../../src/live/js/index.ts";
import { DEFAULT_LIMITS, type GuestEvaluation, type GuestText, type Limits } from "../../../src/live/runtime.ts";

export type EvaluationWithOutput = GuestEvaluation & { readonly stdout: string; readonly stderr: string };

const PRINT_LIMITS = { printLength: 100, printDepth: 10, outputChars: 100_000 };

export class JavaScriptGuest {
  readonly guest: Guest;
  #stdout = "";
  #stderr = "";

  private constructor(guest: Guest) {
    this.guest = guest;
    guest.onRawOutput = (text, stream) => {
      if (stream === "stdout") this.#stdout += text;
      else this.#stderr += text;
    };
  }

  static async start(options: JavaScriptGuestOptions = {}, limits: Partial<Limits> = {}): Promise<JavaScriptGuest> {
    return new JavaScriptGuest(await Guest.start(jsLanguage(options).runtime, { ...DEFAULT_LIMITS, ...limits }));
  }

  /** If `stop` is given, the evaluation is interrupted when it resolves. */
  async evaluate(code: string, stop?: Promise<unknown>, printing: object = {}): Promise<EvaluationWithOutput> {
    this.#stdout = "";
    this.#stderr = "";
    const { id, reply } = this.guest.request("eval", { code, ...PRINT_LIMITS, ...printing });
    void stop?.then(() => this.guest.control("interrupt", { target: id }));
    const evaluation = (await reply) as unknown as GuestEvaluation;
    return { ...evaluation, stdout: this.#stdout, stderr: this.#stderr };
  }

  /** The printed value of code that must not fail. */
  async value(code: string): Promise<string | undefined> {
    const { status, values, condition } = await this.evaluate(code);
    if (status !== "ok") throw new Error(`${code}: ${condition?.type} ${condition?.message}`);
    return values[0];
  }

  /** What was printed since the last evaluation began. */
  get printed(): string {
    return this.#stdout + this.#stderr;
  }

  async tool(op: string, params: GuestReply = {}): Promise<GuestText> {
    return (await this.guest.request(op, { ...params, ...PRINT_LIMITS }).reply) as unknown as GuestText;
  }

  /** Sends a request that is answered while an evaluation runs. */
  async control(op: string): Promise<GuestText> {
    return (await this.guest.control(op, {})) as unknown as GuestText;
  }

  close(): Promise<void> {
    return this.guest.close(0);
  }
}
