// A requester without a network: each request is answered by a function of the test, and kept for it to look at.

import type { HttpResponse, ClientHttpRequest, Requester } from "../../../src/http/client/requester.ts";

export interface Scripted extends Requester {
  readonly requests: ClientHttpRequest[];
  closed: boolean;
}

export type Script = (request: ClientHttpRequest, count: number) => HttpResponse | Promise<HttpResponse>;

export function scripted(script: Script): Scripted {
  const requests: ClientHttpRequest[] = [];
  const send = async (request: ClientHttpRequest): Promise<HttpResponse> => {
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

export function answer(status: number, body = "", headers: Readonly<Record<string, string>> = {}): HttpResponse {
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
