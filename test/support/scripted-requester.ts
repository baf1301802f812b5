// A requester without a network: each request is answered by a function of the test, and kept for it to look at.

import type { HttpAnswer, HttpRequest, Requester } from "../../src/http/client/requester.ts";

export interface Scripted extends Requester {
  readonly requests: HttpRequest[];
  closed: boolean;
}

export type Script = (request: HttpRequest, count: number) => HttpAnswer | Promise<HttpAnswer>;

export function scripted(script: Script): Scripted {
  const requests: HttpRequest[] = [];
  const send = async (request: HttpRequest): Promise<HttpAnswer> => {
    requests.push(request);
    return script(request, requests.length);
  };
  const requester: Scripted = Object.assign(send, {
    requests,
    closed: false,
    close: () => {
      requester.closed = true;
    },
  });
  return requester;
}

export function answer(status: number, body = "", headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    if (body !== "") yield new TextEncoder().encode(body);
  }
  return {
    status,
    headers,
    body: bytes(),
    read: async (_limit, make) => make(Buffer.from(body)),
    text: async () => body,
    discard: () => undefined,
  };
}
