// The server of notes written with `@modelcontextprotocol/server` 2.x. The same as sdk-1.ts, in the words of version 2.

import { completable, McpServer, ResourceTemplate, type RegisteredResource } from "@modelcontextprotocol/server";
import { z } from "zod";
import { CONFIRM, HINT, INFO, type NoteBook, STYLES, TITLE_QUESTION, uriOf } from "./note-book.ts";

const text = (value: string): { content: { type: "text"; text: string }[] } => ({
  content: [{ type: "text", text: value }],
});

export function createNotes(book: NoteBook): McpServer {
  const server = new McpServer(INFO, {
    instructions: HINT,
    capabilities: { logging: {}, resources: { subscribe: true } },
  });
  const registered = new Map<string, RegisteredResource>();
  const register = (id: string): void => {
    const read = (uri: URL): { contents: { uri: string; mimeType: string; text: string }[] } => ({
      contents: [{ uri: uri.href, mimeType: "text/plain", text: book.read(id) }],
    });
    registered.set(id, server.registerResource(`note-${id}`, uriOf(id), { mimeType: "text/plain" }, read));
  };
  const unregister = (id: string): void => {
    registered.get(id)?.remove();
    registered.delete(id);
  };
  for (const id of book.ids) register(id);

  server.registerTool(
    "add-note",
    {
      title: "Add a note",
      description: "Keep a text as a note",
      inputSchema: z.object({ text: z.string() }),
      outputSchema: z.object({ id: z.string(), uri: z.string() }),
    },
    ({ text: note }) => {
      const id = book.add(note);
      register(id);
      const added = { id, uri: uriOf(id) };
      return { ...text(JSON.stringify(added)), structuredContent: added };
    },
  );
  server.registerTool(
    "read-note",
    { description: "Read a note", inputSchema: z.object({ id: z.string() }), annotations: { readOnlyHint: true } },
    ({ id }) => (book.has(id) ? text(book.read(id)) : { ...text(book.unknown(id)), isError: true }),
  );
  server.registerTool("change-note", { inputSchema: z.object({ id: z.string(), text: z.string() }) }, async (args) => {
    book.change(args.id, args.text);
    await server.server.sendResourceUpdated({ uri: uriOf(args.id) });
    return text("changed");
  });
  server.registerTool("delete-note", { inputSchema: z.object({ id: z.string() }) }, ({ id }) => {
    book.delete(id);
    unregister(id);
    return text(`deleted ${id}`);
  });
  server.registerTool("clear-notes", { description: "Delete all notes" }, async ({ mcpReq }) => {
    const { action, content } = await mcpReq.elicitInput(CONFIRM);
    if (action !== "accept" || content?.["sure"] !== true) return text(`kept: ${action}`);
    const ids = book.clear();
    for (const id of ids) unregister(id);
    return text(`deleted ${ids.length}`);
  });
  server.registerTool(
    "import-notes",
    { inputSchema: z.object({ texts: z.array(z.string()) }) },
    async ({ texts }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (const [index, note] of texts.entries()) {
        register(book.add(note));
        const params = { progressToken: progressToken ?? 0, progress: index + 1, total: texts.length };
        if (progressToken !== undefined) await mcpReq.notify({ method: "notifications/progress", params });
      }
      await mcpReq.log("info", `${texts.length} imported`);
      return text(`imported ${texts.length}`);
    },
  );
  server.registerTool("title-note", {}, async ({ mcpReq }) => {
    const { content } = await mcpReq.requestSampling(TITLE_QUESTION);
    return text("text" in content ? content.text : "no title");
  });
  server.registerTool("folders", {}, async () =>
    text((await server.server.listRoots()).roots.map(({ uri }) => uri).join(" ")),
  );
  server.registerTool(
    "wait",
    {},
    ({ mcpReq }) =>
      new Promise((resolve) => {
        book.waiting();
        mcpReq.signal.addEventListener("abort", () => resolve(text(book.abandoned())));
      }),
  );

  server.registerResource(
    "note",
    new ResourceTemplate("note:///{id}", {
      list: undefined,
      complete: { id: (value) => book.ids.filter((id) => id.startsWith(value)) },
    }),
    { description: "A note by its id" },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: book.read(String(id)) }] }),
  );
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));

  server.registerPrompt(
    "summarize",
    {
      description: "Summarize the notes",
      argsSchema: z.object({
        style: completable(z.string(), (value) => STYLES.filter((style) => style.startsWith(value))),
      }),
    },
    ({ style }) => ({ messages: [{ role: "user", content: { type: "text", text: book.summary(style) } }] }),
  );
  return server;
}
