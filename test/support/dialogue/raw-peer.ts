// A peer that sends and receives raw messages: tests send what they like and wait for what they expect.

import type { Message } from "../../../src/jsonrpc/message.ts";
import type { Transport } from "../../../src/transport/transport.ts";

type Loose = { readonly [key: string]: unknown };

export class RawPeer {
  /** Every message received, in order. */
  readonly received: Loose[] = [];
  ended = false;
  readonly #transport: Transport;
  #waiting: (() => void)[] = [];

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async start(): Promise<this> {
    await this.#transport.start((inbound) => {
      if (inbound.kind === "end") this.ended = true;
      if (inbound.kind === "message") this.received.push(inbound.message as unknown as Loose);
      if (inbound.kind === "batch")
        this.received.push({ batch: inbound.items.map((item) => ("message" in item ? item.message : item.fault)) });
      for (const wake of this.#waiting.splice(0)) wake();
    });
    return this;
  }

  /** Sends messages unchecked, since a test may send invalid ones. */
  send(...messages: readonly Loose[]): void {
    for (const message of messages) void this.#transport.send({ jsonrpc: "2.0", ...message } as unknown as Message);
  }

  sendBatch(messages: readonly Loose[]): void {
    void this.#transport.send(messages.map((message) => ({ jsonrpc: "2.0", ...message }) as unknown as Message));
  }

  /** The first message that matches, already received or still to come. */
  async until(matches: (message: Loose) => boolean): Promise<Loose> {
    for (;;) {
      const found = this.received.find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async answerTo(id: unknown): Promise<Loose> {
    return this.until((message) => message["id"] === id && !("method" in message));
  }

  async request(message: Loose): Promise<Loose> {
    this.send(message);
    return this.answerTo(message["id"]);
  }

  /** Opens a session in this revision. */
  async handshake(protocolVersion: string, capabilities: Loose = {}): Promise<Loose> {
    const answer = await this.request({
      id: "init",
      method: "initialize",
      params: { protocolVersion, capabilities, clientInfo: { name: "raw", version: "1" } },
    });
    this.send({ method: "notifications/initialized" });
    return answer;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}

/** The `_meta` of a stateless request. */
export function statelessMeta(revision: string, capabilities: Loose = {}, more: Loose = {}): Loose {
  return {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...more,
  };
}
