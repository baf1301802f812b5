// One session-style server shared by several clients, on a transport that does not say to which call a request belongs:
// no client is asked on behalf of another.

import { expect, it } from "vitest";
import { RawPeer } from "../../../test/support/dialogue/raw-peer.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { memoryPair } from "../../transport/memory.ts";
import { openConnection } from "../connect.ts";
import { serveTransport } from "../connection.ts";

async function stage({ alone = false } = {}) {
  const [back, endSide] = memoryPair();
  const end = await new RawPeer(endSide).start();
  const home = {
    revision: "",
    caller: { capabilities: {} },
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("no default context")),
  };
  const opening = openConnection(() => back, {
    info: { name: "us", version: "1" },
    capabilities: { roots: {} },
    defaultContext: home,
    revision: NEWEST_SESSION.name,
  });
  const { id } = await end.until(({ method }) => method === "initialize");
  end.send({
    id,
    result: {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: { tools: {} },
      serverInfo: { name: "e", version: "1" },
    },
  });
  const opened = await opening;
  const callers = await Promise.all(
    (alone ? ["ada"] : ["ada", "bea"]).map(async () => {
      const [front, side] = memoryPair();
      await serveTransport(opened.handler, front);
      const caller = await new RawPeer(side).start();
      await caller.handshake(NEWEST_SESSION.name, { roots: {} });
      return caller;
    }),
  );
  return { end, opened, ada: callers[0]!, bea: callers.at(-1)! };
}

const calls = (end: RawPeer) => end.received.filter(({ method }) => method === "tools/call");

it("refuses server requests while several clients have calls in flight, or had recently", async () => {
  const { end, opened, ada, bea } = await stage();
  ada.send({ id: 1, method: "tools/call", params: { name: "of ada" } });
  bea.send({ id: 1, method: "tools/call", params: { name: "of bea" } });
  await expect.poll(() => calls(end).length).toBe(2);
  expect(await end.request({ id: "q", method: "roots/list" })).toMatchObject({
    error: { message: expect.stringContaining("Several clients share") as string },
  });
  ada.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  await end.until(({ method }) => method === "notifications/cancelled");
  expect(await end.request({ id: "late", method: "roots/list" })).toMatchObject({ error: {} });
  for (const call of calls(end)) end.send({ id: call["id"], result: { content: [] } });
  await bea.answerTo(1);
  for (const caller of [ada, bea]) expect(caller.received.some(({ method }) => method === "roots/list")).toBe(false);
  await opened.close();
});

it("passes server requests on to the only client", async () => {
  const { end, opened, ada } = await stage({ alone: true });
  ada.send({ id: 1, method: "tools/call", params: { name: "of ada" } });
  await expect.poll(() => calls(end).length).toBe(1);
  end.send({ id: "q", method: "roots/list" });
  const asked = await ada.until(({ method }) => method === "roots/list");
  ada.send({ id: asked["id"], result: { roots: [{ uri: "file:///ada" }] } });
  expect(await end.answerTo("q")).toMatchObject({ result: { roots: [{ uri: "file:///ada" }] } });
  end.send({ id: calls(end)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  await opened.close();
});

it("lets the calls of one client run concurrently", async () => {
  const { end, opened, ada } = await stage();
  for (const id of [1, 2, 3]) ada.send({ id, method: "tools/call", params: { name: String(id) } });
  await expect.poll(() => calls(end).length).toBe(3);
  for (const call of calls(end)) end.send({ id: call["id"], result: { content: [] } });
  await ada.answerTo(3);
  await opened.close();
});

it("asks through another call of the client if the first candidate is answered meanwhile", async () => {
  const { end, opened, ada } = await stage({ alone: true });
  for (const id of [1, 2]) ada.send({ id, method: "tools/call", params: { name: String(id) } });
  await expect.poll(() => calls(end).length).toBe(2);
  end.send({ id: "q", method: "roots/list" });
  const first = await ada.until(({ method }) => method === "roots/list");
  end.send({ id: calls(end)[1]!["id"], result: { content: [] } });
  await ada.answerTo(2);
  const again = await ada.until(({ method, id }) => method === "roots/list" && id !== first["id"]);
  ada.send({ id: again["id"], result: { roots: [{ uri: "file:///ada" }] } });
  expect(await end.answerTo("q")).toMatchObject({ result: { roots: [{ uri: "file:///ada" }] } });
  end.send({ id: calls(end)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  await opened.close();
});

it("asks outside any call if all candidates are answered meanwhile", async () => {
  const { end, opened, ada } = await stage({ alone: true });
  ada.send({ id: 1, method: "tools/call", params: { name: "quick" } });
  await expect.poll(() => calls(end).length).toBe(1);
  end.send({ id: "q", method: "roots/list" });
  const first = await ada.until(({ method }) => method === "roots/list");
  end.send({ id: calls(end)[0]!["id"], result: { content: [] } });
  await ada.answerTo(1);
  const again = await ada.until(({ method, id }) => method === "roots/list" && id !== first["id"]);
  ada.send({ id: again["id"], result: { roots: [] } });
  expect(await end.answerTo("q")).toMatchObject({ result: { roots: [] } });
  await opened.close();
});

it("does not ask again on behalf of a cancelled call", async () => {
  const { end, opened, ada } = await stage({ alone: true });
  ada.send({ id: 1, method: "tools/call", params: { name: "slow" } });
  await expect.poll(() => calls(end).length).toBe(1);
  end.send({ id: "q", method: "roots/list" });
  await ada.until(({ method }) => method === "roots/list");
  ada.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  expect(await end.answerTo("q")).toMatchObject({ error: {} });
  expect(ada.received.filter(({ method }) => method === "roots/list")).toHaveLength(1);
  await opened.close();
});
