// `catenary repl` in a real terminal: several lines, history, completion, Ctrl-C, restarts, and a session that another
// client uses at the same time; and without a terminal.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chain, connect, serve } from "catenary";
import { javascript } from "catenary/live";
import { afterAll, afterEach, expect, it } from "vitest";
import { CTRL_C, CTRL_D, ENTER, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { catenary, CLI } from "./cli-process.ts";

const folder = mkdtempSync(join(tmpdir(), "catenary-repl-"));
const env = { XDG_STATE_HOME: folder };
const UP = "\u001b[A";
const LEFT = "\u001b[D";
const TAB = "\t";
const CTRL_R = "\u0012";
const CTRL_G = "\u0007";
const opened: Terminal[] = [];

afterEach(async () => {
  for (const terminal of opened.splice(0)) await terminal.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(args: readonly string[], prompt: string): Promise<Terminal> {
  const terminal = new Terminal([process.execPath, CLI, "repl", ...args], { env });
  opened.push(terminal);
  await terminal.shows(prompt);
  return terminal;
}

const skipped = "catenary repl in a real terminal is skipped: python3 is not installed";
if (!HAS_TERMINAL) it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));

it.runIf(HAS_TERMINAL)(
  "catenary repl in a terminal takes several lines, keeps what was defined, and colours values",
  async () => {
    const terminal = await open(["js"], "js>");
    terminal.type(`function double(x) {${ENTER}`);
    await terminal.shows("...");
    terminal.type(`return x * 2 }${ENTER}`);
    await terminal.shows("; No values");
    terminal.type(`double(21)${ENTER}`);
    await terminal.shows("=> 42");
    expect(terminal.bytes).toContain("\u001b[33m42\u001b[39m");
    terminal.type(CTRL_D);
    expect(await terminal.exited).toBe(0);
  },
);

it.runIf(HAS_TERMINAL)("catenary repl in a terminal remembers lines for the next time", async () => {
  const first = await open(["js"], "js>");
  first.type(`'remembered'.length${ENTER}`);
  await first.shows("=> 10");
  first.type(`:quit${ENTER}`);
  expect(await first.exited).toBe(0);
  const second = await open(["js"], "js>");
  second.type(`${UP}${UP}`);
  await second.shows("js> 'remembered'.length");
  second.type(ENTER);
  await second.shows("=> 10");
});

it.runIf(HAS_TERMINAL)(
  "catenary repl in a terminal recalls an input of several lines as a whole, now and the next time",
  async () => {
    const first = await open(["js"], "js>");
    first.type(`function triple(x) {${ENTER}  return x * 3;${ENTER}}${ENTER}`);
    await first.shows("; No values");
    first.type(`triple(14)${ENTER}`);
    await first.shows("=> 42");
    first.type(`${UP}${UP}`);
    await first.shows(/=> 42\njs> function triple\(x\) \{\n {2}return x \* 3;\n\}$/);
    first.type(ENTER);
    await first.shows(/=> 42\n[^]*; No values/);
    first.type(`:quit${ENTER}`);
    expect(await first.exited).toBe(0);
    const second = await open(["js"], "js>");
    second.type(`${UP}${UP}`);
    await second.shows(/js> function triple\(x\) \{\n {2}return x \* 3;\n\}$/);
  },
);

it.runIf(HAS_TERMINAL)("catenary repl in a terminal searches the history with Ctrl-R", async () => {
  const terminal = await open(["js"], "js>");
  for (const code of ["'needle'.length", "1 + 1", "'needles'.length"]) {
    terminal.type(`${code}${ENTER}`);
    await terminal.shows(new RegExp(`${code.replace("+", "\\+")}\\n=> \\d`));
  }
  terminal.type(`${CTRL_R}needle`);
  await terminal.shows("(search) needle: 'needles'.length");
  terminal.type(CTRL_R);
  await terminal.shows("(search) needle: 'needle'.length");
  terminal.type(ENTER);
  await terminal.shows(/js> 'needle'\.length\n=> 6\njs>[^]*$/);
  terminal.type(`typed${CTRL_R}nothing like it`);
  await terminal.shows("(search failed) nothing like it:");
  terminal.type(CTRL_G);
  await terminal.shows(/js> typed$/);
});

it.runIf(HAS_TERMINAL)("catenary repl in a terminal colours a value over several lines", async () => {
  const terminal = await open(["js"], "js>");
  terminal.type(`({ a: 'x'.repeat(70), b: 4711, c: [true, null] })${ENTER}`);
  await terminal.shows(/b: 4711,\n {2}c: \[ true, null \]\n\}/);
  expect(terminal.bytes).toContain("b: \u001b[33m4711\u001b[39m");
  expect(terminal.bytes).toContain("\u001b[33mtrue\u001b[39m");
});

it.runIf(HAS_TERMINAL)("catenary repl in a terminal completes names from the session", async () => {
  const terminal = await open(["js"], "js>");
  terminal.type(`const completable = 7${ENTER}`);
  await terminal.shows(/completable = 7\n[^]*js>/);
  terminal.type(`compl${TAB}`);
  await terminal.shows("js> completable");
  terminal.type(ENTER);
  await terminal.shows("=> 7");
});

