// Every Smalltalk tool, as a client sees it, on each engine. Each file of smalltalk-golden/ENGINE/ is a transcript (see
// golden.ts), whose calls run in their own session. The long run replays all of them; the short run only one, since each
// session on Amber takes a second to start. To rewrite the transcripts, set UPDATE_GOLDEN=1 and read the diff.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Client } from "../../../src/client/index.ts";
import { smalltalk, type SmalltalkOptions } from "../../../src/live/index.ts";
import { gstProgram } from "../../support/setup/smalltalk.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { replay, toolsOf } from "./golden.ts";

const UPDATE = process.env["UPDATE_GOLDEN"] === "1";

/** Tools of all live servers, which sessions.test.ts covers. */
const SESSION_TOOLS = [
  "list-sessions",
  "interrupt-session",
  "close-session",
  "reset-session",
  "configure-limits",
  "save-session",
  "restore-session",
];

interface Engine {
  /** The name of its folder. */
  readonly name: string;
  readonly options: SmalltalkOptions;
  /** The transcripts of the short run. */
  readonly short: readonly string[];
}

const gst = gstProgram();
if (gst === undefined) console.error("Skipped: transcripts of GNU Smalltalk. gst is missing.");

const ENGINES: readonly Engine[] = [
  { name: "amber", options: {}, short: ["evaluate"] },
  ...(gst === undefined ? [] : [{ name: "gst", options: { command: gst }, short: ["evaluate", "take-restart"] }]),
];

/** Where transcripts write files: <scratch> in them. */
const scratch = mkdtempSync(join(tmpdir(), "catenary-golden-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Text that differs between runs and machines, and its replacement. */
function normalize(text: string): string {
  return (
    text
      .replaceAll(scratch, "<scratch>")
      .replaceAll(/\d+ms (real|run|GC)/g, "Nms $1")
      .replaceAll(/Amber [\d.]+/g, "Amber N")
      // Only some builds of GNU Smalltalk compute large products wrongly.
      .replaceAll(/^\[Warning\] IntegerArithmetic: .*\n/gm, "")
  );
}

function restore(json: string): string {
  return json.replaceAll("<scratch>", scratch);
}

describe.each(ENGINES)("the tools of a Smalltalk session on $name", ({ name: engine, options, short }) => {
  const folder = fileURLToPath(new URL(`smalltalk-golden/${engine}/`, import.meta.url));
  const names = readdirSync(folder).map((file) => basename(file, ".txt"));
  const server = smalltalk(options);
  let client: Client;
  let tools: ReadonlyMap<string, boolean> = new Map();

  beforeAll(async () => {
    client = await connect(server);
    tools = await toolsOf(client);
  });

  afterAll(async () => {
    await client.close();
    await server.close();
  });

  it.each(IS_LONG || UPDATE ? names : [...short])("the transcript of a Smalltalk tool: %s", async (name) => {
    const file = join(folder, `${name}.txt`);
    const golden = readFileSync(file, "utf8");
    const replayed = await replay(client, golden, { session: name, tools, normalize, restore });
    await client.callTool("close-session", { session: name });
    if (UPDATE) writeFileSync(file, replayed);
    else expect(replayed).toBe(golden);
  });

  it("the transcript of a Smalltalk tool: has a transcript for each tool", () => {
    const wanted = [...tools.keys()].filter((name) => !SESSION_TOOLS.includes(name));
    expect(names.toSorted()).toEqual(wanted.toSorted());
  });
});
