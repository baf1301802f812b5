// A node:http server that passes each request to the test as a NodeHttpRequest, and raw socket clients for it. Both are
// closed when the test ends.

import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { NodeHttpRequest } from "../../../src/http/server/node-request.ts";
import { RawHttp } from "./raw-http.ts";

export type OnRequest = (httpRequest: NodeHttpRequest, request: IncomingMessage, response: ServerResponse) => void;

export interface NodeHttpServer {
  readonly port: number;
  open(): Promise<RawHttp>;
}

export async function nodeHttpServer(onRequest: OnRequest): Promise<NodeHttpServer> {
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    onRequest(new NodeHttpRequest(request, response), request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { port, open: () => openRawHttp(port) };
}

/** A raw connection that is closed when the test ends. */
export async function openRawHttp(port: number, host?: string): Promise<RawHttp> {
  const client = await RawHttp.open(port, host);
  onTestFinished(() => client.destroy());
  return client;
}
