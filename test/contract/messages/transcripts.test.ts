// Plays each golden transcript, byte for byte, to a child process and over streams in memory. Each answer has everything
// that the seed shows, except for the listed differences. Each message of the server is valid in the official schema of
// its revision, no other message is sent, and the server exits by itself.

import { afterAll, describe, expect, it } from "vitest";
import { sampleOf } from "../../support/thoroughness.ts";
import { missing, LineValidator } from "./transcript-checks.ts";
import { EXCEPTIONS, type Exception } from "./seed-exceptions.ts";
import { TRANSCRIPTS } from "./golden-transcripts.ts";
import type { Entry, Transcript } from "./golden-transcripts.ts";
import { closeConnections, CONNECTIONS } from "./line-connection.ts";
import type { LineConnection } from "./line-connection.ts";

const used = new Set<Exception>();

afterAll(closeConnections);

/** What an entry of the server shows and the answer lacks. */
function differences(seed: string, entry: Entry, found: unknown): string[] {
  return missing(JSON.parse(entry.text), found).flatMap(({ path, ...values }) => {
    const exception = EXCEPTIONS.find(
      (one) => seed.startsWith(one.seed) && one.line === entry.line && one.path === path,
    );
    if (exception !== undefined) used.add(exception);
    return exception === undefined ? [`line ${entry.line ?? "-"} ${path}: ${JSON.stringify(values)}`] : [];
  });
}

/** Plays the entries; with `ahead`, sends all messages of the client before it reads the first answer. */
async function play(
  connection: LineConnection,
  { seed, revision, entries }: Transcript,
  ahead: boolean,
): Promise<void> {
  const validator = new LineValidator(revision);
  const sent = entries.filter(({ from }) => from === "client").map(({ text }) => text);
  if (ahead) {
    for (const text of sent) validator.sent(text);
    connection.send(sent.map((text) => `${text}\n`).join(""));
  }
  let answer: { result?: unknown } = {};
  for (const entry of entries) {
    if (entry.from === "client") {
      if (ahead) continue;
      validator.sent(entry.text);
      connection.send(`${entry.text}\n`);
    } else if (entry.within !== undefined) {
      expect(differences(seed, entry, answer[entry.within])).toEqual([]);
    } else {
      const text = await connection.next();
      expect(validator.received(text), text).toEqual([]);
      answer = JSON.parse(text) as { result?: unknown };
      expect(differences(seed, entry, answer)).toEqual([]);
    }
  }
  // Any other message would arrive before this answer.
  connection.send('{"jsonrpc":"2.0","id":"the end of the transcript","method":"ping"}\n');
  expect(await connection.next()).toBe('{"jsonrpc":"2.0","id":"the end of the transcript","result":{}}');
  expect(await connection.end()).toBe(0);
  expect(connection.unread()).toEqual([]);
}

describe.each(CONNECTIONS)("over %s", (_, open) => {
  it.each(TRANSCRIPTS.map((transcript) => [transcript.seed, transcript.name, transcript] as const))(
    "seed %s, %s",
    async (_seed, _name, transcript) => {
      await play(await open(transcript.server, transcript.options), transcript, false);
    },
  );

  // Seed 000 under "Concurrency": one request at a time, responses sent in order.
  const ordered = TRANSCRIPTS.filter(({ seed }) => seed.startsWith("000") || seed.startsWith("001"));
  for (const transcript of sampleOf(1, ordered)) {
    const { seed, name, server, options } = transcript;
    it(`seed ${seed}, ${name}, sent ahead to a server with sequential ordering`, async () => {
      await play(await open(server, { ...options, ordering: "sequential" }), transcript, true);
    });
  }
});

it("needs each exception of the table", () => {
  expect(EXCEPTIONS.filter((exception) => !used.has(exception))).toEqual([]);
});
