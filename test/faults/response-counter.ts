// Checks that every request gets exactly one response. It counts on the transport, because clients drop a second
// response. There is one counter for each caller, for any transport.

import type { Inbound, Transport } from "../../src/transport/transport.ts";
import type { Message } from "../../src/jsonrpc/message.ts";

export class ResponseCounter {
  /** The number of responses by request id. */
  readonly #counts = new Map<string, number>();

  sent(message: unknown): void {
    const { id, method } = message as { id?: unknown; method?: unknown };
    // A subscription is answered when it ends, or not at all.
    if (id === undefined || typeof method !== "string" || method === "subscriptions/listen") return;
    this.#counts.set(JSON.stringify(id), 0);
  }

  received(message: unknown): void {
    const { id, method } = message as { id?: unknown; method?: unknown };
    if (id === undefined || id === null || method !== undefined) return;
    const key = JSON.stringify(id);
    const count = this.#counts.get(key);
    if (count !== undefined) this.#counts.set(key, count + 1);
  }

  /** The requests that did not get exactly one response. Those of subscriptions are not counted. */
  faults(caller: string): string[] {
    return [...this.#counts].flatMap(([id, count]) =>
      count === 1 ? [] : [`${caller}: the request ${id} got ${count} responses`],
    );
  }
}

/** Counts the messages of a transport. */
export function countTransport(transport: Transport, counter: ResponseCounter): Transport {
  return {
    start: (receive) =>
      transport.start((inbound: Inbound) => {
        if (inbound.kind === "message") counter.received(inbound.message);
        receive(inbound);
      }),
    send: (message: Message | readonly Message[], options) => {
      for (const one of Array.isArray(message) ? (message as readonly Message[]) : [message]) counter.sent(one);
      return transport.send(message, options);
    },
    close: (budgetMs) => transport.close(budgetMs),
  };
}

/** Counts the messages in the bodies of requests and responses, as JSON and as events. */
export function countFetch(counter: ResponseCounter): typeof fetch {
  return async (input, init) => {
    const body = init?.body;
    if (typeof body === "string") counter.sent(JSON.parse(body));
    else if (body instanceof Uint8Array) counter.sent(JSON.parse(Buffer.from(body).toString()));
    const response = await fetch(input, init);
    if (response.body !== null) void read(response.clone(), counter).catch(() => undefined);
    return response;
  };
}

async function read(response: Response, counter: ResponseCounter): Promise<void> {
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  if (isJson) {
    counter.received(await response.json());
    return;
  }
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: {")) counter.received(JSON.parse(line.slice(6)));
  }
}
