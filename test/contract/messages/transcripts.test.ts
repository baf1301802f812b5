// Plays every golden transcript, byte for byte, over a real child process and over streams in this process. Each
// answer has all that the seed shows, but for the table of exceptions; each message that we send is valid in the
// official schema of its revision; nothing comes that is not in the transcript; the server ends by itself.

import { afterAll, describe, expect, it } from "vitest";
import { missing, Judge } from "./transcript-checks.ts";
import { EXCEPTIONS, type Exception } from "./seed-exceptions.ts";
import { TRANSCRIPTS } from "./golden-transcripts.ts";
import type { Entry, Transcript } from "./golden-transcripts.ts";
import { closeLines, LINES } from "./line-connection.ts";
import type { Line } from "./line-connection.ts";

const used = new Set<Exception>();

afterAll(closeLines);

/** What an entry of the end shows and the answer lacks. */
function differences(seed: string, entry: Entry, found: unknown): string[] {
  return missing(JSON.parse(entry.text), found).flatMap(({ path, ...values }) => {
    const exception = EXCEPTIONS.find(
      (one) => seed.startsWith(one.seed) && one.line === entry.line && one.path === path,
    );
    if (exception !== undefined) used.add(exception);
    return exception === undefined ? [`line ${entry.line ?? "-"} ${path}: ${JSON.stringify(values)}`] : [];
  });
}

/** Plays the entries; `ahead` sends all that the caller says in one piece before it reads anything. */
async function play(line: Line, { seed, revision, entries }: Transcript, ahead: boolean): Promise<void> {
  const judge = new Judge(revision);
  const spoken = entries.filter(({ from }) => from === "caller").map(({ text }) => text);
  if (ahead) {
    for (const text of spoken) judge.sent(text);
    line.send(spoken.map((text) => `${text}\n`).join(""));
  }
  let answer: { result?: unknown } = {};
  for (const entry of entries) {
    if (entry.from === "caller") {
      if (ahead) continue;
      judge.sent(entry.text);
      line.send(`${entry.text}\n`);
    } else if (entry.within !== undefined) {
      expect(differences(seed, entry, answer[entry.within])).toEqual([]);
    } else {
      const text = await line.next();
      expect(judge.received(text), text).toEqual([]);
      answer = JSON.parse(text) as { result?: unknown };
      expect(differences(seed, entry, answer)).toEqual([]);
    }
  }
  // Whatever else the server had to say would stand before this answer.
  line.send('{"jsonrpc":"2.0","id":"the end of the transcript","method":"ping"}\n');
  expect(await line.next()).toBe('{"jsonrpc":"2.0","id":"the end of the transcript","result":{}}');
  expect(await line.end()).toBe(0);
  expect(line.unread()).toEqual([]);
}

describe.each(LINES)("over %s", (_, open) => {
  it.each(TRANSCRIPTS.map((transcript) => [transcript.seed, transcript.name, transcript] as const))(
    "seed %s, %s",
    async (_seed, _name, transcript) => {
      await play(await open(transcript.server, transcript.options), transcript, false);
    },
  );

  // Seed 000 under "Concurrency": one request at a time, responses sent in order.
  for (const transcript of TRANSCRIPTS.filter(({ seed }) => seed.startsWith("000") || seed.startsWith("001"))) {
    const { seed, name, server, options } = transcript;
    it(`seed ${seed}, ${name}, sent ahead to a server with sequential ordering`, async () => {
      await play(await open(server, { ...options, ordering: "sequential" }), transcript, true);
    });
  }
});

it("needs every exception of the table", () => {
  expect(EXCEPTIONS.filter((exception) => !used.has(exception))).toEqual([]);
});
