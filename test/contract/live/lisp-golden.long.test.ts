// Every Lisp tool on a real SBCL, as a client sees it. Each file of lisp-golden/ is a transcript (see golden.ts), whose
// calls run in their own session. The transcripts hold our own texts: what SBCL, the machine or the run decide is
// replaced on both sides (see VARYING and TABLES). SBCL's messages are those of one release; with another release nothing
// is compared. To rewrite the transcripts, set UPDATE_GOLDEN=1 and read the diff.

import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outputOf } from "../../support/blocking-program.ts";
import { connect, type Client } from "../../../src/client/index.ts";
import { lisp } from "../../../src/live/index.ts";
import { TOOLS } from "../../../src/live/lisp/tools.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { replay, toolsOf } from "./golden.ts";

const FOLDER = fileURLToPath(new URL("lisp-golden/", import.meta.url));
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith(".txt"));
const UPDATE = process.env["UPDATE_GOLDEN"] === "1";
const RELEASE = "SBCL 2.2.9";

/** Tools of all live servers, which sessions.test.ts covers. */
const SESSION_TOOLS = ["list-sessions", "interrupt-session", "close-session", "save-session", "restore-session"];

/** They run only in the long run. */
const SLOW: ReadonlySet<string> = new Set(["allocation-profile", "profile-functions"]);

/** Text that differs between runs and machines, and its replacement. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\{[0-9A-F]{8,16}\}/g, "{ADDRESS}"],
  [/[\d.,]+( ?)(ms|bytes)\b/g, "N$1$2"],
  [/(Bytes consed: +|Total bytes consed: |bytes allocated: )[\d,]+/g, "$1N"],
  [/(live:\/\/session\/[\w.:-]+\/output\/|\{"output": )\d+/g, "$1N"],
  // The build of SBCL decides where in its own sources a function is defined, and may have no sources.
  [/\n {2}Source: SYS:.*/g, "\n  Source: <sbcl>"],
  // Some processors still have this argument when the error is reported, others do not.
  [/\(CAR (42|#<unavailable>)\)/g, "(CAR 42)"],
  // The length of a structure is counted in words of the architecture, with padding.
  [/^( +(?:current|new) length:) \d+$/gm, "$1 N"],
];

/** Texts of SBCL itself, by their beginning and end: the profilers' tables, and the output of ROOM. */
const TABLES: readonly (readonly [RegExp, string])[] = [
  [/Number of samples:[^]*?\d+\.\d +elsewhere/g, "<table>"],
  [/ +seconds {2}\|[^]*internal profiling/g, "<table>"],
  // The spaces of memory depend on the architecture.
  [/Dynamic space usage is:[^]*?Garbage collection is currently \w+\./g, "<usage>"],
  [/(?:Breakdown for|Summary of spaces)[^]*?(?=\n\nGC Statistics)/g, "<table>"],
];

/** An entry of list-local-systems that comes with SBCL: which ones exist depends on the architecture and the build. */
const SBCL_SYSTEM = /^ {2}(?:sb-[\w-]+|asdf[\w-]*|uiop)\n(?: {4}.*\n)?/gm;

/** Removes SBCL's own systems from the list, and from its count if that is right. */
function withoutSbclSystems(text: string): string {
  const [header = "", count = ""] = /^Local Systems \((\d+)\):\n/.exec(text) ?? [];
  const systems = `${text}\n`.match(/^ {2}\S/gm) ?? [];
  if (header === "" || systems.length !== Number(count)) return text;
  const others = `${text}\n`.replace(SBCL_SYSTEM, "").trimEnd();
  return others.replace(header, `Local Systems (<sbcl> + ${(others.match(/^ {2}\S/gm) ?? []).length}):\n`);
}

/**
 * A folder whose path Lisp prints as it is: without links, without characters that have a meaning in Lisp pathnames, and
 * short enough for a frame of a backtrace.
 */
function makeScratch(): string {
  const isPlain = /^[\w/. -]{1,60}$/.test(realpathSync(tmpdir()));
  return mkdtempSync(join(realpathSync(isPlain ? tmpdir() : "/tmp"), "catenary-golden-"));
}

/** The version of the installed SBCL; empty if there is none. */
function installedVersion(): string {
  try {
    return outputOf("sbcl", ["--version"]);
  } catch {
    return "";
  }
}

describe.skipIf(!installedVersion().startsWith(RELEASE))(`the tools of a Lisp session, on ${RELEASE}`, () => {
  const scratch = makeScratch();
  // The home folder, and with it the user's configuration of ASDF, is the same on every machine.
  const configuration = { XDG_CONFIG_HOME: "", XDG_CONFIG_DIRS: "", XDG_DATA_HOME: "", XDG_CACHE_HOME: "" };
  const asdf = { CL_SOURCE_REGISTRY: "", ASDF_OUTPUT_TRANSLATIONS: "" };
  const server = lisp({ env: { HOME: scratch, ...configuration, ...asdf } });
  let client: Client;
  /** By name, whether the tool takes a session. */
  let tools = new Map<string, boolean>();

  beforeAll(async () => {
    cpSync(join(FOLDER, "garden"), join(scratch, "garden"), { recursive: true });
    client = await connect(server);
    tools = await toolsOf(client);
    // Those of a library that is not loaded are not listed.
    for (const { name, library } of TOOLS) if (library !== undefined) tools.set(name, true);
  });

  afterAll(async () => {
    await client.close();
    await server.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  function normalize(text: string): string {
    let normal = withoutSbclSystems(text.replaceAll(scratch, "<scratch>"));
    for (const [pattern, replacement] of [...TABLES, ...VARYING]) normal = normal.replace(pattern, replacement);
    return normal;
  }

  for (const file of FILES) {
    const name = basename(file, ".txt");
    it.runIf(IS_LONG || !SLOW.has(name))(name, async () => {
      const golden = readFileSync(join(FOLDER, file), "utf8");
      const restore = (json: string): string => json.replaceAll("<scratch>", scratch);
      const replayed = await replay(client, golden, { session: name, tools, restore, normalize });
      await client.callTool("close-session", { session: name });
      if (UPDATE) writeFileSync(join(FOLDER, file), replayed);
      else expect(replayed).toBe(golden);
    });
  }

  it(`the tools of a Lisp session, on ${RELEASE} lists the tools of a library only while it is loaded`, async () => {
    const list = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name);
    const evaluate = (code: string): Promise<unknown> => client.callTool("evaluate-lisp", { code, session: "library" });
    expect((await list()).filter((name) => /telos|quickl/.test(name))).toEqual([]);
    await evaluate('(make-package "TELOS")');
    expect((await list()).filter((name) => /telos|quickl/.test(name))).toHaveLength(7);
    await evaluate('(delete-package "TELOS")');
    expect(await list()).not.toContain("telos-list-features");
    await client.callTool("close-session", { session: "library" });
  });

  it(`the tools of a Lisp session, on ${RELEASE} has a transcript for each tool`, () => {
    const wanted = [...tools.keys()].filter((name) => !SESSION_TOOLS.includes(name));
    expect(FILES.toSorted()).toEqual(wanted.map((name) => `${name}.txt`).toSorted());
  });
});
