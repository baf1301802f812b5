// Real servers behind one chain, and in front of it the clients of both official SDKs, over stdio and HTTP: each answer
// is the one that the same client gets from the server itself.

import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { META } from "../../src/protocol/model/index.ts";
import { bearing, canSee, commandLine } from "../support/processes.ts";
import type { Json, Peer, Roots } from "./peer.ts";
import { Ground, visit, VISITS, type Entry } from "./real-servers.ts";
import { speakBy as speakSdk1 } from "./sdk-1-peer.ts";
import { speakBy as speakSdk2 } from "./sdk-2-peer.ts";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const MARK = "CATENARY_SERVERS_TEST";
const mark = randomUUID();
/** All that these programs get to see of ours. */
const ENV = { PATH: process.env["PATH"] ?? "", [MARK]: mark };

interface Library {
  readonly title: string;
  /** As a child of the client's. */
  start(entry: Entry, roots: Roots): Promise<Peer>;
  reach(url: string, roots: Roots): Promise<Peer>;
}

const sdk1: Library = {
  title: "SDK 1",
  start: (entry, roots) => speakSdk1(new Stdio1({ ...entry, stderr: "ignore" }), roots),
  reach: (url, roots) => speakSdk1(new Http1(new URL(url)), roots),
};
const sdk2 = (title: string, negotiation: Parameters<typeof speakSdk2>[1]): Library => ({
  title,
  start: (entry, roots) => speakSdk2(new Stdio2({ ...entry, stderr: "ignore" }), negotiation, roots),
  reach: (url, roots) => speakSdk2(new Http2(new URL(url)), negotiation, roots),
});
const sdk2Session = sdk2("SDK 2", {});
const sdk2Newest = sdk2("SDK 2 in its newest revision", { versionNegotiation: { mode: "auto" } });

/** What a client finds at one end. */
interface Findings {
  readonly server: Json;
  readonly lists: Readonly<Record<List, readonly Json[]>>;
  readonly answers: Json;
}

type List = "tools" | "resources" | "templates" | "prompts";
const LISTS = ["tools", "resources", "templates", "prompts"] as const;

/** Each server by itself, without a chain. */
async function direct(library: Library): Promise<Record<string, Findings>> {
  const ground = new Ground();
  const find = async ([end, entry]: [string, Entry]): Promise<[string, Findings]> => {
    const peer = await library.start({ ...entry, env: { ...ENV, ...entry.env } }, ground.roots);
    try {
      // What an end does not offer may not even be asked for.
      const offers = (list: List): boolean =>
        peer.capabilities[list === "templates" ? "resources" : list] !== undefined;
      const lists = await Promise.all(LISTS.map(async (list) => [list, offers(list) ? await peer[list]() : []]));
      const answers = await visit({ peer, ground, end, name: (tool) => tool });
      return [end, { server: peer.server, lists: Object.fromEntries(lists) as Findings["lists"], answers }];
    } finally {
      await peer.close();
    }
  };
  try {
    return Object.fromEntries(await Promise.all(Object.entries(ground.servers).map(find)));
  } finally {
    ground.remove();
  }
}

/** All servers behind `catenary serve`, and a client in front. */
class Chained {
  readonly ground = new Ground();
  readonly #library: Library;
  #front: ChildProcess | undefined;
  peer: Peer | undefined;

  constructor(library: Library) {
    this.#library = library;
  }

  async open(wire: "stdio" | "HTTP"): Promise<Peer> {
    const { folder, servers, roots } = this.ground;
    const config = join(folder, "catenary.json");
    writeFileSync(config, JSON.stringify({ mcpServers: servers }));
    const env = { ...ENV, CATENARY_CACHE: join(folder, "cache") };
    const args = [CLI, "serve", config];
    if (wire === "stdio") {
      this.peer = await this.#library.start({ command: process.execPath, args, env }, roots);
      return this.peer;
    }
    const stdio = ["ignore", "pipe", "ignore"] as const;
    const front = spawn(process.execPath, [...args, "--http", "0", "--json"], { env, stdio: [...stdio] });
    this.#front = front;
    const line = await new Promise<string>((resolve, reject) => {
      front.stdout?.setEncoding("utf8").once("data", resolve);
      front.once("exit", (code) => reject(new Error(`It left with ${code} before it was ready`)));
    });
    this.peer = await this.#library.reach((JSON.parse(line) as { url: string }).url, roots);
    return this.peer;
  }

