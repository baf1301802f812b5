// Many resource subscriptions of a session-style caller at a stateless upstream over HTTP take few connections.

import { expect, it } from "vitest";
import { chain, upstream } from "../../../src/chain/index.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { connectInMemory } from "../../../src/testing.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import { FaultyServer } from "../../support/faulty-server/server.ts";

it("take few connections, and deliver updates", async () => {
  const server = await FaultyServer.open({ style: "stateless" });
  const gateway = chain().to(upstream(server.url));
  const { client, close } = await connectInMemory(gateway, { revision: NEWEST_SESSION.name });
  let most = 0;
  const heard: unknown[] = [];
  for (let at = 0; at < 150; at += 1) {
    const uri = at === 75 ? NOTE : `file:///${at}`;
    await client.listen({ resourceSubscriptions: [uri] }, ({ params }) => heard.push(params));
    most = Math.max(most, server.server.connections);
  }
  // Up to eight alone, 32 that are still read after they were replaced, and calls.
  expect(most).toBeLessThan(60);
  await server.until(() => server.server.connections < 16);
  server.updateNote();
  while (heard.length === 0) await new Promise(setImmediate);
  expect(heard[0]).toMatchObject({ uri: NOTE });
  await close();
  await gateway.close();
  await server.until(() => server.server.connections === 0);
  await server.close();
});
