// Uses a server of notes as a client does, and returns all that it answered, so that servers can be compared.

import { deferred } from "../../../src/core/async.ts";
import { isObject } from "../../../src/core/values.ts";
import type { Client } from "../../../src/client/client.ts";
import type { ConnectOptions } from "../../../src/client/connect.ts";
import type { CallToolResult } from "../../../src/protocol/model/index.ts";
import type { NoteBook } from "./note-book.ts";

/** Opens a client of the server. `options` has what the client answers and listens to. */
export type Open = (options: ConnectOptions) => Promise<Client>;

const textOf = ({ content, isError, structuredContent }: CallToolResult): unknown => ({
  texts: content.map((block) => (block.type === "text" ? block.text : block.type)),
  ...(isError === true && { isError }),
  ...(structuredContent !== undefined && { structuredContent }),
});

/** The answer, or the code of the error. */
async function outcome<T>(work: () => Promise<T>): Promise<T | { readonly code: unknown }> {
  try {
    return await work();
  } catch (error) {
    return { code: (error as { code?: unknown; kind?: unknown }).code ?? (error as { kind?: unknown }).kind };
  }
}

/** The libraries refuse a call in different forms: an error, or a result with `isError`. */
function orRefused(answer: unknown): unknown {
  return isObject(answer) && ("code" in answer || answer["isError"] === true) ? "refused" : answer;
}

export async function transcript(open: Open, book: NoteBook): Promise<Record<string, unknown>> {
  const logs: unknown[] = [];
  const logged = deferred();
  let isSure = false;
  const client = await open({
    logLevel: "info",
    onLog: ({ level, data }) => {
      logs.push({ level, data });
      logged.resolve();
    },
    elicit: ({ message }) => ({ action: "accept", content: { sure: isSure && message === "Delete all notes?" } }),
    sample: () => ({ role: "assistant", model: "parrot", content: { type: "text", text: "My notes" } }),
    roots: [{ uri: "file:///work", name: "work" }],
  });
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<unknown> =>
    outcome(async () => textOf(await client.callTool(name, args)));
  const { server, instructions } = client;
  const tools = (await client.listTools()).tools.map(({ name, description, inputSchema, annotations, title }) => {
    const { properties = {}, required } = inputSchema as { properties?: object; required?: unknown };
    return { name, description, title, annotations, arguments: Object.keys(properties), required };
  });
  const listed = async (): Promise<unknown> => (await client.listResources()).resources.map(({ uri }) => uri);

  const changed = deferred<string>();
  const updated = deferred<string>();
  const subscription = await client.listen(
    { resourcesListChanged: true, resourceSubscriptions: ["note:///1"] },
    ({ method, params }) => {
      if (method === "notifications/resources/updated") updated.resolve(params.uri);
      else changed.resolve(method);
    },
  );
  const progress: unknown[] = [];
  const import_ = await client.callTool(
    "import-notes",
    { texts: ["a", "b"] },
    { onProgress: (step) => progress.push([step.progress, step.total]) },
  );
  await logged.promise;
  const cancel = new AbortController();
  const waiting = outcome(() => client.callTool("wait", {}, { signal: cancel.signal }));
  await book.begun;
  cancel.abort();
  const answers = {
    server: { name: server?.name, version: server?.version },
    instructions,
    tools,
    resources: await listed(),
    templates: (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    prompts: (await client.listPrompts()).prompts.map(({ name, arguments: args }) => ({
      name,
      arguments: args?.map((argument) => [argument.name, argument.required]),
    })),
    imported: textOf(import_),
    progress,
    logs,
    added: await call("add-note", { text: "Ship it." }),
    invalidArguments: orRefused(await call("add-note", { text: 1 })),
    unknownTool: orRefused(await call("no-such-tool")),
    read: await call("read-note", { id: "4" }),
    readMissing: await call("read-note", { id: "9" }),
    deleteMissing: await call("delete-note", { id: "9" }),
    changed: await call("change-note", { id: "1", text: "Read it again." }),
    updated: await updated.promise,
    listChanged: await changed.promise,
    deleted: await call("delete-note", { id: "2" }),
    resourcesAfter: await listed(),
    content: (await client.readResource("note:///1")).contents.map((item) => ({
      uri: item.uri,
      text: "text" in item ? item.text : undefined,
      mimeType: item.mimeType,
    })),
    completedId: (await client.complete({ type: "ref/resource", uri: "note:///{id}" }, { name: "id", value: "" }))
      .completion.values,
    completedStyle: (await client.complete({ type: "ref/prompt", name: "summarize" }, { name: "style", value: "br" }))
      .completion.values,
    prompt: (await client.getPrompt("summarize", { style: "brief" })).messages,
    title: await call("title-note"),
    folders: await call("folders"),
    kept: orRefused(await call("clear-notes")),
    cancelled: await waiting,
    cancelledThere: await book.cancelled,
  };
  isSure = true;
  const cleared = orRefused(await call("clear-notes"));
  const resourcesAtEnd = await listed();
  await subscription.close();
  await client.close();
  return { ...answers, cleared, resourcesAtEnd };
}
