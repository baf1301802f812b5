// A board that several clients share. Each pinned note changes the resource that all clients read, and subscribed
// clients are notified. The tool `tidy` is slow on purpose, to show progress.

import { setTimeout as wait } from "node:timers/promises";
import { createServer } from "catenary";

/** @type {{ author: string, text: string }[]} */
const notes = [];

export const server = createServer({ name: "board", version: "1.0.0" })
  .tool(
    "pin",
    {
      description: "Pin a note to the board",
      input: {
        type: "object",
        properties: { text: { type: "string" }, author: { type: "string", default: "anonymous" } },
        required: ["text"],
      },
    },
    ({ text, author = "anonymous" }) => {
      notes.push({ author, text });
      server.resourceUpdated("board://notes");
      return notes.length === 1 ? "Pinned; it is the only note." : `Pinned; there are ${notes.length} notes.`;
    },
  )
  .tool("tidy", { description: "Take all notes down, one after the other" }, async (_, context) => {
    const total = notes.length;
    for (let taken = 1; taken <= total; taken++) {
      await wait(200, undefined, { signal: context.signal });
      notes.pop();
      context.progress(taken, total, `${taken} of ${total}`);
    }
    server.resourceUpdated("board://notes");
    return total === 1 ? "Took the only note down." : `Took ${total} notes down.`;
  })
  .resource(
    "board://notes",
    { name: "Notes", description: "The notes on the board", mimeType: "application/json" },
    () => notes,
  );
