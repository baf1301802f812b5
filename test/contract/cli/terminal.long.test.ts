// The commands in a real terminal: progress in place, Ctrl-C once and twice, answering questions, and control characters
// from a hostile server.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { CTRL_C, CTRL_D, ENTER, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { CLI, TEST_SERVER_COMMAND, markProcesses, expectNoProcesses } from "./cli-process.ts";

let folder = "";
let log = "";
const opened: Terminal[] = [];
const { mark, env: marked } = markProcesses();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-terminal-"));
  log = join(folder, "log");
});
afterEach(async () => {
  for (const terminal of opened.splice(0)) await terminal.close();
  rmSync(log, { force: true });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

interface Options {
  readonly env?: NodeJS.ProcessEnv;
  readonly columns?: number;
  /** Stdout goes to this file instead of the screen. */
  readonly to?: string;
}

function catenary(args: readonly string[], { env, columns, to }: Options = {}): Terminal {
  const line = [process.execPath, CLI, ...args, "--", ...TEST_SERVER_COMMAND];
  const command = to === undefined ? line : ["sh", "-c", 'to=$1; shift; exec "$@" > "$to"', "sh", to, ...line];
  const terminal = new Terminal(command, {
    env: { ...marked, CATENARY_TEST_LOG: log, ...env },
    ...(columns === undefined ? undefined : { columns }),
  });
  opened.push(terminal);
  return terminal;
}

const readLog = (): string => readFileSync(log, "utf8");

async function answered(terminal: Terminal): Promise<unknown> {
  expect(await terminal.exited).toBe(0);
  return JSON.parse(terminal.screen.split("\n").findLast((line) => line !== "") ?? "");
}

const skipped = "the command line in a real terminal is skipped: python3 is not installed";
if (!HAS_TERMINAL) it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));

it.runIf(HAS_TERMINAL)("progress is a bar that is redrawn in place, and removed at the end", async () => {
  const terminal = catenary(["call", "count", "to=4", "ms=150"]);
  await terminal.showed("[######------------------] 25% 1/4  step 1");
  await terminal.showed("[########################] 100% 4/4  step 4");
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen).toBe("counted to 4");
});

it.runIf(HAS_TERMINAL)("progress is a counter without a total, and fits a narrow screen", async () => {
  const terminal = catenary(["call", "count", "to=3", "ms=150", "total=false"], { columns: 11 });
  await terminal.showed("2  st...");
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen).toBe("counted to 3");
});

it.runIf(HAS_TERMINAL)("progress goes to the screen if stdout is a file", async () => {
  const to = join(folder, "out.txt");
  const terminal = catenary(["call", "count", "to=2", "ms=150"], { to });
  await terminal.showed("50% 1/2");
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen).toBe("");
  expect(readFileSync(to, "utf8")).toBe("counted to 2\n");
});

it.runIf(HAS_TERMINAL)("progress is not drawn with --quiet or on a dumb terminal", async () => {
  const quiet = catenary(["call", "count", "to=2", "ms=120", "--quiet"]);
  expect(await quiet.exited).toBe(0);
  expect(quiet.bytes).toBe("counted to 2\r\n");
  const dumb = catenary(["call", "count", "to=2", "ms=10"], { env: { TERM: "dumb" } });
  expect(await dumb.exited).toBe(0);
  expect(dumb.bytes).toBe("progress: 50% 1/2  step 1\r\ncounted to 2\r\n");
});

it.runIf(HAS_TERMINAL)("Ctrl-C cancels the call and the tool, and the exit code is 130", async () => {
  const terminal = catenary(["call", "hang"]);
  await terminal.showed("1  hanging");
  terminal.type(CTRL_C);
  expect(await terminal.exited).toBe(130);
  expect(terminal.screen).toContain("Cancelling; press Ctrl-C again to quit at once\ncatenary: Cancelled");
  expect(readLog()).toContain("aborted");
  await expectNoProcesses(mark);
});

it.runIf(HAS_TERMINAL)("Ctrl-C twice quits at once, and the server process ends too", async () => {
  const terminal = catenary(["call", "block"]);
  await terminal.showed("1  blocked");
  await expect.poll(readLog).toContain("blocked");
  terminal.type(CTRL_C);
  await terminal.shows("Cancelling");
  terminal.type(CTRL_C);
  expect(await terminal.exited).toBe(130);
  expect(terminal.screen).not.toContain("Cancelled");
  await expectNoProcesses(mark);
});

it.runIf(HAS_TERMINAL)("Ctrl-C cancels connecting", async () => {
  const terminal = new Terminal(
    [process.execPath, CLI, "tools", "--", process.execPath, "-e", "process.stdin.resume()"],
    {
      env: marked,
    },
  );
  opened.push(terminal);
  await terminal.showed("Connecting to node");
  terminal.type(CTRL_C);
  expect(await terminal.exited).toBe(130);
  await expectNoProcesses(mark);
});

