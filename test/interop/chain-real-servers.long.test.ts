// Published servers behind one chain, with the clients of both SDKs in front, over stdio and HTTP. Each client gets the
// same results as from the server itself. A short run has SDK 2 only, in one style over stdio and in the other over HTTP.

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
import { META } from "../../src/protocol/model/base.ts";
import { withEnvironment, canListProcesses, commandLine } from "../support/processes.ts";
import { eventually } from "../support/waiting.ts";
import type { Json, TestClient, Roots } from "./test-client.ts";
import { runSteps, STEPS, Workspace, type ServerCommand } from "./real-server-steps.ts";
import { openOver as openSdk1 } from "./sdk-1-client.ts";
import { openOver as openSdk2 } from "./sdk-2-client.ts";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const MARK = "CATENARY_SERVERS_TEST";
const mark = randomUUID();
/** The whole environment of these programs. */
const ENV = { PATH: process.env["PATH"] ?? "", [MARK]: mark };

interface Library {
  readonly title: string;
  /** Starts the server as a child process of the client. */
  start(entry: ServerCommand, roots: Roots): Promise<TestClient>;
  connect(url: string, roots: Roots): Promise<TestClient>;
}

const sdk1: Library = {
  title: "SDK 1",
  start: (entry, roots) => openSdk1(new Stdio1({ ...entry, stderr: "ignore" }), roots),
  connect: (url, roots) => openSdk1(new Http1(new URL(url)), roots),
};
const sdk2 = (title: string, negotiation: Parameters<typeof openSdk2>[1]): Library => ({
  title,
  start: (entry, roots) => openSdk2(new Stdio2({ ...entry, stderr: "ignore" }), negotiation, roots),
  connect: (url, roots) => openSdk2(new Http2(new URL(url)), negotiation, roots),
});
const sdk2Session = sdk2("SDK 2", {});
const sdk2Newest = sdk2("SDK 2 in its newest revision", { versionNegotiation: { mode: "auto" } });

/** What a client finds on one server. */
interface Findings {
  readonly server: Json;
  readonly lists: Readonly<Record<List, readonly Json[]>>;
  readonly answers: Json;
}

type List = "tools" | "resources" | "templates" | "prompts";
const LISTS = ["tools", "resources", "templates", "prompts"] as const;

/** Runs all steps on each server, without a chain. */
async function inspectDirectly(library: Library): Promise<Record<string, Findings>> {
  const workspace = new Workspace();
  const inspect = async ([name, entry]: [string, ServerCommand]): Promise<[string, Findings]> => {
    const client = await library.start({ ...entry, env: { ...ENV, ...entry.env } }, workspace.roots);
    try {
      // Clients refuse to request what the server did not declare.
      const offers = (list: List): boolean =>
        client.capabilities[list === "templates" ? "resources" : list] !== undefined;
      const lists = await Promise.all(LISTS.map(async (list) => [list, offers(list) ? await client[list]() : []]));
      const answers = await runSteps({ client, workspace, server: name, toolName: (tool) => tool });
      return [name, { server: client.server, lists: Object.fromEntries(lists) as Findings["lists"], answers }];
    } finally {
      await client.close();
    }
  };
  try {
    return Object.fromEntries(await Promise.all(Object.entries(workspace.servers).map(inspect)));
  } finally {
    workspace.remove();
  }
}

function exitCode(program: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => void program.once("exit", resolve).once("error", reject));
}

/** All servers behind `catenary serve`, and a client in front of it. */
class ChainedServers {
  readonly workspace = new Workspace();
  readonly #library: Library;
  #gateway: ChildProcess | undefined;
  client: TestClient | undefined;

  constructor(library: Library) {
    this.#library = library;
  }

  async open(transport: "stdio" | "HTTP"): Promise<TestClient> {
    const { folder, servers, roots } = this.workspace;
    const config = join(folder, "catenary.json");
    writeFileSync(config, JSON.stringify({ mcpServers: servers }));
    const env = { ...ENV, CATENARY_CACHE: join(folder, "cache"), XDG_STATE_HOME: join(folder, "state") };
    // A list does not wait for a slow server, and a name that was shown stays. If one of two servers with equal names is
    // late, the other keeps its names without a prefix. So the lists of all are known before the first one is shown.
    expect(await exitCode(spawn(process.execPath, [CLI, "doctor", config], { env, stdio: "ignore" }))).toBe(0);
    const args = [CLI, "serve", config];
    if (transport === "stdio") {
      this.client = await this.#library.start({ command: process.execPath, args, env }, roots);
      return this.client;
    }
    const stdio = ["ignore", "pipe", "ignore"] as const;
    const gateway = spawn(process.execPath, [...args, "--http", "0", "--json"], { env, stdio: [...stdio] });
    this.#gateway = gateway;
    const line = await new Promise<string>((resolve, reject) => {
      gateway.stdout?.setEncoding("utf8").once("data", resolve);
      gateway.once("exit", (code) => reject(new Error(`The gateway exited with ${code} before it was ready`)));
    });
    this.client = await this.#library.connect((JSON.parse(line) as { url: string }).url, roots);
    return this.client;
  }

