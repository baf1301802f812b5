// Callers, an empty chain and an end, joined by real wires: pipes between processes, Streamable HTTP, or the transport
// of the first revision, on either side of the chain. Over pipes chain and end are processes; over HTTP they listen
// here. An end is told which revision it speaks; the chain finds that out.

import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { chain } from "../../src/chain/chain.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { type UpstreamTarget } from "../../src/chain/upstream/options.ts";
import { connect, type Client, type ConnectOptions } from "../../src/client/index.ts";
import { serve } from "../../src/serve.ts";
import { stdioTransport } from "../../src/transport/stdio.ts";
import { makeChainServer } from "./chain-end-server.ts";
import { Scripts } from "./chain-scripts.ts";

export type Wire = "stdio" | "http" | "old sse";

export interface Arrangement {
  /** Between the callers and the chain. */
  readonly front: Wire;
  /** Between the chain and the end. */
  readonly back: Wire;
  readonly end: string;
}

/** What was made, let go of in the opposite order. */
export class Stage {
  readonly #closing: (() => unknown)[] = [];
  #scripts: Scripts | undefined;

  /** A chain of its own, for one caller. */
  async flow(caller: string, { front, back, end: revision }: Arrangement, options: ConnectOptions): Promise<Client> {
    const target = await this.upstream(back, revision);
    if (front === "stdio") {
      return this.connect(this.scripts.program("chain-gateway", JSON.stringify(target)), {
        ...options,
        revision: caller,
      });
    }
    return this.connect(await this.gateway(target, front), { ...options, revision: caller });
  }

  /** One chain for two callers; over stdio it is a process with a pipe for each. */
  async shared(front: Wire, back: Wire, revision: string): Promise<readonly [UpstreamTarget, UpstreamTarget]> {
    const target = await this.upstream(back, revision);
    if (front !== "stdio") {
      const address = await this.gateway(target, front);
      return [address, address];
    }
    const { command, args, env } = this.scripts.program("chain-gateway", JSON.stringify(target), "--second");
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit", "pipe"], env: { ...process.env, ...env } });
    const exited = once(child, "exit");
    this.later(() => exited);
    const [input, output, , second] = child.stdio as unknown as [Writable, Readable, null, Socket];
    return [stdioTransport({ input: output, output: input }), stdioTransport({ input: second, output: second })];
  }

  async connect(target: UpstreamTarget, options: ConnectOptions): Promise<Client> {
    const client = await connect(target, options);
    this.later(() => client.close());
    return client;
  }

  /** Where an end of this revision is. */
  async upstream(wire: Wire, revision: string): Promise<UpstreamTarget> {
    if (wire === "stdio") return this.scripts.program("chain-end", revision);
    const server = makeChainServer();
    const { url, close } = await serve(server, { http: { port: 0, revisions: [revision] } });
    this.later(close);
    return addressOn(url, wire);
  }

  /** Where callers reach a chain before this end. */
  async gateway(target: UpstreamTarget, wire: Exclude<Wire, "stdio">): Promise<string> {
    const { url, close } = await serve(chain().to(upstream(target, { name: "behind" })), { http: { port: 0 } });
    this.later(close);
    return addressOn(url, wire);
  }

  get scripts(): Scripts {
    if (this.#scripts === undefined) {
      const made = (this.#scripts = new Scripts());
      this.later(() => made.remove());
    }
    return this.#scripts;
  }

  later(close: () => unknown): void {
    this.#closing.unshift(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0)) await close();
    this.#scripts = undefined;
  }
}

function addressOn(url: string, wire: Wire): string {
  return wire === "old sse" ? new URL("/sse", url).href : url;
}
