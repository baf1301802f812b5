// Clients that make the server hold bytes, by not reading their answers or by not finishing their bodies. The server
// holds no more than it may, answers the others, and holds nothing in the end.

import { expect, it } from "vitest";
import { nodeHttpServer, type NodeHttpServer } from "../../../test/support/http/node-http-server.ts";
import type { RawHttp } from "../../../test/support/http/raw-http.ts";
import { WAIT_MS } from "../../../test/support/waiting.ts";
import type { Handler } from "../../core/handler.ts";
import { META } from "../../protocol/model/base.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import type { HttpLimits } from "./fields.ts";
import type { FixedLimits } from "./options.ts";
import type { HttpRouter } from "./router.ts";
import { createFront } from "./mount.ts";
import { IS_LONG, sampleOf } from "../../../test/support/thoroughness.ts";

const MIB = 1024 * 1024;
/** More than the system buffers for one connection. */
const LONG = "x".repeat(16 * MIB);

interface Started extends NodeHttpServer {
  readonly router: HttpRouter;
}

async function start(fixed: Partial<FixedLimits>, limits: Partial<HttpLimits> = {}): Promise<Started> {
  const handler: Handler = async ({ params }, context) => {
    if (params["name"] === "stream") context.notify({ method: "notifications/progress", params: { progress: 1 } });
    const text = params["name"] === "short" ? "short" : LONG;
    return { resultType: "complete", content: [{ type: "text", text }] };
  };
  const router = createFront(handler, { limits }, undefined, fixed);
  const server = await nodeHttpServer((request) => router.handle(request));
  return { ...server, router };
}

function head(length: number | undefined, name = ""): string[] {
  return [
    "POST /mcp HTTP/1.1",
    "Host: localhost",
    "Content-Type: application/json",
    `MCP-Protocol-Version: ${NEWEST.name}`,
    "Mcp-Method: tools/call",
    `Mcp-Name: ${name}`,
    length === undefined ? "Transfer-Encoding: chunked" : `Content-Length: ${length}`,
  ];
}

function call(client: RawHttp, name: string): void {
  const _meta = { [META.revision]: NEWEST.name, [META.clientCapabilities]: {}, progressToken: 1 };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, _meta } });
  client.send(head(body.length, name), body);
}

async function isServed({ open }: Started): Promise<boolean> {
  const client = await open();
  call(client, "short");
  return (await client.answer()).body.includes('"short"');
}

/** Calls and reads nothing but the head of the response. */
async function callAndStall({ open }: Started, name: string): Promise<RawHttp> {
  const client = await open();
  call(client, name);
  await client.head();
  client.socket.pause();
  return client;
}

it.each(sampleOf(1, ["json", "stream"]))("answers that are not read are held within the limit (%s)", async (name) => {
  const started = await start({ heldBytes: 40 * MIB });
  const { router } = started;
  const stalled: RawHttp[] = [];
  for (let n = 0; n < 8; n += 1) {
    stalled.push(await callAndStall(started, name));
    expect(router.heldBytes).toBeLessThanOrEqual(40 * MIB);
    expect(await isServed(started)).toBe(true);
  }
  // At least one is still held: not everybody is disconnected.
  expect(router.heldBytes).toBeGreaterThan(0);
  for (const { socket } of stalled) socket.destroy();
  await expect.poll(() => router.heldBytes).toBe(0);
});

it("answers that are not read are dropped if the client does not read on", async () => {
  const started = await start({ lingeringMs: 100 });
  const { closed, socket } = await callAndStall(started, "json");
  await expect.poll(() => started.router.heldBytes).toBe(0);
  socket.resume();
  await closed;
});

it.runIf(IS_LONG)("answers that are not read reach a client that reads, whatever their length", async () => {
  const started = await start({ heldBytes: 20 * MIB, unreadBytes: MIB, lingeringMs: WAIT_MS });
  const client = await started.open();
  call(client, "json");
  expect((await client.answer()).body).toContain(LONG);
  await expect.poll(() => started.router.heldBytes).toBe(0);
});

it("bodies that do not end are held within the limit", async () => {
  const started = await start({ heldBytes: 10 * MIB }, { messageBytes: 4 * MIB });
  const { router, open } = started;
  const part = "x".repeat(3 * MIB);
  const clients: RawHttp[] = [];
  for (let n = 0; n < 6; n += 1) {
    const client = await open();
    clients.push(client.send(head(4 * MIB), part));
    await expect.poll(() => router.heldBytes % (3 * MIB)).toBe(0);
    await new Promise(setImmediate);
    expect(router.heldBytes).toBeLessThanOrEqual(10 * MIB);
    expect(await isServed(started)).toBe(true);
  }
  const [first] = clients as [RawHttp];
  expect(await first.answer()).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  for (const { socket } of clients) socket.destroy();
  await expect.poll(() => router.heldBytes).toBe(0);
});

it("bodies that do not end are as many as requests, and the oldest is given up for the next", async () => {
  const started = await start({}, { requests: 2 });
  const { open } = started;
  const [first, second, third] = [await open(), await open(), await open()];
  for (const client of [first, second]) {
    client.send(head(undefined), "1\r\n{\r\n");
    await expect.poll(() => started.router.heldBytes).toBe(client === first ? 1 : 2);
  }
  expect(await isServed(started)).toBe(true);
  third.send(head(undefined), "1\r\n{\r\n");
  expect(await first.answer()).toMatchObject({ status: 503 });
  expect(started.router.heldBytes).toBe(2);
  second.write("1\r\n}\r\n0\r\n\r\n");
  expect(await second.answer()).toMatchObject({ status: 400 });
  third.socket.destroy();
  await expect.poll(() => started.router.heldBytes).toBe(0);
});
