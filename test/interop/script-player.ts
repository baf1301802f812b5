// Plays a script of messages to a session-style server on stdio, and records every message that comes back. Requests of
// the server get fixed answers. Ids, which differ between two runs, are left out of the record.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import type { ServerCommand } from "./real-server-steps.ts";
import { WAIT_MS } from "../support/waiting.ts";

export type Loose = { readonly [key: string]: unknown };

/** A message of the client. One without `notify` is a request. */
export interface ScriptStep {
  readonly method: string;
  readonly params?: Loose;
  readonly notify?: true;
}

/** What a server said: its responses, and all other messages. */
export interface Played {
  readonly responses: readonly (readonly [step: ScriptStep, response: Loose])[];
  readonly others: readonly Loose[];
}

const ANSWERS: Readonly<Record<string, Loose>> = {
  "roots/list": { result: { roots: [] } },
  "sampling/createMessage": {
    result: { role: "assistant", model: "none", content: { type: "text", text: "sampled" } },
  },
  "elicitation/create": { result: { action: "decline" } },
  "acme/pick": { result: { picked: 1 } },
};
const UNKNOWN = { error: { code: -32601, message: "The client does not know this" } };

export class ScriptPlayer {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #exited: Promise<void>;
  readonly #responses = new Map<unknown, Loose>();
  readonly #others: Loose[] = [];
  readonly #played: [ScriptStep, Loose][] = [];
  #lastId = 0;
  #onMessage: () => void = () => undefined;

  constructor({ command, args, env }: ServerCommand) {
    this.#process = spawn(command, args, { env: { ...process.env, ...env } });
    this.#process.stderr.resume();
    this.#process.stdin.on("error", () => undefined);
    this.#exited = new Promise((resolve) => this.#process.once("close", () => resolve()));
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#take(JSON.parse(line) as Loose));
  }

  /** Sends each step after the response to the previous one. */
  async play(steps: readonly ScriptStep[]): Promise<void> {
    for (const { notify, ...message } of steps) {
      if (notify === true) this.#send({ ...message });
      else this.#played.push([message, await this.#request({ ...message })]);
    }
  }

  /** Waits for a message that the server sends on its own. */
  async received(method: string): Promise<void> {
    while (!this.#others.some((message) => message["method"] === method)) await this.#next(`No ${method}`);
  }

  /** The record so far. Messages that belong to no request may come later. */
  get played(): Played {
    return { responses: this.#played, others: sorted(this.#others) };
  }

  async close(): Promise<void> {
    this.#process.stdin.end();
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), WAIT_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  async #request(message: Loose): Promise<Loose> {
    const id = (this.#lastId += 1);
    this.#send({ id, ...message });
    for (;;) {
      const response = this.#responses.get(id);
      if (response !== undefined) return response;
      await this.#next(`No response to ${JSON.stringify(message)}`);
    }
  }

  /** Resolves with the next message. */
  async #next(problem: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(problem)), WAIT_MS);
      this.#onMessage = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #send(message: Loose): void {
    this.#process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #take({ jsonrpc: _jsonrpc, id, ...message }: Loose): void {
    const method = message["method"] as string | undefined;
    if (method === undefined) this.#responses.set(id, message);
    else {
      this.#others.push(message);
      if (id !== undefined) this.#send({ id, ...(ANSWERS[method] ?? UNKNOWN) });
    }
    this.#onMessage();
  }
}

/** The order of messages that belong to no request is not fixed. */
function sorted(messages: readonly Loose[]): readonly Loose[] {
  return messages
    .map((message) => [JSON.stringify(message), message] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, message]) => message);
}
