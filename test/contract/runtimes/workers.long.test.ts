// Servers in Cloudflare Workers: workerd, started by miniflare, with the bundle that wrangler would make.

import { expect, it } from "vitest";
import { connect, type Client } from "../../../src/client/index.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { importPackage, missingRuntimes, SERVER, Workspace } from "./runtimes.ts";

const reason = await missingRuntimes();
if (reason !== undefined) console.warn(`Skipped: servers in Workers, because ${reason}`);

/** Only what these tests use. */
interface MiniflareModule {
  readonly Miniflare: new (options: object) => { readonly ready: Promise<URL>; dispose(): Promise<void> };
}

const WORKER = `
import { fetchHandler } from "catenary/http";
import { createNotes } from "./server.js";

const mcp = fetchHandler(createNotes(), { stateless: true });

export default {
  fetch(request, env) {
    if (!new URL(request.url).pathname.startsWith("/room")) return mcp(request, { env });
    return env.ROOMS.get(env.ROOMS.idFromName("one")).fetch(request);
  },
};

export class Room {
  #mcp = fetchHandler(createNotes(), { path: "/room/mcp" });
  fetch(request) {
    return this.#mcp(request);
  }
}
`;

/** Starts a Worker and connects to it. */
async function withWorker(flags: readonly string[], act: (open: Open) => Promise<void>): Promise<void> {
  const workspace = new Workspace({ "server.js": SERVER, "worker.js": WORKER });
  try {
    const conditions = ["workerd", "worker", "browser"];
    const [script] = await workspace.bundle("worker.js", { platform: "browser", conditions, target: "es2024" });
    const { Miniflare } = await importPackage<MiniflareModule>("miniflare", "dist/src/index.js");
    const worker = new Miniflare({
      modules: true,
      script: script?.text,
      compatibilityDate: "2026-01-01",
      compatibilityFlags: flags,
      durableObjects: { ROOMS: "Room" },
      bindings: { REGION: "eu" },
    });
    try {
      const base = await worker.ready;
      await act((path, revision) =>
        connect(new URL(path, base), { revision, elicit: () => ({ action: "accept", content: { name: "Ann" } }) }),
      );
    } finally {
      await worker.dispose();
    }
  } finally {
    workspace.remove();
  }
}

type Open = (path: string, revision: string) => Promise<Client>;

async function textOf(client: Client, tool: string, args: object = {}): Promise<string> {
  const { content } = await client.callTool(tool, { ...args });
  return content.map((block) => (block.type === "text" ? block.text : block.type)).join();
}

/** What works in every Worker. */
async function expectCalls(client: Client): Promise<void> {
  expect(await textOf(client, "echo", { text: "hi" })).toBe("hi");
  expect(await textOf(client, "add", { n: 1 })).toBe("2");
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
  await client.callTool("steps", {}, { onProgress });
  expect(steps).toEqual([1]);
  expect(await client.readResource("note://one")).toMatchObject({ contents: [{ blob: "AQL/" }] });
}

it.skipIf(reason !== undefined)("in Workers, a stateless server answers clients of both styles", async () => {
  await withWorker(["nodejs_compat"], async (open) => {
    for (const revision of [NEWEST.name, NEWEST_SESSION.name]) {
      const client = await open("/mcp", revision);
      await expectCalls(client);
      expect(await textOf(client, "host")).toBe("eu");
      await expect(client.callTool("ask", {})).rejects.toThrow("keeps nothing between requests (`stateless: true`)");
      await client.close();
    }
    const client = await open("/mcp", NEWEST.name);
    expect(await textOf(client, "add", { n: "1" })).toContain("n: must be number");
    expect(await textOf(client, "return")).toBe("Ann");
    await expect(client.callTool("slow", {})).rejects.toThrow("so it has no tasks");
    await client.close();
  });
});

it.skipIf(reason !== undefined)(
  "in Workers, a stateless server needs no compatibility with Node, but for sealed state",
  async () => {
    await withWorker([], async (open) => {
      const client = await open("/mcp", NEWEST.name);
      await expectCalls(client);
      expect(await textOf(client, "return")).toContain("set the compatibility flag nodejs_compat");
      await client.close();
    });
  },
);

it.skipIf(reason !== undefined)(
  "in Workers, a server in a Durable Object says which flag it needs to keep a call",
  async () => {
    await withWorker([], async (open) => {
      const client = await open("/room/mcp", NEWEST.name);
      await expect(textOf(client, "ask")).rejects.toThrow("set the compatibility flag nodejs_compat");
      await client.close();
    });
  },
);

it.skipIf(reason !== undefined)(
  "in Workers, a server in a Durable Object can also ask its clients and run tasks",
  async () => {
    await withWorker(["nodejs_compat"], async (open) => {
      for (const revision of [NEWEST.name, NEWEST_SESSION.name]) {
        const client = await open("/room/mcp", revision);
        await expectCalls(client);
        expect(await textOf(client, "ask")).toBe("Ann");
        expect(await textOf(client, "return")).toBe("Ann");
        expect(await textOf(client, "slow")).toBe("done");
        await client.close();
      }
    });
  },
);
