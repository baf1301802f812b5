// `npm run pictures` draws the pictures of the console in the README: starts a gateway with real servers, lets two clients of
// the official SDK work with it, and photographs the pages in a real browser, light and dark.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { Page } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { ROOT } from "./page.ts";

const PICTURES = join(ROOT, "docs/pictures");
const SIZE = { width: 1440, height: 720 };
/** How long the person of the picture thinks. */
const PERSON_MS = 1_900;

const require = createRequire(import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "catenary-pictures-"));

function serverPackage(name: string): string {
  return join(dirname(require.resolve(`@modelcontextprotocol/${name}/package.json`)), "dist/index.js");
}

async function startGateway(): Promise<{
  readonly gateway: ChildProcess;
  readonly url: string;
  readonly link: string;
}> {
  writeFileSync(join(folder, "sales.csv"), "region,amount\nnorth,12\nnorth,18\nsouth,7\n");
  const config = {
    mcpServers: {
      issues: { command: process.execPath, args: [join(ROOT, "test/docs/issues-server.js")] },
      files: { command: process.execPath, args: [serverPackage("server-filesystem"), folder] },
      memory: {
        command: process.execPath,
        args: [serverPackage("server-memory")],
        env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
      },
      lisp: { live: "lisp", cwd: folder },
    },
    chain: [
      { redact: { in: ["results", "arguments"] } },
      { rename: { tools: { issue_write: "create_issue" } } },
      "metrics",
    ],
  };
  const path = join(folder, "catenary.json");
  writeFileSync(path, JSON.stringify(config));
  const args = [join(ROOT, "dist/cli/main.js"), "up", path, "--http", "127.0.0.1:0", "--json", "--no-token", "--start"];
  const env = { ...process.env, CI: "true", XDG_STATE_HOME: folder, XDG_RUNTIME_DIR: folder, CATENARY_CACHE: folder };
  const gateway = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "ignore"] });
  const [line] = (await once(gateway.stdout, "data")) as [Buffer];
  const { url, console: link } = JSON.parse(line.toString()) as { url: string; console: string };
  return { gateway, url, link };
}

async function connectClient(url: string, name: string, version: string): Promise<Client> {
  const client = new Client({ name, version }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => {
    await new Promise((resolve) => setTimeout(resolve, PERSON_MS));
    return { action: "accept", content: { confirm: true } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

/** What the two clients do. */
async function work(agent: Client, editor: Client): Promise<void> {
  const call = (client: Client, name: string, args: Record<string, unknown>): Promise<unknown> =>
    client.callTool({ name, arguments: args }).catch(() => undefined);
  await Promise.all([agent.listTools(), editor.listTools()]);
  await call(agent, "list_directory", { path: folder });
  await call(agent, "read_text_file", { path: join(folder, "sales.csv") });
  await call(editor, "search_issues", { query: "dots in names" });
  // A call at the same server would leave open whom the server asks.
  await call(editor, "get_issue", { number: 404 });
  await Promise.all([
    call(agent, "create_issue", {
      repository: "catenary/catenary",
      title: "Names with dots",
      body: "A desktop client drops servers whose tools have dots in their names.",
      key: "AKIAIOSFODNN7EXAMPLE",
    }),
    call(editor, "search_nodes", { query: "release" }),
  ]);
  await call(agent, "search_issues", { query: "names" });
  await call(agent, "create_entities", {
    entities: [{ name: "release 2", entityType: "plan", observations: ["needs names without dots"] }],
  });
  await call(editor, "get_issue", { number: 412 });
  await call(agent, "write_file", { path: join(folder, "notes.md"), content: "# Names\n" });
}

async function evaluate(agent: Client): Promise<void> {
  const forms = [
    "(defun rows (file) (with-open-file (in file) (read-line in) (loop for line = (read-line in nil) while line collect (parse-integer line :start (1+ (position #\\, line))))))",
    "(defun mean (xs) (/ (reduce #'+ xs) (length xs)))",
    '(mean (rows "sales.csv"))',
    '(mean (remove-if #\'plusp (rows "sales.csv")))',
  ];
  for (const code of forms) {
    await agent.callTool({ name: "evaluate-lisp", arguments: { code } });
  }
}

async function photograph(page: Page, scheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme: scheme });
  await page.getByRole("link", { name: "Traffic" }).click();
  await page.getByRole("searchbox", { name: "Filter" }).fill("method:tools/call -server:lisp");
  const calls = page.getByRole("table", { name: "Calls" });
  await calls.getByText("elicitation/create").waitFor();
  // The list comes to rest.
  await settle(page);
  await calls.getByText("create_issue").first().click();
  await page.getByRole("region", { name: "Call" }).getByText("create_issue").first().waitFor();
  await page.getByRole("tab", { name: "Steps" }).click();
  await settle(page);
  await page.screenshot({ path: join(PICTURES, `traffic-${scheme}.png`) });
  await page.getByRole("link", { name: "Live" }).click();
  await settle(page);
  await page.screenshot({ path: join(PICTURES, `live-${scheme}.png`) });
}

/** Lets pages draw what has come. */
async function settle(page: Page): Promise<void> {
  await page.waitForTimeout(1_000);
}

mkdirSync(PICTURES, { recursive: true });
const { gateway, url, link } = await startGateway();
try {
  const [agent, editor] = await Promise.all([
    connectClient(url, "agent", "2.4"),
    connectClient(url, "editor", "1.118"),
  ]);
  await work(agent, editor);
  await evaluate(agent);
  const browser = await launchBrowser();
  const context = await browser.newContext({ viewport: SIZE, deviceScaleFactor: 2 });
  const page = await context.newPage();
  await page.goto(link);
  await photograph(page, "light");
  await photograph(page, "dark");
  await browser.close();
  await Promise.all([agent.close(), editor.close()]);
} finally {
  gateway.kill();
  await once(gateway, "exit");
  rmSync(folder, { recursive: true, force: true });
}
