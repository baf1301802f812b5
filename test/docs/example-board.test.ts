// The board, as people start it: it says where it is, every command that it prints does what it says when it is
// pasted into a shell, a port that is taken is told, and a signal ends it.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const MAIN = fileURLToPath(new URL("../../examples/board/main.js", import.meta.url));
const HAS_CURL = spawnSync("curl", ["--version"]).status === 0;

class Program {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown[]>;
  out = "";
  err = "";

  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    // A group of its own: what a shell has started is ended with it.
    this.child = spawn(command, args, { env: { ...process.env, ...env }, detached: true });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.out += text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    this.exited = once(this.child, "close");
  }

  async prints(text: string): Promise<void> {
    while (!this.out.includes(text)) {
      await Promise.race([once(this.child.stdout!, "data"), this.exited]);
      if (this.child.exitCode !== null) throw new Error(`It ended without ${text}: ${this.err}`);
    }
  }

  async end(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) process.kill(-(this.child.pid ?? 0), "SIGKILL");
    await this.exited;
  }
}

/** What is printed under each title. */
function commands(printed: string): Map<string, string> {
  const parts = printed.split(/^# /m).slice(1);
  return new Map(parts.map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1).trim()]));
}

describe("examples/board", () => {
  let board: Program;
  let printed = new Map<string, string>();
  let url = "";
  const command = (title: string): string => {
    const found = [...printed].find(([name]) => name.startsWith(title))?.[1];
    if (found === undefined) throw new Error(`Nothing is printed under ${title}`);
    return found;
  };

  beforeAll(async () => {
    board = new Program(process.execPath, [MAIN], { PORT: "0" });
    await board.prints("Ctrl-C");
    printed = commands(board.out);
    url = /The board is at (\S+)/.exec(board.out)?.[1] ?? "";
  });
  afterAll(() => board.end());

  it("says where it is, and what a client wants", () => {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(JSON.parse(command("The entry"))).toEqual({ mcpServers: { board: { type: "http", url } } });
    expect(board.out).not.toContain("\u001b");
  });

  it.skipIf(!HAS_CURL)("prints commands that work, in both styles, and a listener hears of what they do", async () => {
    const listener = new Program("sh", ["-c", command("Listen")]);
    try {
      await listener.prints("notifications/subscriptions/acknowledged");
      const texts = [command("Call a tool, each"), command("Call a tool in a session"), command("Read")].map((line) => {
        const { stdout, stderr, status } = spawnSync("sh", ["-c", line], { encoding: "utf8", timeout: 20_000 });
        expect({ status, stderr }, line).toEqual({ status: 0, stderr: "" });
        return stdout;
      });
      expect(texts.map((text) => JSON.parse(text) as unknown)).toMatchObject([
        { result: { content: [{ text: "Pinned; it is the only note." }] } },
        { result: { content: [{ text: "Pinned; there are 2 notes." }] } },
        { result: { contents: [{ text: expect.stringContaining("Wipe the board") as string }] } },
      ]);
      await expect
        .poll(() => listener.out.split("notifications/resources/updated").length - 1, { timeout: 10_000 })
        .toBe(2);
    } finally {
      await listener.end();
    }
  });

  it("says so where its port is taken", async () => {
    const { port } = new URL(url);
    const second = new Program(process.execPath, [MAIN], { PORT: port });
    const [code] = await second.exited;
    expect({ code, err: second.err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        new RegExp(
          `^Port ${port} on 127\\.0\\.0\\.1 is in use: .*\\n.*PORT=${Number(port) + 1} node examples/board/main\\.js\\n$`,
        ),
      ) as string,
    });
  });

  it("says so where PORT is no port", async () => {
    const second = new Program(process.execPath, [MAIN], { PORT: "http" });
    const [code] = await second.exited;
    expect({ code, err: second.err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /^serve\(\): http\.port must be a whole number .*\n.*PORT=3001 node examples\/board\/main\.js\n$/,
      ) as string,
    });
  });

  it("ends by a signal", async () => {
    const other = new Program(process.execPath, [MAIN], { PORT: "0" });
    await other.prints("Ctrl-C");
    other.child.kill("SIGTERM");
    expect(await other.exited).toEqual([0, null]);
  });
});
