// What one person does at an end is never shown to another: not from what is remembered, and not at an end to which all
// our callers are one.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { chain } from "../../src/chain/chain.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { createServer } from "../../src/server/server.ts";
import { serve } from "../../src/serve.ts";
import { call, caller, EXCHANGE, folder, program } from "./callers.ts";

let cache = "";

beforeEach(() => {
  cache = folder();
  vi.stubEnv("CATENARY_CACHE", cache);
  return () => vi.unstubAllEnvs();
});

/** What there is in files of catalogues. */
function remembered(): string[] {
  const kept = join(cache, "catalogues");
  return readdirSync(kept).map((name) => readFileSync(join(kept, name), "utf8"));
}

it("remembers what an end lists for each person apart", async () => {
  const one = upstream(program(), { name: "program" });
  onTestFinished(() => one.close());
  const ada = await caller(one, EXCHANGE, { cache: false }, { principal: "ada" });
  await call(ada.client, "grow");
  const grown = ({ name }: { name: string }): boolean => name.startsWith("grown-");
  expect((await ada.client.listTools()).tools.some(grown)).toBe(true);
  await vi.waitFor(() => expect(remembered().some((text) => text.includes("grown-"))).toBe(true), { timeout: 5_000 });
  // Whoever comes anew is shown from the file.
  const again = upstream(program(), { name: "program" });
  onTestFinished(() => again.close());
  const later = await caller(again, EXCHANGE, { cache: false }, { principal: "ada" });
  expect((await later.client.listTools()).tools.some(grown)).toBe(true);
  expect(again.status().sessions).toBe(0);
  const bob = await caller(again, EXCHANGE, { cache: false }, { principal: "bob" });
  expect((await bob.client.listTools()).tools.some(grown)).toBe(false);
});

it("keeps tasks apart at an end over HTTP", async () => {
  const server = createServer({ name: "tasks", version: "1" }).tool("job", { task: "required" }, () => "done");
  const back = await serve(server, { http: { port: 0 } });
  const gateway = chain().to(upstream(back.url));
  onTestFinished(async () => {
    await gateway.close();
    await back.close();
  });
  const [ada, bob] = await Promise.all(["ada", "bob"].map((principal) => caller(gateway, EXCHANGE, {}, { principal })));
  const task = await ada!.client.startTool("job", {});
  await expect(bob!.client.request("tasks/get", { taskId: task.id })).rejects.toMatchObject({ kind: "invalid_params" });
  await expect(bob!.client.request("tasks/cancel", { taskId: task.id })).rejects.toMatchObject({
    kind: "invalid_params",
  });
  expect(await ada!.client.request("tasks/get", { taskId: task.id })).toMatchObject({ taskId: task.id });
});
