// Runs every example with `node` on the built package: its output, that it exits by itself with code 0, and that it
// leaves no process behind. The messages that the conversation prints are checked against the official schema of their
// revision, in both directions. The board, which serves until it is stopped, has a test of its own.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "catenary";
import type { Client } from "catenary";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import type { Message } from "../../src/jsonrpc/message.ts";
import { MessageValidator } from "../support/spec/message-validator.ts";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { commandsOf, patternOf, readPage } from "./page.ts";
import { PROGRAM_MS } from "../support/waiting.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Every process of a run, and whatever it starts, carries this in its environment. */
const MARK = "CATENARY_EXAMPLE_RUN";

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(mark: string, command: string, ...args: string[]): Promise<Run> {
  const child = spawn(command, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, [MARK]: mark },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const late = setTimeout(() => child.kill("SIGKILL"), PROGRAM_MS);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(late);
  return { code, stdout, stderr };
}

/** The processes that still carry the mark; only Linux shows them. */
function marked(mark: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${MARK}=${mark}`);
    } catch {
      return false;
    }
  });
}

/** The guardian of child processes exits a moment after the program; there is no event to wait for. */
async function expectNothingLeft(mark: string): Promise<void> {
  await expect.poll(() => marked(mark)).toEqual([]);
}

const EXAMPLES = readdirSync(join(root, "examples"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const readmeOf = (example: string): string => readPage(`examples/${example}/README.md`);

const commands = EXAMPLES.flatMap((example) => commandsOf(readmeOf(example)).map((one) => ({ example, ...one })));

it.for(commands)("the commands of the READMEs: $example: $line", async ({ line, output }, { skip }) => {
  skip(/\blisp\b/.test(line) && !hasSbcl(), "needs SBCL");
  const mark = randomUUID();
  const { code, stdout, stderr } = await run(
    mark,
    "sh",
    "-c",
    line.replaceAll("npx catenary", "node dist/cli/main.js"),
  );
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(new RegExp(`^${patternOf(output).source}\\s*$`));
  await expectNothingLeft(mark);
});

it("the commands of the READMEs run every example that ends by itself and prints the same each time", () => {
  const run = commands.flatMap(({ line }) => /^node examples\/([\w-]+)\/main\.js$/.exec(line)?.[1] ?? []);
  expect(run).toEqual(["chain", "client", "gateway", "guarded-files", "old-server"]);
});

describe("examples/conversation", () => {
  const mark = randomUUID();
  let printed: Run;
  let parts: string[] = [];

  beforeAll(async () => {
    printed = await run(mark, process.execPath, "examples/conversation/main.js");
    parts = printed.stdout.split(/^# Revision /m).slice(1);
  });

  it("examples/conversation: speaks all five revisions, ends by itself and leaves nothing behind", async () => {
    expect(printed.stderr).toBe("");
    expect(printed.code).toBe(0);
    expect(parts.map((part) => part.slice(0, part.indexOf("\n")))).toEqual(REVISIONS.map(({ name }) => name));
    await expectNothingLeft(mark);
  });

  it.each(REVISIONS.map((revision, index) => [revision.name, revision.style, index] as const))(
    "examples/conversation: %s: both sides send what the schema allows",
    (name, style, index) => {
      const judge = new MessageValidator(name);
      const lines = (parts[index] ?? "").split("\n").filter((line) => /^[→←] /.test(line));
      expect(lines.length).toBeGreaterThanOrEqual(12);
      for (const line of lines) {
        const message = JSON.parse(line.slice(2)) as Message;
        expect(judge.validate(line.startsWith("→") ? "client" : "server", message), line).toEqual([]);
      }
      const first = JSON.parse(lines[0]?.slice(2) ?? "") as { method: string };
      expect(first.method).toBe(style === "session" ? "initialize" : "server/discover");
    },
  );

  it("examples/conversation asks during the call in the form of each revision, or is refused", () => {
    const ways = parts.map((part) => {
      if (part.includes('"resultType":"input_required"')) return "a round";
      if (/^← .*"method":"elicitation\/create"/m.test(part)) return "a request";
      return /^# refused: .*elicitation/m.test(part) ? "refused" : "nothing";
    });
    expect(ways).toEqual(["refused", "refused", "a request", "a request", "a round"]);
  });
});

it.each(REVISIONS.slice(-2).map(({ name }) => name))(
  "examples/gateway asks a client of %s each question once",
  async (revision) => {
    const asked: string[] = [];
    const client = await connect(
      { command: process.execPath, args: ["dist/cli/main.js", "serve", "examples/gateway/catenary.json"], cwd: root },
      {
        revision,
        elicit: ({ message }) => {
          asked.push(message);
          return { action: "accept", content: message.startsWith("May ") ? {} : { sky: "cloudy" } };
        },
      },
    );
    try {
      const { content } = await client.callTool("report_sighting", { location: "London" });
      expect(content).toEqual([{ type: "text", text: "Thank you. London is cloudy." }]);
      expect(asked).toEqual([
        'May report_sighting be called with {"location":"London"}?',
        "What does the sky over London look like?",
      ]);
    } finally {
      await client.close();
    }
  },
);

it("examples/live: evaluates, lists definitions and interrupts, in JavaScript and, if there is SBCL, in Common Lisp", async () => {
  const mark = randomUUID();
  const { code, stdout, stderr } = await run(mark, process.execPath, "examples/live/main.js");
  expect(stderr).toBe("");
  // The position of an interrupted loop differs from run to run.
  const shown = stdout.replaceAll(/(?<=keeps its state\.\n)\n\[Backtrace\]\n(?:\d+: .*\n)*/g, "");
  const [, js = "", lisp = ""] = shown.split(/^# .*\n\n/m);
  expect(js.split("\n\n").map((part) => part.trimEnd())).toEqual([
    "evaluate-js const fib = (n: number): number => (n < 2 ? n : fib(n - 1) + fib(n - 2)); fib(20)\n=> 6765",
    "evaluate-js console.log('working'); [1, 2, 3].map(fib)\nworking\n=> [ 1, 1, 2 ]",
    "list-variables\nfib: function = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2))",
    "evaluate-js fib.of(3)\n[ERROR] TypeError\nfib.of is not a function",
    "[Backtrace]\n0: <eval 3>:1:5",
    "evaluate-js function forever() { for (;;); }\nconsole.log('on and on'); forever()\non and on\n" +
      "[INTERRUPTED] It was interrupted; the session keeps its state.",
    "evaluate-js fib(10)\n=> 55",
    "evaluate-js typeof fib in other\n=> 'undefined'",
    "",
  ]);
  if (lisp.includes("need SBCL")) expect(lisp).toContain("apt-get install sbcl");
  else {
    expect(lisp).toContain("(values (sq 5) (sq 6))\n=> 25\n=> 36\n");
    expect(lisp).toContain('  variable: *stock* = ("tea")\n');
    expect(lisp).toContain("[ERROR] UNBOUND-VARIABLE\nThe variable *STOK* is unbound.\n");
    expect(lisp).toContain("on and on\n[INTERRUPTED] It was interrupted; the session keeps its state.\n");
    expect(lisp).toContain('evaluate-lisp *stock*\n=> ("tea")\n');
  }
  expect(code).toBe(0);
  await expectNothingLeft(mark);
});

it("examples/openapi has the operations as tools, checks arguments, and shows how a request failed", async () => {
  const mark = randomUUID();
  const { code, stdout, stderr } = await run(mark, process.execPath, "examples/openapi/main.js");
  expect(stderr).toBe("");
  expect(stdout.split("\n\n")).toEqual([
    "Tool listProducts: Lists the products (color)\n" +
      "Tool getProduct: Gets a product (id)\n" +
      "Tool placeOrder: Orders a product (product, count)",
    'listProducts {"color":"red"}\n{"products":[{"id":1,"name":"Cap","color":"red"}]}',
    'getProduct {"id":2}\n{"id":2,"name":"Scarf","color":"green"}',
    'placeOrder {"product":2,"count":3}\n{"id":1,"product":2,"count":3}',
    'placeOrder {"product":2,"count":0} failed\nInvalid arguments for the tool placeOrder:\n- count: must be >= 1',
    'getProduct {"id":7} failed\nHTTP 404 Not Found',
    '{"message":"there is no product 7"}\n',
  ]);
  expect(code).toBe(0);
  await expectNothingLeft(mark);
});

it("examples/programs runs what a pattern allows, and shows how a program failed", async () => {
  const mark = randomUUID();
  const { code, stdout, stderr } = await run(mark, process.execPath, "examples/programs/main.js");
  expect(stderr).toBe("");
  const [tool, ...calls] = stdout.trimEnd().split("\n\n{");
  expect(tool).toBe("Tool git\nArguments: _args, C, c, exec-path, ...");
  expect(calls.slice(0, 3)).toEqual([
    '"_args":["init","--quiet"]}\nCommand completed with no output',
    '"no-pager":true,"_args":["status","--short"]}\nSTDOUT:\n?? notes.txt',
    '"_args":["push","--force"]} failed\n`git push --force` is not allowed; ' +
      "the patterns that are allowed: git init --quiet, git --no-pager status --short, git show HEAD",
  ]);
  expect(calls[3]).toMatch(/^"_args":\["show","HEAD"\]\} failed\nSTDERR:\n[^]*\n\nExit code: 128$/);
  expect(code).toBe(0);
  await expectNothingLeft(mark);
});

describe("example servers", () => {
  const clients: Client[] = [];
  const open = async (...args: string[]): Promise<Client> => {
    const client = await connect({ command: process.execPath, args, cwd: root });
    clients.push(client);
    return client;
  };

  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  it.each(["examples/pharo/main.js", "dist/cli/main.js serve examples/pharo/server.js"])(
    "example servers: pharo, started by node %s",
    async (words) => {
      const client = await open(...words.split(" "));
      expect(client.server).toEqual({ name: "pharo-mcp", version: "0.1.0" });
      expect(client.capabilities).toEqual({
        logging: {},
        tools: { listChanged: false },
        resources: { subscribe: false, listChanged: false },
        prompts: { listChanged: false },
      });
      const evaluated = await client.callTool("evaluate", { expression: "#(3 4) inject: 0 into: [:a :b | a + b]" });
      expect(evaluated.content).toEqual([{ type: "text", text: "7" }]);
      const failed = await client.callTool("evaluate", { expression: "3 zork" });
      expect(failed).toMatchObject({ isError: true, content: [{ text: "Error: 3 does not understand #zork" }] });
      const version = await client.readResource("pharo://system/version");
      expect(version.contents).toEqual([{ uri: "pharo://system/version", mimeType: "text/plain", text: "Pharo 13.0" }]);
      const { resourceTemplates } = await client.listResourceTemplates();
      expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(["pharo://class/{className}"]);
      const set = await client.readResource("pharo://class/Set");
      expect(set.contents[0]).toMatchObject({
        mimeType: "application/json",
        text: expect.stringContaining("HashedCollection"),
      });
      await expect(client.readResource("pharo://class/Nothing")).rejects.toMatchObject({
        data: { kind: "resource_not_found" },
      });
      const prompt = await client.getPrompt("review-class", { className: "Set" });
      expect(prompt).toMatchObject({
        description: "Code review for Set",
        messages: [{ role: "user", content: { type: "text", text: "Please review the class Set." } }],
      });
    },
  );

  it("example servers: weather, started by node examples/weather/main.js", async () => {
    const client = await open("examples/weather/main.js");
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      "get_weather",
      "forecast",
      "report_sighting",
    ]);
    const { contents } = await client.readResource("file:///home/user/documents/report.pdf");
    expect(Buffer.from((contents[0] as { blob: string }).blob, "base64").toString()).toMatch(/^%PDF/);
    expect(await client.callTool("get_weather", { location: "New York" })).toMatchObject({
      content: [{ type: "text", text: "The weather in New York is 72°F and sunny." }],
      isError: false,
    });
    // A client without elicitation gets an error that names the capability.
    await expect(client.callTool("report_sighting", { location: "London" })).rejects.toMatchObject({
      data: { kind: "missing_capability" },
    });
  });
});

it("every example has a README that says how to run it", () => {
  expect(EXAMPLES.toSorted()).toEqual([
    "board",
    "chain",
    "cl-mcp",
    "client",
    "conversation",
    "gateway",
    "guarded-files",
    "live",
    "old-server",
    "openapi",
    "pharo",
    "programs",
    "weather",
  ]);
  for (const name of EXAMPLES) {
    const start = name === "cl-mcp" ? `sbcl --load examples/${name}/run-server.lisp` : `node examples/${name}/main.js`;
    expect(readmeOf(name)).toContain(start);
  }
});
