// Servers that nobody here wrote, as they come from npm, and what a client does with each of them: every tool whose
// answer can be foretold, every prompt and resource, what they ask and what they say by themselves. A visit is the same
// whether the client speaks with the server itself or with a chain in front of many; only names may differ.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Json, Peer, Roots } from "./peer.ts";

const require = createRequire(import.meta.url);
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** How long a server may take to ask for roots. */
const PATIENCE_MS = 5_000;

export interface Entry {
  readonly command: string;
  readonly args: string[];
  readonly env?: Record<string, string>;
}

/** A folder with all that the servers work on, the same each time but for its name. */
export class Ground {
  readonly folder: string = mkdtempSync(join(tmpdir(), "catenary-servers-"));
  readonly roots: Roots = [{ uri: pathToFileURL(this.folder).href, name: "ground" }];
  readonly servers: Readonly<Record<string, Entry>>;

  constructor() {
    for (const name of ["files", "other"]) {
      mkdirSync(join(this.folder, name, "deep"), { recursive: true });
      writeFileSync(join(this.folder, name, "words.txt"), `the first of ${name}\nthe second\nthe third\n`);
      writeFileSync(join(this.folder, name, "deep", "pixel.png"), Buffer.from(PIXEL, "base64"));
    }
    const script = (name: string): string => require.resolve(`@modelcontextprotocol/server-${name}/dist/index.js`);
    const entry = (name: string, ...args: string[]): Entry => ({
      command: process.execPath,
      args: [script(name), ...args],
    });
    this.servers = {
      everything: entry("everything", "stdio"),
      files: entry("filesystem", join(this.folder, "files")),
      other: entry("filesystem", join(this.folder, "other")),
      memory: { ...entry("memory"), env: { MEMORY_FILE_PATH: join(this.folder, "memory.jsonl") } },
      thinking: { ...entry("sequential-thinking"), env: { DISABLE_THOUGHT_LOGGING: "true" } },
    };
  }