it.runIf(HAS_TERMINAL)(
  "catenary repl in a terminal interrupts what runs and keeps the state, and drops unfinished input",
  async () => {
    const terminal = await open(["js"], "js>");
    terminal.type(`let kept = 5; console.log("begun"); for (;;) {}${ENTER}`);
    await terminal.shows(/\nbegun/);
    terminal.type(CTRL_C);
    await terminal.shows("[INTERRUPTED]");
    terminal.type(`kept${ENTER}`);
    await terminal.shows("=> 5");
    terminal.type(`function unfinished() {${ENTER}`);
    await terminal.shows("...");
    terminal.type(CTRL_C);
    await terminal.shows(/\.\.\.\s*\njs>/);
    terminal.type(`kept + 1${ENTER}`);
    await terminal.shows("=> 6");
  },
);

it.runIf(HAS_TERMINAL)(
  "catenary repl in a terminal keeps what is typed while something runs, and its order",
  async () => {
    const terminal = await open(["js"], "js>");
    terminal.type(`console.log("begun"); await new Promise((done) => (globalThis.done = done))${ENTER}`);
    await terminal.shows(/\nbegun/);
    terminal.type("'typed' + ");
    await terminal.shows("'typed' +");
    terminal.type(CTRL_C);
    await terminal.shows(/INTERRUPTED[^]*js> 'typed' \+/);
    terminal.type(`' ahead'${ENTER}`);
    await terminal.shows("=> 'typed ahead'");
  },
);

it.runIf(HAS_TERMINAL)(
  "catenary repl in a terminal prints background output at once above the input, and once",
  async () => {
    const terminal = await open(["js"], "js>");
    const cue = join(folder, "cue");
    const lines = [
      'const fs = await import("node:fs"); let count = 0; setInterval(() => {',
      `  if (!fs.existsSync(${JSON.stringify(cue)})) return;`,
      `  fs.rmSync(${JSON.stringify(cue)});`,
      '  console.log("from a timer", ++count); }, 20); "waiting"',
    ];
    for (const line of lines) terminal.type(`${line}${ENTER}`);
    await terminal.shows("=> 'waiting'");
    terminal.type(`"abc".length${LEFT.repeat(8)}`);
    await terminal.shows(/js> "abc"\.length$/);
    writeFileSync(cue, "");
    await terminal.shows(/=> 'waiting'\nfrom a timer 1\njs> "abc"\.length$/);
    terminal.type("d");
    await terminal.shows(/from a timer 1\njs> "abcd"\.length$/);
    terminal.type(ENTER);
    await terminal.shows(/=> 'waiting'\nfrom a timer 1\njs> "abcd"\.length\n=> 4\njs>$/);
    // The input may have several lines.
    terminal.type(`${UP}${UP}`);
    await terminal.shows(/=> 4\njs> const fs[^]*"waiting"$/);
    writeFileSync(cue, "");
    await terminal.shows(/=> 4\nfrom a timer 2\njs> const fs(?:(?!js>)[^])*"waiting"$/);
  },
);

it.runIf(HAS_TERMINAL)("catenary repl in a terminal lists its commands, and explains a wrong one", async () => {
  const terminal = await open(["js"], "js>");
  terminal.type(`:help${ENTER}`);
  await terminal.shows(":restart N [CODE]");
  terminal.type(`:inspect x${ENTER}`);
  await terminal.shows("Write a handle, such as :inspect 4");
  terminal.type(`:frames${ENTER}`);
  await terminal.shows("There is no command :frames; did you mean :frame?");
});

it.runIf(HAS_TERMINAL)("catenary repl in a terminal saves and restores the session", async () => {
  const terminal = await open(["js"], "js>");
  terminal.type(`let saved = 6${ENTER}`);
  await terminal.shows("; No values");
  terminal.type(`:save six${ENTER}`);
  await terminal.shows("Saved session main as checkpoint six");
  terminal.type(`:reset${ENTER}`);
  await terminal.shows("Session reset successfully");
  terminal.type(`:restore six${ENTER}`);
  await terminal.shows("Restored session main from checkpoint six");
  terminal.type(`saved * 7${ENTER}`);
  await terminal.shows("=> 42");
});

it.runIf(HAS_TERMINAL)("catenary repl in a terminal sits down in a session that another client uses", async () => {
  const server = await serve(javascript(), { http: { port: 0, auth: false } });
  const agent = await connect(server.url);
  try {
    await agent.callTool("evaluate-js", { code: "const byAgent = 'seen'", session: "work" });
    const terminal = await open([server.url, "--session", "work"], "js>");
    terminal.type(`byAgent + '!'${ENTER}`);
    await terminal.shows("=> 'seen!'");
    terminal.type(`const byPerson = 8${ENTER}`);
    await terminal.shows(/byPerson = 8\n[^]*js>/);
    const seen = await agent.callTool("evaluate-js", { code: "byPerson", session: "work" });
    expect(seen.content).toMatchObject([{ text: "=> 8" }]);
  } finally {
    await agent.close();
    await server.close();
  }
});

