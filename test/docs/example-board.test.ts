// The board example: it prints its URL, every command that it prints works in a shell, a port that is in use is
// reported, and a signal stops it.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endOf, succeeds } from "../support/blocking-program.ts";

const MAIN = fileURLToPath(new URL("../../examples/board/main.js", import.meta.url));
const HAS_CURL = succeeds("curl", ["--version"]);

class Program {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown[]>;
  out = "";
  err = "";

  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    // A group of its own, so that a shell and its children end together.
    this.child = spawn(command, args, { env: { ...process.env, ...env }, detached: true });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.out += text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    this.exited = once(this.child, "close");
  }

  async prints(text: string): Promise<void> {
    while (!this.out.includes(text)) {
      await Promise.race([once(this.child.stdout!, "data"), this.exited]);
      if (this.child.exitCode !== null) throw new Error(`It exited without printing ${text}: ${this.err}`);
    }
  }

  async end(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) process.kill(-(this.child.pid ?? 0), "SIGKILL");
    await this.exited;
  }
}

/** The text under each printed title. */
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
    if (found === undefined) throw new Error(`There is no title ${title}`);
    return found;
  };

  beforeAll(async () => {
    board = new Program(process.execPath, [MAIN], { PORT: "0" });
    await board.prints("Ctrl-C");
    printed = commands(board.out);
    url = /The board is at (\S+)/.exec(board.out)?.[1] ?? "";
  });
  afterAll(() => board.end());

  it("examples/board prints its URL and the entry for a client", () => {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(JSON.parse(command("The entry"))).toEqual({ mcpServers: { board: { type: "http", url } } });
    expect(board.out).not.toContain("\u001b");
  });

  it.skipIf(!HAS_CURL)("examples/board prints commands that work in both styles and notify a subscriber", async () => {
    const listener = new Program("sh", ["-c", command("Subscribe")]);
    try {
      await listener.prints("notifications/subscriptions/acknowledged");
      const texts = [command("Call a tool in a single"), command("Call a tool in a session"), command("Read")].map(
        (line) => {
          const { stdout, stderr, status } = endOf("sh", ["-c", line]);
          expect({ status, stderr }, line).toEqual({ status: 0, stderr: "" });
          return stdout;
        },
      );
      expect(texts.map((text) => JSON.parse(text) as unknown)).toMatchObject([
        { result: { content: [{ text: "Pinned; it is the only note." }] } },
        { result: { content: [{ text: "Pinned; there are 2 notes." }] } },
        { result: { contents: [{ text: expect.stringContaining("Wipe the board") as string }] } },
      ]);
      await expect.poll(() => listener.out.split("notifications/resources/updated").length - 1).toBe(2);
    } finally {
      await listener.end();
    }
  });

  it("examples/board reports a port that is in use", async () => {
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

  it("examples/board reports a PORT that is not a port", async () => {
    const second = new Program(process.execPath, [MAIN], { PORT: "http" });
    const [code] = await second.exited;
    expect({ code, err: second.err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /^serve\(\): http\.port must be an integer .*\n.*PORT=3001 node examples\/board\/main\.js\n$/,
      ) as string,
    });
  });

  it("examples/board stops on a signal", async () => {
    const other = new Program(process.execPath, [MAIN], { PORT: "0" });
    await other.prints("Ctrl-C");
    other.child.kill("SIGTERM");
    expect(await other.exited).toEqual([0, null]);
  });
});
