// One front behind four doors: listening by itself, as a function of node:http, the same behind a framework that
// reads bodies and cuts paths first, and as a function of the web behind a bridge from node:http. What is shown at
// one must be shown at all.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { fetchHandler, nodeHandler, type FetchHandler, type MountOptions } from "../../../src/http.ts";
import { serve } from "../../../src/serve.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { closeAfterTest, Fixture } from "./fixture.ts";

export interface EntryPoint {
  readonly fixture: Fixture;
  readonly peer: HttpPeer;
}

export const ENTRY_POINTS: Readonly<Record<string, (options?: MountOptions) => Promise<EntryPoint>>> = {
  serve: async (options = {}) => {
    const fixture = new Fixture();
    const front = closeAfterTest(await serve(fixture.handler, { http: { port: 0, ...options } }));
    return { fixture: fixture, peer: closeAfterTest(new HttpPeer(front.url)) };
  },
  nodeHandler: async (options = {}) => {
    const fixture = new Fixture();
    return { fixture: fixture, peer: await mounted(closeAfterTest(nodeHandler(fixture.handler, options))) };
  },
  "nodeHandler in a framework": async (options = {}) => {
    const fixture = new Fixture();
    const handle = closeAfterTest(nodeHandler(fixture.handler, options));
    return {
      fixture: fixture,
      peer: await mounted((request, response) => void afterFramework(request, response, handle)),
    };
  },
  fetchHandler: async (options = {}) => {
    const fixture = new Fixture();
    const handle = closeAfterTest(fetchHandler(fixture.handler, options));
    return { fixture: fixture, peer: await mounted((request, response) => void bridge(request, response, handle)) };
  },
};

async function mounted(listener: RequestListener): Promise<HttpPeer> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closeAfterTest({
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  });
  const { port } = server.address() as AddressInfo;
  return closeAfterTest(new HttpPeer(`http://127.0.0.1:${port}/mcp`));
}

/** What a framework has done by the time a handler is called: the body is read, the path cut where it was mounted. */
async function afterFramework(
  request: IncomingMessage,
  response: ServerResponse,
  handle: RequestListener,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  let body: unknown;
  if (request.headers["content-type"]?.startsWith("application/json") === true) {
    try {
      body = JSON.parse(text);
    } catch {
      // A framework would answer by itself.
      response.writeHead(400).end("{}");
      return;
    }
  }
  Object.assign(request, { body, originalUrl: request.url, url: request.url?.replace(/^\/mcp/, "") || "/" });
  handle(request, response);
}

/** From node:http to the web and back, as servers for web handlers do it. */
async function bridge(request: IncomingMessage, response: ServerResponse, handle: FetchHandler): Promise<void> {
  const left = new AbortController();
  response.once("close", () => left.abort());
  const headers = new Headers();
  for (let n = 0; n < request.rawHeaders.length; n += 2) {
    headers.append(request.rawHeaders[n] ?? "", request.rawHeaders[n + 1] ?? "");
  }
  const hasBody = request.method !== "GET" && request.method !== "HEAD";
  const answer = await handle(
    new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method ?? "GET",
      headers,
      signal: left.signal,
      ...(hasBody && { body: Readable.toWeb(request) as unknown as NonNullable<RequestInit["body"]>, duplex: "half" }),
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) response.end();
  else {
    response.flushHeaders();
    Readable.fromWeb(answer.body)
      .on("error", () => response.destroy())
      .pipe(response);
  }
}