const revisions = [
  ["in the newest revision", []],
  ["in a session", ["--revision", NEWEST_SESSION.name]],
] as const;

it.runIf(HAS_TERMINAL).each(revisions)(
  "a form is asked field by field and reviewed before it is sent, %s",
  async (_name, flags) => {
    const to = join(folder, "form.json");
    const terminal = catenary(["call", "form", ...flags], { to });
    const fill = async (prompt: string, answer: string): Promise<void> => {
      await terminal.shows(new RegExp(`^${prompt}.*:$`, "m"));
      terminal.type(`${answer}${ENTER}`);
    };
    await terminal.shows("demo 1.2.3 asks: Who \\x1b[31mare you?");
    await fill("Your name", "A");
    await terminal.shows("It must have at least 2 characters\nYour name");
    terminal.type(`Ann${ENTER}`);
    await fill("mail", "ann");
    await terminal.shows("It must look like name@example.com");
    terminal.type(ENTER);
    await fill("age \\(whole number, 0 to 150, optional\\) \\[30\\]", "200");
    await terminal.shows("It must be at most 150");
    terminal.type(`41${ENTER}`);
    await fill("glad", "n");
    await terminal.shows("  1) red\n  2) green\ncolour");
    terminal.type(`2${ENTER}`);
    await terminal.shows("  1) Small\n  2) Large\nsize");
    terminal.type(`large${ENTER}`);
    await fill("days", "1,sun");
    await terminal.shows("sun is not in the list; type a number from 1 to 3");
    terminal.type(`3, 1${ENTER}`);
    await terminal.shows("Send this?");
    expect(terminal.screen).toContain(
      "  Your name: Ann\n  mail: (empty)\n  age: 41\n  glad: no\n  colour: green\n  size: Large\n  days: wed, mon\n",
    );
    terminal.type(ENTER);
    expect(await terminal.exited).toBe(0);
    expect(JSON.parse(readFileSync(to, "utf8"))).toEqual({
      action: "accept",
      content: { name: "Ann", age: 41, glad: false, colour: "green", size: "l", days: ["wed", "mon"] },
    });
  },
);

it.runIf(HAS_TERMINAL)("a form can be edited before it is sent, with the answers as defaults", async () => {
  const terminal = catenary(["call", "form"]);
  await terminal.shows("Your name");
  // Typed ahead, or pasted.
  terminal.type(["Ann", "", "", "", "red", "", "tue", ""].join(ENTER));
  await terminal.shows("  days: tue\nSend this?");
  terminal.type(`e${ENTER}`);
  await terminal.shows("Your name (text, at least 2 characters) [Ann]:");
  terminal.type(["Bob", "", "", "", "", "", "", ""].join(ENTER));
  await terminal.shows("  Your name: Bob");
  await terminal.shows(/Send this\?[^]*Send this\?/);
  terminal.type(`y${ENTER}`);
  expect(await answered(terminal)).toEqual({
    action: "accept",
    content: { name: "Bob", age: 30, glad: true, colour: "red", days: ["tue"] },
  });
});

it.runIf(HAS_TERMINAL).each([
  [":decline", `:decline${ENTER}`, { action: "decline" }],
  [":cancel", `:cancel${ENTER}`, { action: "cancel" }],
  ["Ctrl-D", CTRL_D, { action: "cancel" }],
])("a form is refused or dismissed by %s", async (_name, keys, answer) => {
  const terminal = catenary(["call", "form"]);
  await terminal.shows("Your name");
  terminal.type(keys);
  expect(await answered(terminal)).toEqual(answer);
});

it.runIf(HAS_TERMINAL)("a form is cancelled with the call by Ctrl-C", async () => {
  const terminal = catenary(["call", "form"]);
  await terminal.shows("Your name");
  terminal.type(`half a na${CTRL_C}`);
  expect(await terminal.exited).toBe(130);
  expect(terminal.screen).toContain("half a na\nCancelling");
  await expectNoProcesses(mark);
});

it.runIf(HAS_TERMINAL)("a form without fields asks for consent", async () => {
  for (const [keys, answer] of [
    ["y", { action: "accept", content: {} }],
    ["d", { action: "decline" }],
    ["c", { action: "cancel" }],
  ] as const) {
    const terminal = catenary(["call", "agree"]);
    await terminal.shows("Agree? [y]es, [d]ecline, [c]ancel:");
    // Lines typed before the question do not count, and an invalid answer is asked again.
    terminal.type(`what${ENTER}y${ENTER}`);
    await terminal.shows(/Agree\?[^]*Agree\?/);
    terminal.type(`${keys}${ENTER}`);
    expect(await answered(terminal)).toEqual(answer);
  }
});