  /** What two visits on different days and grounds have in common. */
  same(answer: unknown): unknown {
    const text = JSON.stringify(answer, (key, value: unknown) =>
      key === "blob" && typeof value === "string" ? decoded(value) : value,
    );
    const plain = text
      .replaceAll(this.folder, "/ground")
      .replaceAll(/\b\d{1,2}:\d{2}:\d{2}\b/g, "00:00:00")
      .replaceAll(/(created|modified|accessed): [^\\]*/g, "$1: once");
    return JSON.parse(plain) as unknown;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A text that was made of bytes, as its text: it may hold the time of day. */
function decoded(blob: string): string {
  const text = Buffer.from(blob, "base64").toString("utf8");
  return /^[\x20-\x7e\n]*$/.test(text) ? text : blob;
}

export interface Visit {
  readonly peer: Peer;
  readonly ground: Ground;
  /** The end that is visited. */
  readonly end: string;
  /** What a tool of the end is called here. */
  name(tool: string): string;
}

type Step = (visit: Visit) => Promise<unknown>;

const call =
  (tool: string, args: Json | ((visit: Visit) => Json) = {}): Step =>
  (visit) =>
    visit.peer.call(visit.name(tool), typeof args === "function" ? args(visit) : args);
const path =
  (...parts: readonly string[]) =>
  ({ ground, end }: Visit): string =>
    join(ground.folder, end, ...parts);
const prompt =
  (name: string, args: Record<string, string> = {}): Step =>
  ({ peer }) =>
    peer.prompt(name, args);
const read =
  (uri: string): Step =>
  ({ peer }) =>
    peer.read(uri);

/** Done, and what was heard of it meanwhile. */
function hearing(kind: string, step: Step, passes: (event: Json) => boolean = () => true): Step {
  return async (visit) => {
    const { ear } = visit.peer;
    const before = ear.heard.length;
    const answer = await step(visit);
    const heard = await ear.until(
      (event) => event["kind"] === kind && ear.heard.indexOf(event) >= before && passes(event),
    );
    return { answer, heard };
  };
}

const GRAPH = "memory://knowledge-graph";
const DYNAMIC = "demo://resource/dynamic/text/7";
const ADA = { name: "Ada", entityType: "person", observations: ["wrote notes"] };
const BEA = { name: "Bea", entityType: "person", observations: [] };

const EVERYTHING: Readonly<Record<string, Step>> = {
  echo: call("echo", { message: "ä 漢 🙂" }),
  sum: call("get-sum", { a: 2, b: 3 }),
  "a sum of words": call("get-sum", { a: "two" }),
  weather: call("get-structured-content", { location: "Chicago" }),
  "weather of nowhere": call("get-structured-content", { location: "Nowhere" }),
  image: call("get-tiny-image"),
  "annotated message": call("get-annotated-message", { messageType: "error", includeImage: true }),
  "resource links": call("get-resource-links", { count: 3 }),
  "text reference": call("get-resource-reference", { resourceType: "Text", resourceId: 1 }),
  "blob reference": call("get-resource-reference", { resourceType: "Blob", resourceId: 2 }),
  "long operation": async ({ peer, name }) => {
    const steps: number[] = [];
    const onProgress = ({ progress, total }: Json): void => void (total === 4 && steps.push(progress));
    const args = { duration: 0.2, steps: 4 };
    const answer = await peer.call(name("trigger-long-running-operation"), args, { onProgress });
    // The clients drop the last one where it comes in one breath with the result.
    return { answer, steps: steps.slice(0, 3) };
  },
  elicitation: hearing("elicit", call("trigger-elicitation-request")),
  sampling: hearing("sample", call("trigger-sampling-request", { prompt: "a word", maxTokens: 9 })),
  roots: call("get-roots-list"),
  "a zipped file": async ({ peer, name }) => {
    const args = { name: "words.gz", data: "data:text/plain,some%20words", outputType: "resourceLink" };
    const made = await peer.call(name("gzip-file-as-resource"), args);
    return { made, read: await peer.read(made["content"][0].uri) };
  },
  "simple prompt": prompt("simple-prompt"),
  "prompt with arguments": prompt("args-prompt", { city: "Oslo", state: "none" }),
  "prompt without its arguments": prompt("args-prompt"),
  "prompt to complete": prompt("completable-prompt", { department: "Sales", name: "David" }),
  "prompt with a resource": prompt("resource-prompt", { resourceType: "Text", resourceId: "3" }),
  "no such prompt": prompt("nobody's"),
  completion: ({ peer }) =>
    peer.complete({ type: "ref/prompt", name: "completable-prompt" }, "name", "D", { department: "Sales" }),
  "completion of a template": ({ peer }) =>
    peer.complete({ type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" }, "resourceId", "1"),
  "text resource": read(DYNAMIC),
  "blob resource": read("demo://resource/dynamic/blob/8"),
  "a resource that there is not": read("demo://resource/dynamic/text/none"),
  logging: async (visit) => {
    await visit.peer.setLevel("debug");
    // It begins with one message of a level chosen by chance.
    const words = /^\w+[- ]level[- ]message/i;
    const said = hearing("log", call("toggle-simulated-logging"), ({ data }) => words.test(String(data)));
    const { answer } = (await said(visit)) as Json;
    return [answer, await visit.peer.call(visit.name("toggle-simulated-logging"))];
  },
  subscription: async (visit) => {
    await visit.peer.watch(DYNAMIC);
    const told = await hearing("updated", call("toggle-subscriber-updates"))(visit);
    const off = await visit.peer.call(visit.name("toggle-subscriber-updates"));
    await visit.peer.unwatch(DYNAMIC);
    return [told, off];
  },
};

const FILES: Readonly<Record<string, Step>> = {
  // What it may touch is what its client says: asked for outside any call, soon after the handshake.
  "allowed folders": async ({ peer, name, ground }) => {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await peer.call(name("list_allowed_directories"));
      const isTold = String(answer["content"][0].text).endsWith(`\n${ground.folder}`);
      if (isTold || performance.now() > until) return answer;
      await after(20);
    }
  },
  read: call("read_file", (visit) => ({ path: path("words.txt")(visit) })),
  "read the first line": call("read_text_file", (visit) => ({ path: path("words.txt")(visit), head: 1 })),
  "read an image": call("read_media_file", (visit) => ({ path: path("deep", "pixel.png")(visit) })),
  "read several": call("read_multiple_files", (visit) => ({
    paths: [path("words.txt")(visit), path("none.txt")(visit)],
  })),
  write: call("write_file", (visit) => ({ path: path("new.txt")(visit), content: "new\n" })),
  "show an edit": call("edit_file", (visit) => ({
    path: path("words.txt")(visit),
    edits: [{ oldText: "the second", newText: "the 2nd" }],
    dryRun: true,
  })),
  "make a folder": call("create_directory", (visit) => ({ path: path("made")(visit) })),
  move: call("move_file", (visit) => ({
    source: path("new.txt")(visit),
    destination: path("made", "moved.txt")(visit),
  })),
  list: call("list_directory", (visit) => ({ path: path()(visit) })),
  "list sizes": call("list_directory_with_sizes", (visit) => ({ path: path("deep")(visit) })),
  tree: call("directory_tree", (visit) => ({ path: path()(visit) })),
  search: call("search_files", (visit) => ({ path: path()(visit), pattern: "**/*.txt" })),
  info: call("get_file_info", (visit) => ({ path: path("words.txt")(visit) })),
  "what is out of bounds": call("read_text_file", { path: "/etc/hostname" }),
};

const MEMORY: Readonly<Record<string, Step>> = {
  entities: call("create_entities", { entities: [ADA, BEA] }),
  relations: call("create_relations", { relations: [{ from: "Ada", to: "Bea", relationType: "knows" }] }),
  "observations, and who subscribes hears of them": async (visit) => {
    await visit.peer.watch(GRAPH);
    const observations = [{ entityName: "Bea", contents: ["reads notes"] }];
    const told = await hearing("updated", call("add_observations", { observations }))(visit);
    await visit.peer.unwatch(GRAPH);
    return told;
  },
  "observations of nobody": call("add_observations", { observations: [{ entityName: "Cyd", contents: ["x"] }] }),
  graph: call("read_graph"),
  search: call("search_nodes", { query: "notes" }),
  open: call("open_nodes", { names: ["Ada"] }),
  "the graph as a resource": read(GRAPH),
  "fewer observations": call("delete_observations", {
    deletions: [{ entityName: "Bea", observations: ["reads notes"] }],
  }),
  "fewer relations": call("delete_relations", { relations: [{ from: "Ada", to: "Bea", relationType: "knows" }] }),
  "fewer entities": call("delete_entities", { entityNames: ["Bea"] }),
  "what is left": call("read_graph"),
};

const THINKING: Readonly<Record<string, Step>> = {
  "a thought": call("sequentialthinking", {
    thought: "one",
    nextThoughtNeeded: true,
    thoughtNumber: 1,
    totalThoughts: 2,
  }),
  "a branch": call("sequentialthinking", {
    thought: "two",
    nextThoughtNeeded: false,
    thoughtNumber: 2,
    totalThoughts: 2,
    branchFromThought: 1,
    branchId: "b",
  }),
  "no thought": call("sequentialthinking", { thoughtNumber: 3 }),
};

/** By end, what is done there. */
export const VISITS: Readonly<Record<string, Readonly<Record<string, Step>>>> = {
  everything: EVERYTHING,
  files: FILES,
  other: FILES,
  memory: MEMORY,
  thinking: THINKING,
};

/** Every step at one end, in order: its answer, or how it was refused. */
export async function visit(at: Visit): Promise<Json> {
  const answers: Json = {};
  for (const [title, step] of Object.entries(VISITS[at.end] ?? {})) {
    answers[title] = at.ground.same(await step(at).catch(refusal));
  }
  return answers;
}

function refusal(error: unknown): Json {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { refused: { code, message } };
}
