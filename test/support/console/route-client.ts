// Sends requests to routes of the console in this process, and collects what they stream.

import { EventStream, type ApiRequest, type Route } from "../../../src/console/route.ts";

export interface StreamedEvent {
  readonly event: string;
  readonly data: { readonly [field: string]: unknown };
}

/** The events of a stream so far, and ways to wait for more. */
export class RouteStream {
  readonly events: StreamedEvent[] = [];
  readonly #controller = new AbortController();
  #waiting: (() => void)[] = [];
  isEnded = false;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  open(stream: EventStream): void {
    const wake = (): void => {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resume of waiting) resume();
    };
    const sendJson = (event: string, json: string): void => {
      this.events.push({ event, data: JSON.parse(json) as StreamedEvent["data"] });
      wake();
    };
    stream.open({
      sendJson,
      send: (event, data) => sendJson(event, JSON.stringify(data)),
      end: () => {
        this.isEnded = true;
        wake();
      },
      bufferedBytes: 0,
    });
  }

  /** As if the page had left. */
  leave(): void {
    this.#controller.abort();
  }

  /** Resolves to the data of the first event with this name. */
  async event(name: string): Promise<StreamedEvent["data"]> {
    for (;;) {
      const found = this.events.find(({ event }) => event === name);
      if (found !== undefined) return found.data;
      if (this.isEnded) throw new Error(`The stream has ended without ${name}: ${JSON.stringify(this.events)}`);
      await new Promise<void>((resume) => this.#waiting.push(resume));
    }
  }
}

export interface RouteClient {
  get(path: string, query?: Readonly<Record<string, string>>): Promise<unknown>;
  post(path: string, body: object): Promise<unknown>;
  stream(path: string, body: object): Promise<RouteStream>;
}

export function routeClient(routes: readonly Route[]): RouteClient {
  const run = async (method: string, path: string, request: Partial<ApiRequest>): Promise<unknown> => {
    const route = routes.find((one) => one.method === method && one.path === path);
    if (route === undefined) throw new Error(`There is no route ${method} ${path}`);
    const { signal } = new AbortController();
    return route.run({ params: {}, query: new URLSearchParams(), body: {}, signal, ...request });
  };
  return {
    get: (path, query = {}) => run("GET", path, { query: new URLSearchParams(query) }),
    post: (path, body) => run("POST", path, { body: body as ApiRequest["body"] }),
    stream: async (path, body) => {
      const stream = new RouteStream();
      const answer = await run("POST", path, { body: body as ApiRequest["body"], signal: stream.signal });
      if (!(answer instanceof EventStream)) throw new Error(`POST ${path} does not stream`);
      stream.open(answer);
      return stream;
    },
  };
}