  async close(): Promise<void> {
    await this.client?.close();
    if (this.#gateway !== undefined && this.#gateway.exitCode === null) {
      const exited = new Promise((resolve) => this.#gateway?.once("exit", resolve));
      this.#gateway.kill("SIGTERM");
      await exited;
    }
    this.workspace.remove();
  }
}

/** The tools of all servers. Tools with the same name get the name of their server as a prefix. */
function mergeTools(found: Record<string, Findings>): Json[] {
  const all = Object.entries(found);
  return all.flatMap(([server, { lists }]) =>
    lists.tools.map((tool) => {
      const isShared = all.some(
        ([other, found]) => other !== server && found.lists.tools.some(({ name }) => name === tool["name"]),
      );
      const shown = withServer(tool, server);
      if (!isShared) return shown;
      const _meta = { ...(shown["_meta"] as Json), "catenary/names": [tool["name"]] };
      return { ...shown, name: `${server}_${String(tool["name"])}`, _meta };
    }),
  );
}

/** The gateway says which server an item is of. */
function withServer(item: Json, server: string): Json {
  return { ...item, _meta: { ...(item["_meta"] as Json | undefined), "catenary/upstream": server } };
}

/** The newest revision does not declare whether a tool can be a task. */
function withoutExecution({ execution: _execution, ...tool }: Json): Json {
  return tool;
}

/** Removes what only the newest revision adds to results: the server's info and how long they may be cached. */
function withoutResultMeta(answer: unknown, server: Json): unknown {
  if (Array.isArray(answer)) return answer.map((one) => withoutResultMeta(one, server));
  if (typeof answer !== "object" || answer === null) return answer;
  const { _meta, ttlMs: _ttl, cacheScope: _scope, ...rest } = answer as Json;
  const plain = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, withoutResultMeta(value, server)]));
  if (_meta === undefined) return plain;
  const { [META.serverInfo]: info, ...others } = _meta as Json;
  expect(info).toEqual(server);
  return Object.keys(others).length === 0 ? plain : { ...plain, _meta: others };
}

function testClient(library: Library, transport: "stdio" | "HTTP", direct: () => Record<string, Findings>): void {
  const isNewest = library === sdk2Newest;
  describe(`${library.title} over ${transport}`, () => {
    const chained = new ChainedServers(library);
    let client: TestClient;
    let tools: readonly Json[];

    beforeAll(async () => {
      client = await chained.open(transport);
      // The first list comes from processes that all clients share. A server that asks its clients gets a process for
      // this client with its first call. From then on, the list is what the server lists for this client.
      await client.tools();
      await client.call("echo", { message: "hi" });
      tools = await list();
    });
    const list = async (): Promise<readonly Json[]> => {
      const listed = await client.tools();
      // A client that called something before the server asked keeps its process, which was told that it can do more.
      return transport === "HTTP" || isNewest
        ? listed.filter(({ name }) => name !== "trigger-url-elicitation")
        : listed;
    };
    afterAll(() => chained.close());

    it("a server of another library lists what the servers list, with the server's name as a prefix where two names are equal", async () => {
      const merged = mergeTools(direct());
      const expected = isNewest ? merged.map(withoutExecution) : merged;
      // A server adds tools when it has learned what its client can do, which may be after its first answer.
      await eventually(async () => {
        tools = await list();
        expect(tools).toEqual(expected);
      });
      expect(tools.map(({ name }) => name as string)).toEqual(
        expect.arrayContaining(["echo", "files_read_text_file", "other_read_text_file", "read_graph"]),
      );
      for (const list of ["resources", "templates", "prompts"] as const) {
        const all = Object.entries(direct());
        const expectedItems = all.flatMap(([server, { lists }]) => lists[list].map((item) => withServer(item, server)));
        expect(await client[list]()).toEqual(expectedItems);
      }
    });

    it.each(Object.keys(STEPS))("a server of another library gets the results of %s", async (server) => {
      const toolName = (tool: string): string => (tools.some(({ name }) => name === tool) ? tool : `${server}_${tool}`);
      const answers = await runSteps({ client, workspace: chained.workspace, server, toolName });
      const { server: info, answers: expected } = direct()[server] as Findings;
      expect(isNewest ? withoutResultMeta(answers, info) : answers).toEqual(expected);
    });
  });
}

describe.runIf(canListProcesses)("published servers behind one chain", () => {
  for (const [library, fronts] of [
    [sdk1, [sdk1]],
    [sdk2Session, [sdk2Session, sdk2Newest]],
  ] as const) {
    let found: Record<string, Findings> = {};
    beforeAll(async () => {
      found = await inspectDirectly(library);
    });
    for (const front of fronts) {
      for (const transport of ["stdio", "HTTP"] as const) {
        testClient(front, transport, () => found);
      }
    }
  }

  it("published servers behind one chain leave nothing behind", async () => {
    await expect.poll(() => withEnvironment(MARK, mark).map(commandLine)).toEqual([]);
  });
});
