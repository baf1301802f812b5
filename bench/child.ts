// A server in a process of its own that is asked what it costs (see cost.js).

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Costs {
  readonly cpuMs: number;
  readonly rssMb: number;
}

export class MeasuredChild {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(script: string, ...args: string[]): Promise<MeasuredChild> {
    // Without what started us (a loader of TypeScript): the child is measured as it would run by itself.
    const child = fork(fileURLToPath(new URL(script, import.meta.url)), args, { execArgv: [] });
    const { url } = await reply<{ url: string }>(child, script);
    return new MeasuredChild(child, url);
  }

  async costs(): Promise<Costs> {
    const answered = reply<Costs>(this.#child, this.url);
    this.#child.send("costs");
    return answered;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

/** The next message of a child; a child that ends instead has failed. */
async function reply<T>(child: ChildProcess, what: string): Promise<T> {
  const done = new AbortController();
  const ended = once(child, "exit", { signal: done.signal }).then(([code]) => {
    throw new Error(`${what} ended with ${String(code)}`);
  });
  try {
    const [message] = (await Promise.race([once(child, "message", { signal: done.signal }), ended])) as [T];
    return message;
  } finally {
    done.abort();
    ended.catch(() => undefined);
  }
}
