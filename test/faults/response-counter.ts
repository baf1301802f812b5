// Every request that a caller sends is answered once: counted on the wire itself, where a second answer would be seen
// that no client would ever show. One tally for each caller, whatever its wire.

import type { Inbound, Transport } from "../../src/transport/transport.ts";
import type { Message } from "../../src/jsonrpc/message.ts";

export class Tally {
  /** Answers by request. */
  readonly #answers = new Map<string, number>();
  readonly #strays: string[] = [];

  sent(message: unknown): void {
    const { id, method } = message as { id?: unknown; method?: unknown };
    // A listen is answered when it is over, or not at all.
    if (id === undefined || typeof method !== "string" || method === "subscriptions/listen") return;
    this.#answers.set(JSON.stringify(id), 0);
  }

  received(message: unknown): void {
    const { id, method } = message as { id?: unknown; method?: unknown };
    if (id === undefined || id === null || method !== undefined) return;
    const key = JSON.stringify(id);
    const count = this.#answers.get(key);
    if (count === undefined) this.#strays.push(key);
    else this.#answers.set(key, count + 1);
  }

  /** What was not answered exactly once. Answers to listens are nobody's concern here. */
  faults(who: string): string[] {
    return [...this.#answers].flatMap(([id, count]) =>
      count === 1 ? [] : [`${who}: the request ${id} was answered ${count} times`],
    );
  }
}

/** A wire whose messages are counted. */
export function counted(transport: Transport, tally: Tally): Transport {
  return {
    start: (receive) =>
      transport.start((inbound: Inbound) => {
        if (inbound.message !== undefined) tally.received(inbound.message);
        receive(inbound);
      }),
    send: (message: Message | readonly Message[], options) => {
      for (const one of Array.isArray(message) ? (message as readonly Message[]) : [message]) tally.sent(one);
      return transport.send(message, options);
    },
    close: (budgetMs) => transport.close(budgetMs),
  };
}

/** A fetch whose bodies are counted, ours and those that come back, as JSON and as events. */
export function countedFetch(tally: Tally): typeof fetch {
  return async (input, init) => {
    const body = init?.body;
    if (typeof body === "string") tally.sent(JSON.parse(body));
    else if (body instanceof Uint8Array) tally.sent(JSON.parse(Buffer.from(body).toString()));
    const response = await fetch(input, init);
    if (response.body !== null) void read(response.clone(), tally).catch(() => undefined);
    return response;
  };
}

async function read(response: Response, tally: Tally): Promise<void> {
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  if (isJson) {
    tally.received(await response.json());
    return;
  }
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: {")) tally.received(JSON.parse(line.slice(6)));
  }
}
