// Serves a listener of node:http on a free port, and sends its URL to the parent. Where a peer takes web-standard
// requests, the adapter that the peers themselves recommend converts them.

import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";

export async function listen(listener) {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.send?.({ url: `http://127.0.0.1:${server.address().port}/mcp` });
}

export const listenFetch = (handler) => listen(getRequestListener(handler));
