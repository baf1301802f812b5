// Servers published on npm, and the steps that a client runs on each of them: every tool with a predictable result, every
// prompt and resource, requests and notifications. The steps are the same on the server itself and through a chain.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Json, TestClient, Roots } from "./test-client.ts";

const require = createRequire(import.meta.url);
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** How long a server may take to request the roots. */
const ROOTS_TIMEOUT_MS = 60_000;

export interface ServerCommand {
  readonly command: string;
  readonly args: string[];
  readonly env?: Record<string, string>;
}

/** A temporary folder with the files that the servers work on. */
export class Workspace {
  readonly folder: string = mkdtempSync(join(tmpdir(), "catenary-servers-"));
  readonly roots: Roots = [{ uri: pathToFileURL(this.folder).href, name: "workspace" }];
  readonly servers: Readonly<Record<string, ServerCommand>>;

  constructor() {
    for (const name of ["files", "other"]) {
      mkdirSync(join(this.folder, name, "deep"), { recursive: true });
      writeFileSync(join(this.folder, name, "words.txt"), `the first of ${name}\nthe second\nthe third\n`);
      writeFileSync(join(this.folder, name, "deep", "pixel.png"), Buffer.from(PIXEL, "base64"));
    }
    const script = (name: string): string => require.resolve(`@modelcontextprotocol/server-${name}/dist/index.js`);
    const entry = (name: string, ...args: string[]): ServerCommand => ({
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

  /** Replaces what differs between two runs: the folder, the times. */
  normalize(answer: unknown): unknown {
    const text = JSON.stringify(answer, (key, value: unknown) =>
      key === "blob" && typeof value === "string" ? decodeText(value) : value,
    );
    const plain = text
      .replaceAll(this.folder, "/workspace")
      .replaceAll(/\b\d{1,2}:\d{2}:\d{2}\b/g, "00:00:00")
      .replaceAll(/(created|modified|accessed): [^\\]*/g, "$1: once");
    return JSON.parse(plain) as unknown;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Decodes a blob that is text, since it may contain the time of day. */
function decodeText(blob: string): string {
  const text = Buffer.from(blob, "base64").toString("utf8");
  return /^[\x20-\x7e\n]*$/.test(text) ? text : blob;
}

export interface StepRun {
  readonly client: TestClient;
  readonly workspace: Workspace;
  /** The name of the server. */
  readonly server: string;
  /** The name of a tool of the server, as the client sees it. */
  toolName(tool: string): string;
}

type Step = (run: StepRun) => Promise<unknown>;

const call =
  (tool: string, args: Json | ((run: StepRun) => Json) = {}): Step =>
  (run) =>
    run.client.call(run.toolName(tool), typeof args === "function" ? args(run) : args);
const path =
  (...parts: readonly string[]) =>
  ({ workspace, server }: StepRun): string =>
    join(workspace.folder, server, ...parts);
const prompt =
  (name: string, args: Record<string, string> = {}): Step =>
  ({ client }) =>
    client.prompt(name, args);
const read =
  (uri: string): Step =>
  ({ client }) =>
    client.read(uri);

/** Runs a step, and returns its result with the event that it caused. */
function withEvent(kind: string, step: Step, matches: (event: Json) => boolean = () => true): Step {
  return async (run) => {
    const { events } = run.client;
    const before = events.all.length;
    const answer = await step(run);
    const received = await events.until(
      (event) => event["kind"] === kind && events.all.indexOf(event) >= before && matches(event),
    );
    return { answer, received };
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
  "long operation": async ({ client, toolName }) => {
    const steps: number[] = [];
    const onProgress = ({ progress, total }: Json): void => void (total === 4 && steps.push(progress));
    const args = { duration: 2, steps: 4 };
    const answer = await client.call(toolName("trigger-long-running-operation"), args, { onProgress });
    // The clients drop what arrives in one chunk with the result: the last one, and the one before it where the client
    // stalls for longer than a step.
    return { answer, steps: steps.slice(0, 3) };
  },
  elicitation: withEvent("elicit", call("trigger-elicitation-request")),
  sampling: withEvent("sample", call("trigger-sampling-request", { prompt: "a word", maxTokens: 9 })),
  roots: call("get-roots-list"),
  "a zipped file": async ({ client, toolName }) => {
    const args = { name: "words.gz", data: "data:text/plain,some%20words", outputType: "resourceLink" };
    const made = await client.call(toolName("gzip-file-as-resource"), args);
    return { made, read: await client.read(made["content"][0].uri) };
  },
  "simple prompt": prompt("simple-prompt"),
  "prompt with arguments": prompt("args-prompt", { city: "Oslo", state: "none" }),
  "prompt without its arguments": prompt("args-prompt"),
  "prompt to complete": prompt("completable-prompt", { department: "Sales", name: "David" }),
  "prompt with a resource": prompt("resource-prompt", { resourceType: "Text", resourceId: "3" }),
  "unknown prompt": prompt("no-such-prompt"),
  completion: ({ client }) =>
    client.complete({ type: "ref/prompt", name: "completable-prompt" }, "name", "D", { department: "Sales" }),
  "completion of a template": ({ client }) =>
    client.complete({ type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" }, "resourceId", "1"),
  "text resource": read(DYNAMIC),
  "blob resource": read("demo://resource/dynamic/blob/8"),
  "unknown resource": read("demo://resource/dynamic/text/none"),
  logging: async (run) => {
    await run.client.setLevel("debug");
    // It begins with one message of a random level.
    const pattern = /^\w+[- ]level[- ]message/i;
    const logging = withEvent("log", call("toggle-simulated-logging"), ({ data }) => pattern.test(String(data)));
    const { answer } = (await logging(run)) as Json;
    return [answer, await run.client.call(run.toolName("toggle-simulated-logging"))];
  },
  subscription: async (run) => {
    await run.client.watch(DYNAMIC);
    const updated = await withEvent("updated", call("toggle-subscriber-updates"))(run);
    const off = await run.client.call(run.toolName("toggle-subscriber-updates"));
    await run.client.unwatch(DYNAMIC);
    return [updated, off];
  },
};

const FILES: Readonly<Record<string, Step>> = {
  // The server requests the roots outside any call, soon after the handshake, and they become its allowed folders.
  "allowed folders": async ({ client, toolName, workspace }) => {
    const until = performance.now() + ROOTS_TIMEOUT_MS;
    for (;;) {
      const answer = await client.call(toolName("list_allowed_directories"));
      const isUpdated = String(answer["content"][0].text).endsWith(`\n${workspace.folder}`);
      if (isUpdated || performance.now() > until) return answer;
      await after(20);
    }
  },
  read: call("read_file", (run) => ({ path: path("words.txt")(run) })),
  "read the first line": call("read_text_file", (run) => ({ path: path("words.txt")(run), head: 1 })),
  "read an image": call("read_media_file", (run) => ({ path: path("deep", "pixel.png")(run) })),
  "read several": call("read_multiple_files", (run) => ({
    paths: [path("words.txt")(run), path("none.txt")(run)],
  })),
  write: call("write_file", (run) => ({ path: path("new.txt")(run), content: "new\n" })),
  "show an edit": call("edit_file", (run) => ({
    path: path("words.txt")(run),
    edits: [{ oldText: "the second", newText: "the 2nd" }],
    dryRun: true,
  })),
  "make a folder": call("create_directory", (run) => ({ path: path("made")(run) })),
  move: call("move_file", (run) => ({
    source: path("new.txt")(run),
    destination: path("made", "moved.txt")(run),
  })),
  list: call("list_directory", (run) => ({ path: path()(run) })),
  "list sizes": call("list_directory_with_sizes", (run) => ({ path: path("deep")(run) })),
  tree: call("directory_tree", (run) => ({ path: path()(run) })),
  search: call("search_files", (run) => ({ path: path()(run), pattern: "**/*.txt" })),
  info: call("get_file_info", (run) => ({ path: path("words.txt")(run) })),
  "a file outside the allowed folders": call("read_text_file", { path: "/etc/hostname" }),
};

const MEMORY: Readonly<Record<string, Step>> = {
  entities: call("create_entities", { entities: [ADA, BEA] }),
  relations: call("create_relations", { relations: [{ from: "Ada", to: "Bea", relationType: "knows" }] }),
  "observations, with a subscription": async (run) => {
    await run.client.watch(GRAPH);
    const observations = [{ entityName: "Bea", contents: ["reads notes"] }];
    const updated = await withEvent("updated", call("add_observations", { observations }))(run);
    await run.client.unwatch(GRAPH);
    return updated;
  },
  "observations of an unknown entity": call("add_observations", {
    observations: [{ entityName: "Cyd", contents: ["x"] }],
  }),
  graph: call("read_graph"),
  search: call("search_nodes", { query: "notes" }),
  open: call("open_nodes", { names: ["Ada"] }),
  "the graph as a resource": read(GRAPH),
  "fewer observations": call("delete_observations", {
    deletions: [{ entityName: "Bea", observations: ["reads notes"] }],
  }),
  "fewer relations": call("delete_relations", { relations: [{ from: "Ada", to: "Bea", relationType: "knows" }] }),
  "fewer entities": call("delete_entities", { entityNames: ["Bea"] }),
  "the rest of the graph": call("read_graph"),
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

/** The steps of each server. */
export const STEPS: Readonly<Record<string, Readonly<Record<string, Step>>>> = {
  everything: EVERYTHING,
  files: FILES,
  other: FILES,
  memory: MEMORY,
  thinking: THINKING,
};

/** Runs every step on one server, in order, and returns the results and errors. */
export async function runSteps(run: StepRun): Promise<Json> {
  const answers: Json = {};
  for (const [title, step] of Object.entries(STEPS[run.server] ?? {})) {
    answers[title] = run.workspace.normalize(await step(run).catch(describeError));
  }
  return answers;
}

function describeError(error: unknown): Json {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { error: { code, message } };
}
