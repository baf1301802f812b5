// Connects callers, an empty chain and an upstream over real transports: stdio, Streamable HTTP or legacy SSE, on
// either side of the chain. Over stdio chain and upstream are processes; over HTTP they listen in this process. The
// upstream speaks one given revision, which the chain has to find out.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { chain } from "../../src/chain/chain.ts";
import type { UpstreamTarget } from "../../src/chain/upstream/options.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { connect, type Client, type ConnectOptions } from "../../src/client/index.ts";
import { serve } from "../../src/serve.ts";
import { stdioTransport } from "../../src/transport/stdio.ts";
import { compiled } from "../support/programs.ts";
import { makeChainServer } from "./matrix-server.ts";

export type TransportKind = "stdio" | "http" | "legacy sse";

export interface ChainTransports {
  /** Between the callers and the chain. */
  readonly front: TransportKind;
  /** Between the chain and the upstream. */
  readonly back: TransportKind;
}

export interface ChainLayout extends ChainTransports {
  /** The revision of the upstream. */
  readonly server: string;
}

/** Starts chains, upstreams and clients; `close` ends them, the newest first. */
export class ChainSetup {
  readonly #closing: (() => unknown)[] = [];

  /** A client of the given revision in front of a chain of its own. */
  async client(revision: string, { front, back, server }: ChainLayout, options: ConnectOptions): Promise<Client> {
    const target = await this.#upstream(back, server);
    const gateway =
      front === "stdio" ? this.#program("gateway-program", JSON.stringify(target)) : await this.#gateway(target, front);
    return this.connect(gateway, { ...options, revision });
  }

  /** Starts one chain and returns a target for each of two callers. Over stdio it is one process with two pipes. */
  async shared({ front, back, server }: ChainLayout): Promise<readonly [UpstreamTarget, UpstreamTarget]> {
    const target = await this.#upstream(back, server);
    if (front !== "stdio") {
      const address = await this.#gateway(target, front);
      return [address, address];
    }
    const { command, args, env } = this.#program("gateway-program", JSON.stringify(target), "--second");
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit", "pipe"], env: { ...process.env, ...env } });
    const exited = once(child, "exit");
    this.#onClose(() => exited);
    const [input, output, , second] = child.stdio as unknown as [Writable, Readable, null, Socket];
    return [stdioTransport({ input: output, output: input }), stdioTransport({ input: second, output: second })];
  }

  async connect(target: UpstreamTarget, options: ConnectOptions): Promise<Client> {
    const client = await connect(target, options);
    this.#onClose(() => client.close());
    return client;
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0)) await close();
  }

  async #upstream(transport: TransportKind, revision: string): Promise<UpstreamTarget> {
    if (transport === "stdio") return this.#program("server-program", revision);
    const { url, close } = await serve(makeChainServer(), { http: { port: 0, revisions: [revision] } });
    this.#onClose(close);
    return endpointUrl(url, transport);
  }

  /** Starts a chain in front of the upstream and returns its address. */
  async #gateway(target: UpstreamTarget, transport: Exclude<TransportKind, "stdio">): Promise<string> {
    const { url, close } = await serve(chain().to(upstream(target, { name: "behind" })), { http: { port: 0 } });
    this.#onClose(close);
    return endpointUrl(url, transport);
  }

  /** Runs a program of this folder with its own cache, because a gateway remembers there what its upstreams offer. */
  #program(name: string, ...args: readonly string[]): ProgramCommand {
    const cache = mkdtempSync(join(tmpdir(), "catenary-matrix-"));
    this.#onClose(() => rmSync(cache, { recursive: true, force: true }));
    const path = compiled(`${name}.ts`, import.meta.url);
    return { command: process.execPath, args: [path, ...args], env: { CATENARY_CACHE: cache } };
  }

  #onClose(close: () => unknown): void {
    this.#closing.unshift(close);
  }
}

function endpointUrl(url: string, transport: TransportKind): string {
  return transport === "legacy sse" ? new URL("/sse", url).href : url;
}

interface ProgramCommand {
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
}