it.runIf(HAS_TERMINAL)(
  "catenary repl in a session that another client uses waits for the other's evaluation, and Ctrl-C does not end that",
  async () => {
    const server = await serve(javascript(), { http: { port: 0, auth: false } });
    const agent = await connect(server.url);
    try {
      await agent.callTool("evaluate-js", { code: "let seen = 1" });
      const result = agent.callTool("evaluate-js", { code: "await new Promise(() => {})" });
      const terminal = await open([server.url], "js>");
      terminal.type(`seen + 1${ENTER}`);
      await terminal.shows("Waiting for another evaluation in this session; Ctrl-C gives up");
      terminal.type(CTRL_C);
      await terminal.shows(/gives up\n[^]*\njs>/);
      expect(await agent.callTool("list-sessions")).toMatchObject({
        content: [{ text: expect.stringMatching(/main: busy \(eval for \d+ ms\), 1 evaluation/) as string }],
      });
      await agent.callTool("interrupt-session");
      expect((await result).isError).toBe(true);
    } finally {
      await agent.close();
      await server.close();
    }
  },
);

it.runIf(HAS_TERMINAL)(
  "catenary repl in a session that another client uses finds the tools of that server behind a gateway with several",
  async () => {
    const gateway = chain().to({ one: javascript(), two: javascript() });
    const server = await serve(gateway, { http: { port: 0, auth: false } });
    try {
      const terminal = await open([server.url, "--tool", "two_evaluate-js"], "js>");
      terminal.type(`let here = 2${ENTER}`);
      await terminal.shows("; No values");
      terminal.type(`:sessions${ENTER}`);
      await terminal.shows("main: idle, 1 evaluation");
      terminal.type(`:definitions${ENTER}`);
      await terminal.shows("here: number = 2");
    } finally {
      await server.close();
    }
  },
);

it.runIf(HAS_TERMINAL && hasSbcl())(
  "catenary repl lisp in a terminal shows the package, and takes a restart of an error",
  async () => {
    const terminal = await open(["lisp"], "lisp>");
    terminal.type(`(defpackage garden (:use cl))${ENTER}`);
    await terminal.shows('#<PACKAGE "GARDEN">');
    terminal.type(`(in-package garden)${ENTER}`);
    await terminal.shows("GARDEN>");
    terminal.type(`(+ 1 (restart-case (error "no") (use-value (v) v)))${ENTER}`);
    await terminal.shows("[USE-VALUE]");
    await terminal.shows(":restart N takes a restart");
    expect(terminal.bytes).not.toContain("take-restart");
    terminal.type(`:restart use-value 41${ENTER}`);
    await terminal.shows("=> 42");
  },
);

it("catenary repl without a terminal evaluates stdin, input by input", async () => {
  expect(await catenary(["repl", "js"], "const a = [\n1, 2]\na.length\n")).toMatchObject({
    code: 0,
    out: "; No values\n=> 2\n",
    err: "",
  });
});

it("catenary repl without a terminal reads an input of a megabyte in many lines, and what follows it", async () => {
  const lines = Array.from({ length: 20_000 }, (_, index) => `  { number: ${index}, text: "${"x".repeat(30)}" },`);
  const { code, out } = await catenary(["repl", "js"], `const big = [\n${lines.join("\n")}\n];\nbig.length\n`);
  expect([code, out]).toEqual([0, expect.stringMatching(/=> 20000\n$/)]);
});

it("catenary repl without a terminal exits with 5 if something failed, and goes on after it", async () => {
  const { code, out } = await catenary(["repl", "js"], "missing\n1 + 1\n");
  expect(code).toBe(5);
  expect(out).toMatch(/^\[ERROR\] ReferenceError\n[^]*=> 2\n$/);
});

it("catenary repl without a terminal sends those who use code mode to its tool", async () => {
  const config = join(folder, "code.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { a: { live: "js" } }, code: { sandbox: false } }));
  const { code, err } = await catenary(["repl", config], "");
  expect(code).toBe(2);
  expect(err).toContain("`catenary call TARGET run-code code=CODE` runs code");
});

it.runIf(hasSbcl())("catenary repl without a terminal does not name tools in an error of the reader", async () => {
  const { code, out } = await catenary(["repl", "lisp"], "(foo\n");
  expect(code).toBe(5);
  expect(out).toMatch(/column 0 is not closed\.\n$/);
});

it.each([
  [["python"], 1, /There is no language python; the languages are js/],
  [["js", "--token", "x"], 1, /--token needs a TARGET, not a language/],
  [["js", "--image", "x"], 1, /--image is not an option of JavaScript/],
  [["smalltalk", "--image", "x"], 1, /--image needs the virtual machine/],
  [["http://127.0.0.1:1/mcp", "--program", "x"], 1, /--program needs a LANGUAGE, not a target/],
  [["http://127.0.0.1:1/mcp"], 4, /127\.0\.0\.1:1/],
])("catenary repl without a terminal refuses %j with one clear error", async (args, code, message) => {
  const result = await catenary(["repl", ...args], "");
  expect(result.code).toBe(code);
  expect(result.err).toMatch(message);
});
