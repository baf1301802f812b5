// An end at an address that is exchanged for one of the other style while its callers stay: calls go on.

import { createServer as createNetServer, type AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { end } from "../../src/chain/end.ts";
import { serve, type Serving } from "../../src/serve.ts";
import { createServer } from "../../src/server/server.ts";
import { call, caller, EXCHANGE, SESSION } from "./callers.ts";

/** A port that is free at the moment. */
async function freePort(): Promise<number> {
  const holder = createNetServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => holder.once("listening", resolve));
  const { port } = holder.address() as AddressInfo;
  await new Promise((resolve) => holder.close(resolve));
  return port;
}

it.each([
  [SESSION, EXCHANGE],
  [EXCHANGE, SESSION],
])("is spoken to as it wants to be: first %s, then %s", async (first, second) => {
  const port = await freePort();
  const open = (revision: string): Promise<Serving> =>
    serve(
      createServer({ name: "end", version: "1" }).tool("which", {}, () => revision),
      { revisions: [revision], http: { port } },
    );
  let serving = await open(first);
  onTestFinished(() => serving.close());
  const one = end(`http://127.0.0.1:${port}/mcp`, { name: "far" });
  onTestFinished(() => one.close());
  const { client } = await caller(one, EXCHANGE);
  expect(await call(client, "which")).toBe(first);
  await serving.close();
  serving = await open(second);
  // A list may be asked for again, whatever became of the connection that was kept.
  expect((await client.listTools()).tools).toHaveLength(1);
  expect(await call(client, "which")).toBe(second);
  expect(one.status()).toMatchObject({ state: "running", revision: second });
});
