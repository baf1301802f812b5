// Thousands of callers of one server, with sessions, streams and subscriptions. They run in several processes, because
// one would be slower than the server.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { programPath } from "./measured-server.ts";

export interface CallerCounts {
  readonly sessions: number;
  /** The number of sessions that also open a stream. */
  readonly streams: number;
  /** The number of `subscriptions/listen` requests. */
  readonly subscriptions: number;
}

/** The state of all streams. */
export interface StreamCounts {
  readonly streams: number;
  /** Streams that the server has ended. */
  readonly ended: number;
  /** The smallest and largest number of notifications on a stream. */
  readonly min: number;
  readonly max: number;
}

type Reply = Partial<StreamCounts> & { readonly opened?: true; readonly received?: true; readonly failed?: string };

export class ManyCallers {
  readonly #children: readonly ChildProcess[];

  constructor(url: string, processes: number) {
    const script = programPath("many-callers.js");
    this.#children = Array.from({ length: processes }, (_, index) => {
      // On Linux all of 127/8 is local. With an address of its own, no process runs out of ports.
      const address = process.platform === "linux" ? [`127.0.0.${index + 2}`] : [];
      return fork(script, [url, ...address], { execArgv: [] });
    });
  }

  async open(counts: CallerCounts): Promise<void> {
    await this.#send((index) => {
      const share = (count: number): number => {
        const all = this.#children.length;
        return Math.floor((count * (index + 1)) / all) - Math.floor((count * index) / all);
      };
      const { sessions, streams, subscriptions } = counts;
      return { open: { sessions: share(sessions), streams: share(streams), subscriptions: share(subscriptions) } };
    });
  }

  /** Resolves when every stream has received this many notifications. */
  async untilReceived(times: number): Promise<void> {
    await this.#send(() => ({ until: times }));
  }

  async counts(): Promise<StreamCounts> {
    const replies = (await this.#send(() => "counts")) as readonly StreamCounts[];
    const sum = (key: keyof StreamCounts): number => replies.reduce((total, reply) => total + reply[key], 0);
    return {
      streams: sum("streams"),
      ended: sum("ended"),
      min: Math.min(...replies.map(({ min }) => min)),
      max: Math.max(...replies.map(({ max }) => max)),
    };
  }

  /** Kills the processes, which closes all connections at once. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }),
    );
  }

  #send(message: (index: number) => object | string): Promise<readonly Reply[]> {
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
