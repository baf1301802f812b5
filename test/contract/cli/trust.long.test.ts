// `catenary up`, `serve` and the commands with the name of a server, in a folder with a catenary.json: at a terminal, the
// user is shown what would be started and is asked once, and again if the file has changed. Without a terminal, and for a
// config that is named, nobody is asked.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CTRL_C, CTRL_D, ENTER, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { CLI, cliRunner, expectNoProcesses, markProcesses } from "./cli-process.ts";

let folder = "";
let terminal: Terminal | undefined;
const { mark, env: marked } = markProcesses();
const run = cliRunner();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-trust-"));
  mkdirSync(join(folder, "project"));
  writeFileSync(
    join(folder, "project", "use.mjs"),
    "export default (request, context, next) => next(request, context);",
  );
  write("first");
});
afterEach(async () => {
  await stop();
  await expectNoProcesses(mark);
  rmSync(folder, { recursive: true, force: true });
});

/** Ends the program of the terminal. */
async function stop(): Promise<void> {
  terminal?.type(CTRL_C);
  await terminal?.close();
  terminal = undefined;
}

/** Writes the config with a program of this name. */
function write(name: string): void {
  const config = {
    mcpServers: {
      notes: { command: "node", args: [`${name}.js`, "--token", "hush-hush", "\u001b[31m${SECRET}"] },
      web: { url: "https://example.com/s3cr3t/mcp" },
    },
    chain: [{ use: "./use.mjs" }],
  };
  writeFileSync(join(folder, "project", "catenary.json"), JSON.stringify(config));
}

const env = (): NodeJS.ProcessEnv => ({ XDG_STATE_HOME: join(folder, "state"), SECRET: "s3cr3t-value" });

function up(...args: readonly string[]): Terminal {
  return open("up", "--http", "127.0.0.1:0", ...args);
}

function open(...args: readonly string[]): Terminal {
  const command = [process.execPath, CLI, ...args];
  terminal = new Terminal(command, { columns: 500, env: { ...marked, ...env() }, cwd: join(folder, "project") });
  return terminal;
}

const QUESTION = "Start them? [y/N]";
const SERVING = "Serving catenary.json at";

it.runIf(HAS_TERMINAL)("at a terminal, a config that is not named is shown and asked about, once", async () => {
  const first = up();
  await first.shows(QUESTION);
  expect(first.screen).toContain("catenary.json is new to Catenary. These programs would run with your rights:");
  expect(first.screen).toContain("  notes: node first.js --token *********");
  expect(first.screen).toContain("${SECRET}");
  expect(first.screen).toContain("  web: the server at https://example.com\n");
  expect(first.screen).toMatch(/ {2}middleware: the module .*use\.mjs/);
  expect(first.bytes).not.toMatch(/s3cr3t|hush-hush/);
  expect(first.screen).not.toContain(SERVING);
  first.type(`y${ENTER}`);
  await first.shows(SERVING);
  await stop();
  const second = up();
  await second.shows(SERVING);
  expect(second.screen).not.toContain(QUESTION);
});

it.runIf(HAS_TERMINAL)(
  "at a terminal, a config that is not named is asked about again when it has changed",
  async () => {
    const first = up("--yes");
    await first.shows(SERVING);
    expect(first.screen).not.toContain(QUESTION);
    await stop();
    write("second");
    const second = up();
    await second.shows(QUESTION);
    expect(second.screen).toContain("catenary.json or a file that it runs has changed since you approved it.");
    second.type(`n${ENTER}`);
    expect(await second.exited).toBe(1);
    expect(second.screen).toContain("catenary.json was not used, and nothing was started; read the file, then run");
  },
);

it.runIf(HAS_TERMINAL)(
  "at a terminal, a config that is not named is loaded as it was shown, whatever is written to it while the question is open",
  async () => {
    const asked = up();
    await asked.shows(QUESTION);
    write("second");
    asked.type(`y${ENTER}`);
    await asked.shows(SERVING);
    // A warning about the script of the config that was loaded.
    expect(asked.screen).toContain("first.js");
    expect(asked.screen).not.toContain("second.js");
    await stop();
    const again = up();
    await again.shows(QUESTION);
    expect(again.screen).toContain("notes: node second.js");
  },
);

it.runIf(HAS_TERMINAL)(
  "at a terminal, a config that is not named is asked about again when a module that it loads, or one that this imports, has changed",
  async () => {
    const file = (name: string): string => join(folder, "project", name);
    writeFileSync(
      file("use.mjs"),
      'import "./rules.mjs"; export default (request, context, next) => next(request, context);',
    );
    writeFileSync(file("rules.mjs"), "export {};");
    const approved = up("--yes");
    await approved.shows(SERVING);
    await stop();
    writeFileSync(file("rules.mjs"), "export const changed = true;");
    const asked = up();
    await asked.shows(QUESTION);
    // While the question is open, the module changes again.
    writeFileSync(file("use.mjs"), "export default (request, context, next) => next(request, context);");
    asked.type(`y${ENTER}`);
    expect(await asked.exited).toBe(1);
    expect(asked.screen).toContain("A file that catenary.json runs has changed since you were asked");
  },
);

it.runIf(HAS_TERMINAL)("at a terminal, a config that is not named is served on stdio after the answer", async () => {
  const served = open("serve");
  await served.shows(QUESTION);
  served.type(`y${ENTER}`);
  // From here on, the gateway reads stdin, not the question.
  await served.shows("looked for");
  served.type(`{"jsonrpc":"2.0","id":1,"method":"ping"}${ENTER}`);
  await served.shows('"id":1,"result":{}');
  served.type(CTRL_D);
  expect(await served.exited).toBe(0);
});

it.runIf(HAS_TERMINAL).each([["tools", "notes"], ["call", "notes", "search"], ["doctor", "notes"], ["doctor"]])(
  "at a terminal, a config that is not named is asked about by %s %s",
  async (...args) => {
    const asked = open(...args);
    await asked.shows(QUESTION);
    asked.type(`n${ENTER}`);
    expect(await asked.exited).toBe(1);
    expect(asked.screen).toContain("nothing was started");
    expect(asked.screen).not.toContain("first.js:");
  },
);

it.runIf(HAS_TERMINAL)("at a terminal, a config that is not named is not asked about if it is named", async () => {
  const named = up("catenary.json");
  await named.shows(SERVING);
  expect(named.screen).not.toContain(QUESTION);
});

it("without a terminal, nobody is asked", async () => {
  const started = run(["up", "--http", "127.0.0.1:0"], { env: env(), cwd: join(folder, "project") });
  await started.waitForStderr(SERVING);
  expect(started.err).not.toContain(QUESTION);
});
