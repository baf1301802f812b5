// Every Lisp tool, on a real SBCL, as a caller sees it. Each file of lisp-golden/ is a transcript: `>>> tool arguments`
// lines, each with the text that came back, under `[isError]` where it was an error. The calls of a file are made in a
// session of its own, and the transcript must come out the same. What differs between two runs is replaced on both
// sides: addresses, folders, times, byte counts, and the tables of samples (see VARYING and SAMPLES). The texts are those
// of SBCL 2.2.9; another release words some of them otherwise, and then nothing is compared. To write the transcripts
// anew, set UPDATE_GOLDEN=1 and read the difference.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Client } from "../../src/client/index.ts";
import { lisp } from "../../src/live/index.ts";

const FOLDER = fileURLToPath(new URL("lisp-golden/", import.meta.url));
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith(".txt"));
const UPDATE = process.env["UPDATE_GOLDEN"] === "1";
const RELEASE = "SBCL 2.2.9";
const MARK = ">>> ";

/** Those of all live servers, which are tested with them. */
const OF_ALL = ["list-sessions", "interrupt-session", "close-session"];

/** What varies, and what stands in its place. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\{[0-9A-F]{8,16}\}/g, "{ADDRESS}"],
  [/[\d.,]+( ?)(ms|bytes)\b/g, "N$1$2"],
  [/(Bytes consed: +|Total bytes consed: |bytes allocated: )[\d,]+/g, "$1N"],
  [/:( +)N bytes\.$/gm, ": N bytes."],
  [/\S+(?=\/contrib\/sb-)/g, "<sbcl>"],
  // An argument that one kind of processor still has when it is asked for, and another has not.
  [/\(CAR (42|#<unavailable>)\)/g, "(CAR 42)"],
];

/** Where a profiler's own table begins and ends. */
const SAMPLES = [
  /Number of samples:[^]*?\d+\.\d +elsewhere/g,
  / +seconds {2}\|[^]*internal profiling/g,
  /(Breakdown for|Summary of spaces)[^]*?(?=\n\nGC Statistics)/g,
];

function installed(): string {
  try {
    return execFileSync("sbcl", ["--version"], { encoding: "utf8" });
  } catch {
    return "";
  }
}

interface Call {
  readonly tool: string;
  readonly given: string;
}

/** The lines before the first call, and the calls. */
function parsed(text: string): { readonly head: string; readonly calls: readonly Call[] } {
  const [head = "", ...rest] = text.split(new RegExp(`^${MARK}`, "m"));
  const calls = rest.map((part) => {
    const [, tool = "", given = "{}"] = /^(\S+) ?(.*)/.exec(part) ?? [];
    return { tool, given };
  });
  return { head, calls };
}

describe.skipIf(!installed().startsWith(RELEASE))(`the tools of a Lisp session, on ${RELEASE}`, () => {
  const scratch = mkdtempSync(join(tmpdir(), "catenary-golden-"));
  // What a tool finds in the home folder is the same on every machine.
  const server = lisp({ env: { HOME: scratch } });
  let client: Client;
  /** Each with whether it is of one session. */
  const tools = new Map<string, boolean>();

  beforeAll(async () => {
    cpSync(join(FOLDER, "garden"), join(scratch, "garden"), { recursive: true });
    client = await connect(server);
    for (const { name, inputSchema } of (await client.listTools()).tools)
      tools.set(name, Object.hasOwn(inputSchema.properties ?? {}, "session"));
  });

  afterAll(async () => {
    await client.close();
    await server.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  function normal(text: string): string {
    let shown = text.replaceAll(scratch, "<scratch>");
    for (const table of SAMPLES) shown = shown.replace(table, "<table>");
    for (const [pattern, instead] of VARYING) shown = shown.replace(pattern, instead);
    return shown;
  }

  async function replay(session: string, text: string): Promise<string> {
    const { head, calls } = parsed(text);
    let shown = head;
    for (const { tool, given } of calls) {
      const args = JSON.parse(given.replaceAll("<scratch>", scratch)) as Record<string, unknown>;
      const result = await client.callTool(tool, tools.get(tool) === true ? { session, ...args } : args);
      const [block] = result.content;
      const said = block?.type === "text" ? block.text : JSON.stringify(result.content);
      shown += `${MARK}${tool} ${given}\n${result.isError === true ? "[isError]\n" : ""}${normal(said)}\n\n`;
    }
    return shown;
  }

  for (const file of FILES) {
    const name = basename(file, ".txt");
    it(name, async () => {
      const golden = readFileSync(join(FOLDER, file), "utf8");
      const shown = await replay(name, golden);
      await client.callTool("close-session", { session: name });
      if (UPDATE) writeFileSync(join(FOLDER, file), shown);
      else expect(shown).toBe(golden);
    });
  }

  it("has a transcript for each tool", () => {
    const wanted = [...tools.keys()].filter((name) => !OF_ALL.includes(name));
    expect(FILES.toSorted()).toEqual(wanted.map((name) => `${name}.txt`).toSorted());
  });
});
