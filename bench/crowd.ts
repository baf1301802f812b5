// A crowd of callers: sessions with their streams and listens, by the thousand, in several processes, because one
// process would run out of time before the server does. It opens, it waits for news, and it says what each heard.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface CrowdSize {
  readonly sessions: number;
  /** Sessions that also have a stream open. */
  readonly streams: number;
  /** `subscriptions/listen` requests. */
  readonly listens: number;
}

/** What the streams of the crowd have heard, each for itself. */
export interface Counts {
  readonly streams: number;
  /** Streams that the server has ended. */
  readonly hungUp: number;
  readonly least: number;
  readonly most: number;
}

type Reply = Partial<Counts> & { readonly opened?: true; readonly heard?: true; readonly failed?: string };

export class Crowd {
  readonly #children: readonly ChildProcess[];

  constructor(url: string, processes: number) {
    const script = fileURLToPath(new URL("load-callers.js", import.meta.url));
    this.#children = Array.from({ length: processes }, (_, index) => {
      // On Linux all of 127/8 is this machine: with an address of its own, none runs out of ports.
      const address = process.platform === "linux" ? [`127.0.0.${index + 2}`] : [];
      return fork(script, [url, ...address], { execArgv: [] });
    });
  }

  async open(size: CrowdSize): Promise<void> {
    await this.#ask((index) => {
      const share = (count: number): number => {
        const all = this.#children.length;
        return Math.floor((count * (index + 1)) / all) - Math.floor((count * index) / all);
      };
      const { sessions, streams, listens } = size;
      return { open: { sessions: share(sessions), streams: share(streams), listens: share(listens) } };
    });
  }

  /** Resolves when every stream has heard the news so many times, in all. */
  async heard(times: number): Promise<void> {
    await this.#ask(() => ({ until: times }));
  }

  async counts(): Promise<Counts> {
    const replies = (await this.#ask(() => "counts")) as readonly Counts[];
    const sum = (key: keyof Counts): number => replies.reduce((total, reply) => total + reply[key], 0);
    return {
      streams: sum("streams"),
      hungUp: sum("hungUp"),
      least: Math.min(...replies.map(({ least }) => least)),
      most: Math.max(...replies.map(({ most }) => most)),
    };
  }

  /** All of its connections go at once. */
  async leave(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }),
    );
  }

  #ask(message: (index: number) => object | string): Promise<readonly Reply[]> {
    return Promise.all(
      this.#children.map(async (child, index) => {
        const answered = once(child, "message") as Promise<[Reply]>;
        child.send(message(index));
        const [reply] = await answered;
        if (reply.failed !== undefined) throw new Error(reply.failed);
        return reply;
      }),
    );
  }
}
