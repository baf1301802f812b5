// A server of notes as the SDK's documentation writes one: unedited through `fromSdk` with both versions of the SDK, and
// moved over by hand. All of them give a client of every revision the same answers.

import { describe, expect, it } from "vitest";
import { fromSdk } from "../../../src/chain/upstream/from-sdk.ts";
import type { ConnectOptions } from "../../../src/client/connect.ts";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import type { Closeable } from "../../../src/serve.ts";
import { connectInMemory } from "../../../src/testing.ts";
import { sampleOf } from "../../support/thoroughness.ts";
import { createNotes as byHand } from "./by-hand.ts";
import { NoteBook } from "./note-book.ts";
import { createNotes as withSdk1 } from "./sdk-1.ts";
import { createNotes as withSdk2 } from "./sdk-2.ts";
import { transcript } from "./transcript.ts";

type Create = (book: NoteBook) => Closeable;

const SERVERS: readonly (readonly [name: string, create: Create])[] = sampleOf<readonly [string, Create]>(2, [
  ["a function that makes a server of SDK 1", (book) => fromSdk(() => withSdk1(book))],
  ["a server object of SDK 2", (book) => fromSdk(withSdk2(book))],
  ["a server object of SDK 1", (book) => fromSdk(withSdk1(book))],
  ["a function that makes a server of SDK 2", (book) => fromSdk(() => withSdk2(book))],
]);

async function answersOf(create: Create, revision: string): Promise<Record<string, unknown>> {
  const book = new NoteBook();
  const server = create(book);
  const open = async (options: ConnectOptions) => (await connectInMemory(server, { revision, ...options })).client;
  const answers = await transcript(open, book);
  await server.close?.();
  return answers;
}

describe.each(REVISIONS.map(({ name }) => name))("a client of %s", (revision) => {
  it("a client gets the same answers from servers of the SDK as from the one that was moved by hand", async () => {
    const expected = await answersOf(byHand, revision);
    expect(expected).toMatchObject({
      added: { texts: ['{"id":"4","uri":"note:///4"}'] },
      readMissing: { isError: true },
      updated: "note:///1",
      title: { texts: ["My notes"] },
      folders: { texts: ["file:///work"] },
      unknownTool: "refused",
    });
    for (const [name, create] of SERVERS) expect(await answersOf(create, revision), name).toEqual(expected);
  });
});
