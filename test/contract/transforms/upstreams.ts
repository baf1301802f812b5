// The upstreams of the recording: two servers whose names partly collide, with everything that a transform can touch.
// `state` is "before" while definitions are approved for the first time, and "after" while they are recorded.

import type { Context, Handler, Params, Result } from "../../../src/core/handler.ts";
import { invalidParams, McpError } from "../../../src/protocol/errors.ts";
import { TASKS_EXTENSION } from "../../../src/protocol/tasks.ts";
import { pages, scriptedServer, type ScriptedAnswer } from "../../support/handlers/scripted-server.ts";

type Item = Readonly<Record<string, unknown>>;
export type State = "before" | "after";

export interface SampleUpstream {
  readonly handler: Handler;
  /** The URIs that the upstream has, listed or by a template. */
  readonly uris: readonly string[];
  /** Notifies all subscribers whose filter asks for it. */
  update(uri: string): void;
  changeList(kind: "tools" | "prompts" | "resources"): void;
}

interface Sample {
  readonly tools: readonly Item[];
  readonly prompts: readonly Item[];
  readonly resources: readonly Item[];
  readonly templates: readonly Item[];
  readonly uris: readonly string[];
}

const READS = { readOnlyHint: true, idempotentHint: true };
const object = (properties: object, ...required: readonly string[]): Item => ({ type: "object", properties, required });
const STRING = { type: "string" };
const QUERY = object({ query: { ...STRING, description: "What to find" }, apiKey: STRING }, "query", "apiKey");
const FOUND = object({ tool: STRING, arguments: { type: "object" } }, "tool");
const LONG_NAME = "a_tool_whose_name_is_longer_than_the_limit_of_the_models_api";

const SAMPLES: Readonly<Record<"notes" | "mail", (state: State) => Sample>> = {
  notes: (state) => ({
    tools: [
      {
        name: "search",
        title: "Search notes",
        description: "Searches notes",
        inputSchema: QUERY,
        outputSchema: FOUND,
        annotations: READS,
      },
      { name: "add", description: "Adds a note", inputSchema: object({ text: STRING }), annotations: { title: "Add" } },
      {
        name: "remove",
        description: "Removes a note",
        inputSchema: object({}),
        annotations: { destructiveHint: true },
      },
      {
        name: "open",
        description: "Opens a note",
        inputSchema: object({}),
        annotations: READS,
        _meta: { ui: { resourceUri: "ui://view" }, "acme/kept": 1 },
      },
      {
        name: "view-only",
        description: "For the view of a note",
        inputSchema: object({}),
        annotations: READS,
        _meta: { ui: { resourceUri: "ui://notes/view", visibility: ["app"] } },
      },
      { name: "list all!", description: "Lists notes", inputSchema: object({}), annotations: READS },
      { name: "long", description: "A long text", inputSchema: object({}) },
      { name: "shift", description: `Shifts ${state}`, inputSchema: object({}), annotations: READS },
      { name: LONG_NAME, description: "A long name", inputSchema: object({}), annotations: READS },
      { name: "fails", description: "Fails", inputSchema: object({}), annotations: READS },
      { name: "job", description: "Starts a task", inputSchema: object({}), annotations: READS },
      { name: "breaks", description: "Breaks", inputSchema: object({}), annotations: READS },
      ...(state === "before" ? [] : [{ name: "fresh", inputSchema: object({}), annotations: READS }]),
    ],
    prompts: [
      { name: "review", description: "Reviews a note", arguments: [{ name: "tone", description: "How" }] },
      { name: "greet", title: "Greet", description: "Greets", arguments: [{ name: "tone" }] },
      { name: "secret", description: "Hidden by the filter" },
      { name: "shift", description: `Shifts ${state}` },
      ...(state === "before" ? [] : [{ name: "fresh", description: "New" }]),
    ],
    resources: [
      { uri: "note://1", name: "One", mimeType: "text/plain" },
      { uri: "note://shared", name: "Shared", description: "Of the notes" },
      { uri: "file:///public/a.txt", name: "A" },
      { uri: "file:///secret.txt", name: "Secret" },
      { uri: "ui://view", name: "View", mimeType: "text/html;profile=mcp-app" },
      { uri: "ui://notes/view", name: "View of the notes" },
    ],
    templates: [
      { uriTemplate: "note://{id}", name: "Note" },
      { uriTemplate: "item://{kind}/{id}", name: "Item", description: "Of the notes" },
      { uriTemplate: "file:///public/{name}", name: "File", description: `Shifts ${state}` },
      ...(state === "before" ? [] : [{ uriTemplate: "fresh://{id}", name: "Fresh" }]),
    ],
    uris: ["note://2", "item://a/1", "file:///public/b.txt", "fresh://1"],
  }),
  mail: (state) => ({
    tools: [
      { name: "search", description: "Searches mail", inputSchema: QUERY, annotations: READS },
      { name: "send", description: `Sends ${state}`, inputSchema: object({ text: STRING }, "text") },
      { name: "remove", description: "Removes a mail", inputSchema: object({}), annotations: READS },
      { name: "open", inputSchema: object({}), annotations: READS, _meta: { "ui/resourceUri": "ui://view" } },
    ],
    prompts: [
      { name: "review", description: "Reviews a mail", arguments: [{ name: "tone" }] },
      { name: "compose", description: "Composes a mail", arguments: [{ name: "tone", required: true }] },
    ],
    resources: [
      { uri: "note://shared", name: "Shared", description: "Of the mail" },
      { uri: "mail://inbox", name: "Inbox" },
      { uri: "ui://view", name: "View of the mail" },
    ],
    templates: [
      { uriTemplate: "mail://{box}", name: "Box" },
      { uriTemplate: "item://{kind}/{id}", name: "Item", description: "Of the mail" },
    ],
    uris: ["mail://sent", "item://a/1"],
  }),
};

