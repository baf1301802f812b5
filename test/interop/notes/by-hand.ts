// The server of notes moved over to Catenary by hand, with docs/how-to/come-from-the-sdk.md.

import { z } from "zod";
import { createServer } from "../../../src/server/index.ts";
import { CONFIRM, HINT, INFO, type NoteBook, STYLES, TITLE_QUESTION, uriOf } from "./note-book.ts";

// The type of the server follows from the calls.
export function createNotes(book: NoteBook) {
  const register = (id: string): void => {
    server.resource(uriOf(id), { name: `note-${id}`, mimeType: "text/plain" }, () => book.read(id));
  };
  const server = createServer({ ...INFO, instructions: HINT })
    .tool(
      "add-note",
      {
        title: "Add a note",
        description: "Keep a text as a note",
        input: z.object({ text: z.string() }),
        output: z.object({ id: z.string(), uri: z.string() }),
      },
      ({ text }) => {
        const id = book.add(text);
        register(id);
        return { id, uri: uriOf(id) };
      },
    )
    .tool(
      "read-note",
      { description: "Read a note", input: z.object({ id: z.string() }), annotations: { readOnlyHint: true } },
      ({ id }) =>
        book.has(id) ? book.read(id) : { content: [{ type: "text", text: book.unknown(id) }], isError: true },
    )
    .tool("change-note", { input: z.object({ id: z.string(), text: z.string() }) }, ({ id, text }) => {
      book.change(id, text);
      server.resourceUpdated(uriOf(id));
      return "changed";
    })
    .tool("delete-note", { input: z.object({ id: z.string() }) }, ({ id }) => {
      book.delete(id);
      server.removeResource(uriOf(id));
      return `deleted ${id}`;
    })
    .tool("clear-notes", { description: "Delete all notes" }, async (_args, { ask }) => {
      const { action, content } = await ask.elicit(CONFIRM);
      if (action !== "accept" || !content?.["sure"]) return `kept: ${action}`;
      const ids = book.clear();
      for (const id of ids) server.removeResource(uriOf(id));
      return `deleted ${ids.length}`;
    })
    .tool("import-notes", { input: z.object({ texts: z.array(z.string()) }) }, ({ texts }, { progress, log }) => {
      for (const [index, note] of texts.entries()) {
        register(book.add(note));
        progress(index + 1, texts.length);
      }
      log("info", `${texts.length} imported`);
      return `imported ${texts.length}`;
    })
    .tool("title-note", {}, async (_args, { ask }) => {
      const { content } = await ask.sample(TITLE_QUESTION);
      return "text" in content ? content.text : "no title";
    })
    .tool("folders", {}, async (_args, { ask }) => (await ask.roots()).roots.map(({ uri }) => uri).join(" "))
    .tool(
      "wait",
      {},
      (_args, { signal }) =>
        new Promise<string>((resolve) => {
          book.waiting();
          signal.addEventListener("abort", () => resolve(book.abandoned()));
        }),
    )
    .template(
      "note:///{id}",
      {
        name: "note",
        description: "A note by its id",
        mimeType: "text/plain",
        complete: { id: (value) => book.ids.filter((id) => id.startsWith(value)) },
      },
      ({ id }) => book.read(id),
    )
    .prompt(
      "summarize",
      {
        description: "Summarize the notes",
        arguments: {
          style: { required: true, complete: (value) => STYLES.filter((style) => style.startsWith(value)) },
        },
      },
      ({ style }) => book.summary(style),
    );
  for (const id of book.ids) register(id);
  return server;
}
