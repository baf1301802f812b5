// A client that was closed sends nothing more, so no call of it may have run, whatever it was connected to.

import { afterEach, expect, it } from "vitest";
import { connect, createServer, serve } from "../../../src/index.ts";
import type { Client } from "../../../src/client/client.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import type { Serving } from "../../../src/serve.ts";
import { connectInMemory } from "../../../src/testing.ts";

const fronts: Serving[] = [];
let runs = 0;
const notes = () =>
  createServer({ name: "notes", version: "1.0.0" })
    .tool("echo", {}, () => String(++runs))
    .resource("note:///1", {}, () => "milk");

async function overHttp(revision: string): Promise<Client> {
  const front = await serve(notes(), { http: { port: 0 } });
  fronts.push(front);
  return connect(front.url, { revision });
}

const CONNECTIONS: Readonly<Record<string, () => Promise<Client>>> = {
  "a handler": () => connect(notes()),
  "a transport, in a session": async () => (await connectInMemory(notes(), { revision: NEWEST_SESSION.name })).client,
  "a transport, without one": async () => (await connectInMemory(notes(), { revision: NEWEST.name })).client,
  "a URL, in a session": () => overHttp(NEWEST_SESSION.name),
  "a URL, without one": () => overHttp(NEWEST.name),
};

afterEach(async () => {
  for (const front of fronts.splice(0)) await front.close();
});

it.each(Object.keys(CONNECTIONS))("a call after close() has not run, with %s", async (name) => {
  const client = await CONNECTIONS[name]?.();
  if (client === undefined) throw new Error("no client");
  await client.callTool("echo");
  await client.close();
  const before = runs;
  const closed = { name: "ConnectionError", kind: "closed", mayHaveRun: false };
  await expect(client.callTool("echo")).rejects.toMatchObject(closed);
  await expect(client.readResource("note:///1")).rejects.toMatchObject(closed);
  await expect(client.request("tools/list")).rejects.toMatchObject(closed);
  await expect(client.listen({ toolsListChanged: true })).rejects.toMatchObject(closed);
  await expect(client.callToolAsTask("echo")).rejects.toMatchObject(closed);
  expect(runs).toBe(before);
});