/** What a tool returns: what it was called with, and for some tools links, long text or an error. */
function callTool(server: string, { name, arguments: given = {} }: Params): Result {
  const text = { type: "text", text: `${server}: ${String(name)} ${JSON.stringify(given)}` };
  const uri = server === "notes" ? "note://1" : "mail://inbox";
  switch (name) {
    case "search":
      return {
        resultType: "complete",
        content: [text],
        structuredContent: { tool: `${server} search`, arguments: given },
      };
    case "open":
      return {
        resultType: "complete",
        content: [
          text,
          { type: "resource_link", uri, name: "A link" },
          { type: "resource", resource: { uri: "note://shared", text: "shared" } },
          { type: "resource_link", uri: "none://elsewhere", name: "Not a resource of this server" },
        ],
        _meta: { ui: { resourceUri: "ui://view" } },
      };
    case "long":
      return { resultType: "complete", content: [{ type: "text", text: "0123456789".repeat(40) }] };
    case "job":
      return { resultType: "task", taskId: "1", status: "working" };
    case "fails":
      return { resultType: "complete", isError: true, content: [text] };
    case "breaks":
      throw new McpError(-32050, `${server} is broken`, { uri, name });
    default:
      return { resultType: "complete", content: [text] };
  }
}

const toolNotFound = (name: unknown): McpError =>
  McpError.of("tool_not_found", `Tool not found: ${String(name)}`, { toolName: name });

export function sampleUpstream(server: "notes" | "mail", state: State): SampleUpstream {
  const { tools, prompts, resources, templates, uris } = SAMPLES[server](state);
  const all = [...resources.map(({ uri }) => String(uri)), ...uris];
  // A tool that may be called although it is in no list.
  const names = new Set([...tools.map(({ name }) => name), "unlisted"]);
  const subscribers = new Set<{ readonly filter: Item; readonly context: Context }>();
  const answers: Record<string, ScriptedAnswer> = {
    "server/discover": {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        extensions: { [TASKS_EXTENSION]: {} },
      },
      instructions: `How to use ${server}, ${state}.`,
    },
    "tools/list": pages("tools", tools, 8),
    "prompts/list": pages("prompts", prompts, 4),
    "resources/list": pages("resources", resources, 5),
    "resources/templates/list": pages("resourceTemplates", templates, 3),
    "tools/call": (params) => {
      if (!names.has(params["name"])) throw toolNotFound(params["name"]);
      return callTool(server, params);
    },
    "prompts/get": ({ name, arguments: given }) => {
      if (!prompts.some((prompt) => prompt["name"] === name)) {
        throw McpError.of("prompt_not_found", `Prompt not found: ${String(name)}`, { promptName: name });
      }
      const text = `${server}: ${String(name)} ${JSON.stringify(given)}`;
      const link = { type: "resource_link", uri: "note://shared", name: "A link" };
      return {
        messages: [text, link].map((content) => ({
          role: "user",
          content: typeof content === "string" ? { type: "text", text: content } : content,
        })),
      };
    },
    "resources/read": ({ uri }) => {
      if (!all.includes(String(uri))) {
        throw McpError.of("resource_not_found", `Resource not found: ${String(uri)}`, { uri });
      }
      return { contents: [{ uri, text: `${server}: ${String(uri)}` }], ttlMs: 10 };
    },
    "tasks/get": ({ taskId }) => {
      if (taskId !== "1") throw invalidParams("Unknown task", { taskId });
      return { resultType: "complete", taskId, status: "completed", result: callTool(server, { name: "open" }) };
    },
    "completion/complete": ({ ref }) => ({ completion: { values: [`${server}: ${JSON.stringify(ref)}`] } }),
    "subscriptions/listen": async ({ notifications }, context) => {
      const filter = notifications as Item;
      const wanted = filter["resourceSubscriptions"] as readonly string[] | undefined;
      const granted = {
        ...filter,
        ...(wanted && { resourceSubscriptions: wanted.filter((uri) => all.includes(uri)) }),
      };
      const subscriber = { filter: granted, context };
      subscribers.add(subscriber);
      context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: granted } });
      return new Promise((_resolve, reject) => {
        context.signal.addEventListener("abort", () => {
          subscribers.delete(subscriber);
          reject(context.signal.reason as Error);
        });
      });
    },
  };
  return {
    handler: scriptedServer(answers),
    uris: all,
    update: (uri) => {
      for (const { filter, context } of subscribers) {
        const wanted = filter["resourceSubscriptions"] as readonly string[] | undefined;
        if (wanted?.includes(uri) === true)
          context.notify({ method: "notifications/resources/updated", params: { uri } });
      }
    },
    changeList: (kind) => {
      for (const { filter, context } of subscribers) {
        if (filter[`${kind}ListChanged`] === true) context.notify({ method: `notifications/${kind}/list_changed` });
      }
    },
  };
}