  async close(): Promise<void> {
    await this.peer?.close();
    if (this.#front !== undefined && this.#front.exitCode === null) {
      const left = new Promise((resolve) => this.#front?.once("exit", resolve));
      this.#front.kill("SIGTERM");
      await left;
    }
    this.ground.remove();
  }
}

/** Where two ends have a tool of one name, each is called by its end's as well. */
function merged(found: Record<string, Findings>): Json[] {
  const all = Object.entries(found);
  return all.flatMap(([end, { lists }]) =>
    lists.tools.map((tool) => {
      const isShared = all.some(
        ([other, one]) => other !== end && one.lists.tools.some((its) => its["name"] === tool["name"]),
      );
      return isShared ? { ...tool, name: `${end}.${String(tool["name"])}` } : tool;
    }),
  );
}

/** Of a tool in the newest revision: whether it can be a task is not said there. */
function withoutExecution({ execution: _execution, ...tool }: Json): Json {
  return tool;
}

/** Without what only the newest revision says with each result: who has made it, and for how long it may be kept. */
function bare(answer: unknown, server: Json): unknown {
  if (Array.isArray(answer)) return answer.map((one) => bare(one, server));
  if (typeof answer !== "object" || answer === null) return answer;
  const { _meta, ttlMs: _ttl, cacheScope: _scope, ...rest } = answer as Json;
  const plain = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, bare(value, server)]));
  if (_meta === undefined) return plain;
  const { [META.serverInfo]: info, ...others } = _meta as Json;
  expect(info).toEqual(server);
  return Object.keys(others).length === 0 ? plain : { ...plain, _meta: others };
}

function converse(library: Library, wire: "stdio" | "HTTP", direct: () => Record<string, Findings>): void {
  const isNewest = library === sdk2Newest;
  describe(`${library.title} over ${wire}`, () => {
    const chained = new Chained(library);
    let peer: Peer;
    let tools: readonly Json[];

    beforeAll(async () => {
      peer = await chained.open(wire);
      tools = await peer.tools();
    }, 60_000);
    afterAll(() => chained.close(), 60_000);

    it("lists what the servers list, with names that say whose they are where two are the same", async () => {
      const expected = merged(direct());
      expect(tools).toEqual(isNewest ? expected.map(withoutExecution) : expected);
      expect(tools.map(({ name }) => name as string)).toEqual(
        expect.arrayContaining(["echo", "files.read_text_file", "other.read_text_file", "read_graph"]),
      );
      for (const list of ["resources", "templates", "prompts"] as const) {
        expect(await peer[list]()).toEqual(Object.values(direct()).flatMap(({ lists }) => lists[list]));
      }
    });

    it.each(Object.keys(VISITS))("gets the answers of %s", async (end) => {
      const name = (tool: string): string => (tools.some((one) => one["name"] === tool) ? tool : `${end}.${tool}`);
      const answers = await visit({ peer, ground: chained.ground, end, name });
      const { server, answers: expected } = direct()[end] as Findings;
      expect(isNewest ? bare(answers, server) : answers).toEqual(expected);
    });
  });
}

describe.runIf(canSee)("real servers behind one chain", { timeout: 60_000 }, () => {
  for (const [itself, fronts] of [
    [sdk1, [sdk1]],
    [sdk2Session, [sdk2Session, sdk2Newest]],
  ] as const) {
    let found: Record<string, Findings> = {};
    beforeAll(async () => {
      found = await direct(itself);
    }, 60_000);
    for (const front of fronts) for (const wire of ["stdio", "HTTP"] as const) converse(front, wire, () => found);
  }

  it("leave nothing behind", async () => {
    await expect.poll(() => bearing(MARK, mark).map(commandLine), { timeout: 5_000 }).toEqual([]);
  });
});
