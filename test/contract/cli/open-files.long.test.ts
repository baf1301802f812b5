// A gateway that callers have brought to its limit of open files answers with errors, and works again when they are gone:
// what serving needs was loaded at its start, since Node never loads a module again that it could not open once.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect as connectSocket, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import { expect, it } from "vitest";
import { CLI, TEST_SERVER_COMMAND } from "./cli-process.ts";

const MAX_FILES = 64;
const [NODE, ...ARGS] = TEST_SERVER_COMMAND;

/** Sends requests over one connection, which is open already when others are refused. */
class Caller {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;
  #id = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Makes the connection by a request that needs no server. */
  async open(): Promise<void> {
    const sent = request(new URL("/healthz", this.#url), { agent: this.#agent }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await once(response.resume(), "end");
  }

  async call(method: string, params: object): Promise<string> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": NEWEST.name,
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: (this.#id += 1), method, params: { ...params, _meta } });
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": NEWEST.name,
      "mcp-method": method,
      ...("name" in params && { "mcp-name": String(params.name) }),
    };
    const sent = request(this.#url, { method: "POST", agent: this.#agent, headers });
    sent.end(body);
    const [response] = (await once(sent, "response")) as [AsyncIterable<Buffer>];
    let text = "";
    for await (const chunk of response) text += chunk.toString();
    return text;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Opens connections that send nothing, more than the gateway can accept. */
async function useUp(url: string): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: MAX_FILES * 2 }, () => connectSocket(Number(port), hostname));
  await Promise.all(
    sockets.map((socket) =>
      once(
        socket.on("error", () => undefined),
        "connect",
      ),
    ),
  );
  return sockets;
}

it.runIf(process.platform === "linux")(
  "a gateway without files to open starts its servers when it can open files again, and names no file to callers",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "open-files-"));
    const config = join(folder, "catenary.json");
    const server = { command: NODE, args: ARGS };
    // Silent connections stay open, however slow the machine is, and names do not depend on which server is up first.
    const settings = { names: "always", limits: { headerMs: 600_000 } };
    writeFileSync(config, JSON.stringify({ mcpServers: { a: server, b: server }, ...settings }));
    const limited = ["-c", `ulimit -n ${MAX_FILES}; exec "$@"`, "sh", process.execPath, CLI];
    const gateway = spawn("sh", [...limited, "up", config, "--http", "127.0.0.1:0", "--json", "--yes"]);
    gateway.stderr.resume();
    const [line] = (await once(createInterface({ input: gateway.stdout }), "line")) as [string];
    const { url } = JSON.parse(line) as { url: string };
    const caller = new Caller(url);
    try {
      await caller.open();
      const sockets = await useUp(url);
      // They are accepted until there is no descriptor left.
      const files = (): number => readdirSync(`/proc/${gateway.pid}/fd`).length;
      await expect.poll(files, { timeout: 30_000 }).toBeGreaterThanOrEqual(MAX_FILES - 1);
      const params = { name: "a_echo", arguments: { text: "again" } };
      for (const refused of [await caller.call("tools/list", {}), await caller.call("tools/call", params)]) {
        expect(refused).toContain("too many files are open");
        expect(refused).not.toContain(dirname(dirname(CLI)));
      }
      for (const socket of sockets) socket.destroy();
      await expect.poll(() => caller.call("tools/call", params), { timeout: 30_000 }).toContain("again");
      await expect.poll(() => caller.call("tools/list", {}), { timeout: 30_000 }).toContain("b_echo");
    } finally {
      caller.close();
      gateway.kill("SIGTERM");
      await once(gateway, "close");
      rmSync(folder, { recursive: true });
    }
  },
);
