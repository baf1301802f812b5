// One session-style server shared by several clients, on a transport that does not say to which call a request belongs:
// no client is asked on behalf of another.

import { afterEach, expect, it } from "vitest";
import { RawPeer } from "../../../test/support/dialogue/raw-peer.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { memoryPair } from "../../transport/memory.ts";
import { openConnection } from "../connect.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { serveTransport } from "../connection.ts";

const fronts: { close: () => Promise<void> }[] = [];
// A session that is left open would try to subscribe again in the tests of other files.
afterEach(async () => {
  await Promise.all(fronts.splice(0).map((front) => front.close()));
});

async function openShared({ alone = false } = {}) {
  const [back, serverSide] = memoryPair();
  const server = await new RawPeer(serverSide).start();
  const defaultContext = {
    revision: "",
    caller: fakeCaller(),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("no default context")),
  };
  const opening = openConnection(() => back, {
    info: { name: "us", version: "1" },
    capabilities: { roots: {} },
    defaultContext,
    revision: NEWEST_SESSION.name,
  });
  const { id } = await server.until(({ method }) => method === "initialize");
  server.send({
    id,
    result: {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: { tools: {} },
      serverInfo: { name: "e", version: "1" },
    },
  });
  const opened = await opening;
  const clients = await Promise.all(
    (alone ? ["ada"] : ["ada", "bea"]).map(async () => {
      const [front, side] = memoryPair();
      fronts.push(await serveTransport(opened.handler, front));
      const client = await new RawPeer(side).start();
      await client.handshake(NEWEST_SESSION.name, { roots: {} });
      return client;
    }),
  );
  return { server, opened, ada: clients[0]!, bea: clients.at(-1)! };
}

const calls = (server: RawPeer) => server.received.filter(({ method }) => method === "tools/call");

it("refuses server requests while several clients have calls in flight, or one has just cancelled its call", async () => {
  const { server, opened, ada, bea } = await openShared();
  ada.send({ id: 1, method: "tools/call", params: { name: "of ada" } });
  bea.send({ id: 1, method: "tools/call", params: { name: "of bea" } });
  await expect.poll(() => calls(server).length).toBe(2);
  expect(await server.request({ id: "q", method: "roots/list" })).toMatchObject({
    error: { message: expect.stringContaining("Several clients share") as string },
  });
  ada.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  await server.until(({ method }) => method === "notifications/cancelled");
  expect(await server.request({ id: "late", method: "roots/list" })).toMatchObject({ error: {} });
  for (const call of calls(server)) server.send({ id: call["id"], result: { content: [] } });
  await bea.answerTo(1);
  for (const caller of [ada, bea]) expect(caller.received.some(({ method }) => method === "roots/list")).toBe(false);
  await opened.close();
});

it("asks the only client that has a call in flight, even if another one had a call just before", async () => {
  const { server, opened, ada, bea } = await openShared();
  ada.send({ id: 1, method: "tools/call", params: { name: "of ada" } });
  await expect.poll(() => calls(server).length).toBe(1);
  server.send({ id: calls(server)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  bea.send({ id: 1, method: "tools/call", params: { name: "of bea" } });
  await expect.poll(() => calls(server).length).toBe(2);
  server.send({ id: "q", method: "roots/list" });
  const asked = await bea.until(({ method }) => method === "roots/list");
  bea.send({ id: asked["id"], result: { roots: [{ uri: "file:///bea" }] } });
  expect(await server.answerTo("q")).toMatchObject({ result: { roots: [{ uri: "file:///bea" }] } });
  expect(ada.received.some(({ method }) => method === "roots/list")).toBe(false);
  server.send({ id: calls(server)[1]!["id"], result: { content: [] } });
  await bea.answerTo(1);
  await opened.close();
});

it("passes server requests on to the only client", async () => {
  const { server, opened, ada } = await openShared({ alone: true });
  ada.send({ id: 1, method: "tools/call", params: { name: "of ada" } });
  await expect.poll(() => calls(server).length).toBe(1);
  server.send({ id: "q", method: "roots/list" });
  const asked = await ada.until(({ method }) => method === "roots/list");
  ada.send({ id: asked["id"], result: { roots: [{ uri: "file:///ada" }] } });
  expect(await server.answerTo("q")).toMatchObject({ result: { roots: [{ uri: "file:///ada" }] } });
  server.send({ id: calls(server)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  await opened.close();
});

it("lets the calls of one client run concurrently", async () => {
  const { server, opened, ada } = await openShared();
  for (const id of [1, 2, 3]) ada.send({ id, method: "tools/call", params: { name: String(id) } });
  await expect.poll(() => calls(server).length).toBe(3);
  for (const call of calls(server)) server.send({ id: call["id"], result: { content: [] } });
  await ada.answerTo(3);
  await opened.close();
});

it("asks through another call of the client if the first candidate is answered meanwhile", async () => {
  const { server, opened, ada } = await openShared({ alone: true });
  for (const id of [1, 2]) ada.send({ id, method: "tools/call", params: { name: String(id) } });
  await expect.poll(() => calls(server).length).toBe(2);
  server.send({ id: "q", method: "roots/list" });
  const first = await ada.until(({ method }) => method === "roots/list");
  server.send({ id: calls(server)[1]!["id"], result: { content: [] } });
  await ada.answerTo(2);
  const again = await ada.until(({ method, id }) => method === "roots/list" && id !== first["id"]);
  ada.send({ id: again["id"], result: { roots: [{ uri: "file:///ada" }] } });
  expect(await server.answerTo("q")).toMatchObject({ result: { roots: [{ uri: "file:///ada" }] } });
  server.send({ id: calls(server)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  await opened.close();
});

it("asks outside any call if all candidates are answered meanwhile", async () => {
  const { server, opened, ada } = await openShared({ alone: true });
  ada.send({ id: 1, method: "tools/call", params: { name: "quick" } });
  await expect.poll(() => calls(server).length).toBe(1);
  server.send({ id: "q", method: "roots/list" });
  const first = await ada.until(({ method }) => method === "roots/list");
  server.send({ id: calls(server)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  const again = await ada.until(({ method, id }) => method === "roots/list" && id !== first["id"]);
  ada.send({ id: again["id"], result: { roots: [] } });
  expect(await server.answerTo("q")).toMatchObject({ result: { roots: [] } });
  await opened.close();
});

it("does not ask again on behalf of a cancelled call", async () => {
  const { server, opened, ada } = await openShared({ alone: true });
  ada.send({ id: 1, method: "tools/call", params: { name: "slow" } });
  await expect.poll(() => calls(server).length).toBe(1);
  server.send({ id: "q", method: "roots/list" });
  await ada.until(({ method }) => method === "roots/list");
  ada.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  expect(await server.answerTo("q")).toMatchObject({ error: {} });
  expect(ada.received.filter(({ method }) => method === "roots/list")).toHaveLength(1);
  await opened.close();
});
