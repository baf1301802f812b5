// What one principal does at an upstream is never shown to another: neither from the catalogue, nor at an upstream that
// sees all our callers as one.

import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { eventually } from "../../support/waiting.ts";
import { chain } from "../../../src/chain/chain.ts";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import { createServer } from "../../../src/server/server.ts";
import { serve } from "../../../src/serve.ts";
import { call, caller, catalogues, STATELESS, folder, program } from "./callers.ts";

let cache = "";

beforeEach(() => {
  cache = folder();
  vi.stubEnv("CATENARY_CACHE", cache);
  return () => vi.unstubAllEnvs();
});

it("keeps the lists of an upstream for each principal", async () => {
  const one = upstream(program(), { name: "program" });
  onTestFinished(() => one.close());
  const ada = await caller(one, STATELESS, { cache: false }, { principal: "ada" });
  await call(ada.client, "grow");
  const grown = ({ name }: { name: string }): boolean => name.startsWith("grown-");
  expect((await ada.client.listTools()).tools.some(grown)).toBe(true);
  await eventually(() => expect(catalogues(cache)).toContain("grown-"));
  // A new upstream answers from the file.
  const again = upstream(program(), { name: "program" });
  onTestFinished(() => again.close());
  const later = await caller(again, STATELESS, { cache: false }, { principal: "ada" });
  expect((await later.client.listTools()).tools.some(grown)).toBe(true);
  expect(again.status().sessions).toBe(0);
  const bob = await caller(again, STATELESS, { cache: false }, { principal: "bob" });
  expect((await bob.client.listTools()).tools.some(grown)).toBe(false);
});

it("keeps tasks apart at an upstream over HTTP", async () => {
  const server = createServer({ name: "tasks", version: "1" }).tool("job", { task: "required" }, () => "done");
  const back = await serve(server, { http: { port: 0 } });
  const gateway = chain().to(upstream(back.url));
  onTestFinished(async () => {
    await gateway.close();
    await back.close();
  });
  const [ada, bob] = await Promise.all(
    ["ada", "bob"].map((principal) => caller(gateway, STATELESS, {}, { principal })),
  );
  const task = await ada!.client.callToolAsTask("job", {});
  await expect(bob!.client.request("tasks/get", { taskId: task.id })).rejects.toMatchObject({ kind: "invalid_params" });
  await expect(bob!.client.request("tasks/cancel", { taskId: task.id })).rejects.toMatchObject({
    kind: "invalid_params",
  });
  expect(await ada!.client.request("tasks/get", { taskId: task.id })).toMatchObject({ taskId: task.id });
});
