// The four ways to serve over HTTP: serve(), nodeHandler(), nodeHandler() behind a framework that reads bodies and strips
// paths, and fetchHandler() behind an adapter from node:http. All must behave the same.

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
    return { fixture: fixture, peer: await mount(closeAfterTest(nodeHandler(fixture.handler, options))) };
  },
  "nodeHandler in a framework": async (options = {}) => {
    const fixture = new Fixture();
    const handle = closeAfterTest(nodeHandler(fixture.handler, options));
    return {
      fixture: fixture,
      peer: await mount((request, response) => void afterFramework(request, response, handle)),
    };
  },
  fetchHandler: async (options = {}) => {
    const fixture = new Fixture();
    const handle = closeAfterTest(fetchHandler(fixture.handler, options));
    return { fixture: fixture, peer: await mount((request, response) => void adapt(request, response, handle)) };
  },
};

async function mount(listener: RequestListener): Promise<HttpPeer> {
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

/** Does what a framework does before it calls a handler: reads the body and strips the mount path. */
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
      // A framework would answer this itself.
      response.writeHead(400).end("{}");
      return;
    }
  }
  Object.assign(request, { body, originalUrl: request.url, url: request.url?.replace(/^\/mcp/, "") || "/" });
  handle(request, response);
}

/** Converts between node:http and the Fetch API. */
async function adapt(request: IncomingMessage, response: ServerResponse, handle: FetchHandler): Promise<void> {
  const disconnected = new AbortController();
  response.once("close", () => disconnected.abort());
  const headers = new Headers();
  for (let n = 0; n < request.rawHeaders.length; n += 2) {
    headers.append(request.rawHeaders[n] ?? "", request.rawHeaders[n + 1] ?? "");
  }
  const hasBody = request.method !== "GET" && request.method !== "HEAD";
  const answer = await handle(
    new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method ?? "GET",
      headers,
      signal: disconnected.signal,
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
