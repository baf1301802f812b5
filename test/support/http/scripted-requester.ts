// A requester without a network: a function of the test answers each request, and the requests are recorded.

import type { HttpResponse, ClientHttpRequest, Requester } from "../../../src/http/client/requester.ts";

export interface ScriptedRequester extends Requester {
  readonly requests: ClientHttpRequest[];
  closed: boolean;
}

export type Script = (request: ClientHttpRequest, count: number) => HttpResponse | Promise<HttpResponse>;

export function scriptedRequester(script: Script): ScriptedRequester {
  const requests: ClientHttpRequest[] = [];
  const send = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    requests.push(request);
    return script(request, requests.length);
  };
  const requester: ScriptedRequester = Object.assign(send, {
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