it.runIf(HAS_TERMINAL)("a form waits until another is answered", async () => {
  const terminal = catenary(["call", "two"]);
  await terminal.shows("The first?");
  await terminal.shows("first (text):");
  expect(terminal.screen).not.toContain("The second?");
  terminal.type(`1${ENTER}`);
  await terminal.shows("Send this?");
  terminal.type(ENTER);
  await terminal.shows("second (text):");
  terminal.type(`2${ENTER}`);
  await terminal.shows(/Send this\?[^]*Send this\?/);
  terminal.type(ENTER);
  expect(await answered(terminal)).toEqual([{ first: "1" }, { second: "2" }]);
});

it.runIf(HAS_TERMINAL)("a page to visit is shown with its host, and opened only after a yes", async () => {
  const visited = join(folder, "visited");
  const browser = join(folder, "browser.mjs");
  writeFileSync(browser, `import { writeFileSync } from "node:fs"; writeFileSync("${visited}", process.argv[2]);`);
  const terminal = catenary(["call", "visit"], { env: { BROWSER: `node ${browser}` } });
  await terminal.shows("Open it in the browser?");
  expect(terminal.screen).toContain("  host: sign.example\n  URL:  https://sign.example/form?a=%E2%80%AEb\n");
  terminal.type(`y${ENTER}`);
  expect(await answered(terminal)).toEqual({ action: "accept" });
  await expect.poll(() => readFileSync(visited, "utf8")).toBe("https://sign.example/form?a=%E2%80%AEb");
});

it.runIf(HAS_TERMINAL).each([
  ["m", { action: "accept" }],
  ["d", { action: "decline" }],
  ["c", { action: "cancel" }],
])("a page to visit is answered by %s without a browser", async (keys, answer) => {
  const terminal = catenary(["call", "visit"], { env: { BROWSER: "none", DISPLAY: "", WAYLAND_DISPLAY: "" } });
  await terminal.shows("Open it in the browser?");
  terminal.type(`y${ENTER}`);
  await terminal.shows("Could not open a browser");
  terminal.type(`${keys}${ENTER}`);
  expect(await answered(terminal)).toEqual(answer);
});

/** Sequences that only the server sends; the test screen also throws at an unknown one. */
const HOSTILE = ["\u001b[2J", "\u001b[1;1H", "\u001b]0;", "\u009b", "\u202e", "\revil", "\rover"];
const SHOWN = "safe\\x1b[2J\\x1b[1;1H\\x1b]0;pwned\\x07\\x9b31m\\u{202e}evil\\x0dover";

it.runIf(HAS_TERMINAL).each([
  [
    ["call", "hostile", "--log-level", "debug"],
    [SHOWN, `[warning] ${SHOWN}`],
  ],
  [["tools"], [`hostile      ${SHOWN}`]],
  [["tools", "hostile"], [SHOWN]],
  [["read", "demo://raw"], [SHOWN]],
  [["call", "throws"], [`catenary: ${SHOWN}`]],
  [["call", "hostile", "--json"], ['"text": "safe\\u001b[2J\\u001b[1;1H\\u001b]0;pwned\\u0007\\u009b31m\\u202eevil']],
])("output of a hostile server of %j is escaped on the screen", async (args, texts) => {
  const terminal = catenary(args, { columns: 200 });
  await terminal.exited;
  for (const sequence of HOSTILE) expect(terminal.bytes).not.toContain(sequence);
  for (const shown of texts) expect(terminal.screen).toContain(shown);
});

it.runIf(HAS_TERMINAL)("output of a hostile server is never printed as bytes", async () => {
  const terminal = catenary(["read", "demo://bytes"]);
  expect(await terminal.exited).toBe(0);
  const text = "demo://bytes, image/png, 70 bytes: not shown; use --save DIR or --output FILE to write it to a file";
  expect(terminal.screen).toBe(text);
});

it.runIf(HAS_TERMINAL)("colour is used, unless NO_COLOR or TERM=dumb is set", async () => {
  const shown = async (env: NodeJS.ProcessEnv): Promise<string> => {
    const terminal = catenary(["prompts", "--quiet"], { env });
    await terminal.exited;
    return terminal.bytes;
  };
  const plain = "greet  Greet a person\r\n       name=string [tone=string]\r\ntalk   A talk\r\n";
  expect(await shown({})).toContain("\u001b[1mgreet\u001b[22m  Greet a person");
  expect(await shown({ NO_COLOR: "1" })).toBe(plain);
  expect(await shown({ TERM: "dumb" })).toBe(plain);
});

it.runIf(HAS_TERMINAL)("colour is not used in questions either", async () => {
  const terminal = catenary(["call", "agree"], { env: { NO_COLOR: "1" } });
  await terminal.shows("Agree?");
  for (const colour of [1, 2, 33]) expect(terminal.bytes).not.toContain(`\u001b[${colour}m`);
  terminal.type(`y${ENTER}`);
  await terminal.exited;
});
