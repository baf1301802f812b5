// A JavaScript guest of a test's own: what it is asked goes straight to its process, with no session before it, so that
// a test sees the guest's own answers. What it prints is gathered for each evaluation.

import type { GuestReply } from "../../src/live/guest-messages.ts";
import { Guest } from "../../src/live/guest.ts";
import { jsLanguage, type JavaScriptGuestOptions } from "../../src/live/js/index.ts";
import { DEFAULT_LIMITS, type GuestEvaluation, type GuestText, type Limits } from "../../src/live/runtime.ts";

export type Evaluated = GuestEvaluation & { readonly stdout: string; readonly stderr: string };

const PRINTING = { printLength: 100, printLevel: 10, maxOutput: 100_000 };

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

  /** With `stop`, it is interrupted when that has settled. */
  async evaluate(code: string, stop?: Promise<unknown>, printing: object = {}): Promise<Evaluated> {
    this.#stdout = "";
    this.#stderr = "";
    const { id, reply } = this.guest.request("eval", { code, ...PRINTING, ...printing });
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
    return (await this.guest.request(op, { ...params, ...PRINTING }).reply) as unknown as GuestText;
  }

  async aside(op: string): Promise<GuestText> {
    return (await this.guest.control(op, {})) as unknown as GuestText;
  }

  close(): Promise<void> {
    return this.guest.close(0);
  }
}
