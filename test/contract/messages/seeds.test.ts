// The seed documents, word for word: plays each of their messages to the server that the document describes, started with
// the command of its page, and compares each answer exactly, but for the listed differences. Each message of the server is
// valid in the official schema of its revision, no other message is sent, and the server ends with all its processes.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codeBlocks } from "../../docs/markdown.ts";
import { PageFolder, readPage } from "../../docs/page.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { expectNoProcesses, markProcesses } from "../cli/cli-process.ts";
import { type Entry, type Transcript, TRANSCRIPTS } from "./golden-transcripts.ts";
import { closeConnections, connectToChild, type LineConnection } from "./line-connection.ts";
import { EXCEPTIONS, type Exception, LEFT_OUT } from "./seed-exceptions.ts";
import { itWithSeeds, onOneLine, piecesOf, seedNames } from "./seeds.ts";
import { differences, LineValidator, missing } from "./transcript-checks.ts";

/** The pages that say how the servers of the seeds are started. */
const PAGES = {
  "cl-mcp": "docs/how-to/come-from-cl-mcp-server.md",
  "llm-pharo": "docs/how-to/come-from-llm-pharo-mcp.md",
  reference: "docs/reference/compat.md",
  chain: "docs/reference/mcp-chain.md",
} as const;

/** The commands that the shell blocks of a page have for a server. */
function startsOf(markdown: string): string[] {
  const lines = codeBlocks(markdown).flatMap(({ language, code }) => (language === "sh" ? code.split("\n") : []));
  return lines.filter((line) => /^sbcl --load \S+$|^catenary serve .*--compat \S+$/.test(line));
}

const used = new Set<Exception>();

/** Where an answer is not as the entry shows it. What is not in the seed may be shown in part. */
function problems(seed: string, start: string, { line, text }: Entry, found: unknown): string[] {
  const compare = line === undefined ? missing : differences;
  return compare(JSON.parse(text), found).flatMap(({ path, ...values }) => {
    const exception = EXCEPTIONS.find(
      (one) => seed.startsWith(one.seed) && one.line === line && one.path === path && (one.start?.test(start) ?? true),
    );
    if (exception !== undefined) used.add(exception);
    if (exception?.found.test(JSON.stringify(values.found)) === true) return [];
    return [`line ${line ?? "-"} ${path}: ${JSON.stringify(values)}`];
  });
}

/** The fields that a part of an answer shows. */
function partOf(answer: unknown, { text }: Entry): unknown {
  const fields = Object.keys(JSON.parse(text) as object);
  return Object.fromEntries(fields.map((name) => [name, (answer as Readonly<Record<string, unknown>>)[name]]));
}

const LAST = '{"jsonrpc":"2.0","id":"the end of the transcript"';

/** With `ahead`, sends all messages of the client before it reads the first answer. */
async function play(connection: LineConnection, start: string, transcript: Transcript, ahead: boolean): Promise<void> {
  const { seed, revision, entries } = transcript;
  const validator = new LineValidator(revision);
  const send = (text: string): void => {
    validator.sent(text);
    connection.send(`${text}\n`);
  };
  if (ahead) for (const { from, text } of entries) if (from === "client") send(text);
  let answer: { result?: unknown } | undefined;
  for (const entry of entries) {
    if (entry.from === "client") {
      if (!ahead) send(entry.text);
      continue;
    }
    if (entry.within === undefined) {
      let text = await connection.next();
      // SBCL prints its banner first.
      while (answer === undefined && !text.startsWith("{") && start.startsWith("sbcl")) text = await connection.next();
      expect(validator.received(text), text).toEqual([]);
      answer = JSON.parse(text) as { result?: unknown };
    }
    const found = entry.within === undefined ? answer : partOf(answer?.[entry.within], entry);
    expect(problems(seed, start, entry, found)).toEqual([]);
  }
  // Any other message would arrive before this answer.
  connection.send(`${LAST},"method":"ping"}\n`);
  expect(await connection.next()).toBe(`${LAST},"result":{}}`);
  expect(await connection.end()).toBe(0);
  expect(connection.unread()).toEqual([]);
}

afterAll(closeConnections);

describe.each(Object.entries(PAGES))("%s, as %s says", (server, page) => {
  const markdown = readPage(page);
  const transcripts = TRANSCRIPTS.filter((transcript) => transcript.server === server);
  let folder: PageFolder;
  beforeAll(async () => {
    folder = await PageFolder.create(markdown);
  });
  afterAll(() => folder.close());

  it("a seed has a start and transcripts", () => {
    expect(startsOf(markdown)).not.toEqual([]);
    expect(transcripts).not.toEqual([]);
  });

  describe.each(startsOf(markdown))("%s", (start) => {
    const run = async (transcript: Transcript, ahead: boolean): Promise<void> => {
      const { mark, env } = markProcesses();
      await play(await connectToChild(folder.open(start, env)), start, transcript, ahead);
      await expectNoProcesses(mark);
    };
    for (const transcript of transcripts) {
      it(`a seed seed ${transcript.seed}, ${transcript.name}`, async ({ skip }) => {
        skip(start.startsWith("sbcl") && !hasSbcl(), "needs SBCL");
        await run(transcript, false);
      });
    }
    // Seed 000 under "Concurrency": one request at a time, responses sent in order.
    const ordered = server === "cl-mcp" ? transcripts : [];
    for (const transcript of IS_LONG ? ordered : ordered.slice(0, 1)) {
      it(`a seed seed ${transcript.seed}, ${transcript.name}, sent ahead`, async ({ skip }) => {
        skip(!hasSbcl(), "needs SBCL");
        await run(transcript, true);
      });
    }
  });
});

it("needs each difference of the list", () => {
  const tried = EXCEPTIONS.filter(({ seed }) => hasSbcl() || !["000", "001"].includes(seed));
  expect(tried.filter((exception) => !used.has(exception))).toEqual([]);
});

it("has the same file for CL-MCP-Server on its page and in examples", () => {
  const block = codeBlocks(readPage(PAGES["cl-mcp"])).find(({ mark }) => mark === "run-server.lisp");
  expect(block?.code).toBe(readPage("examples/cl-mcp/run-server.lisp"));
});

it("golden files and seeds have each line at most once, and a reason for each added message", () => {
  const lines = TRANSCRIPTS.flatMap(({ seed, entries }) => entries.map(({ line }) => line && `${seed}:${line}`));
  const inSeed = lines.filter((line) => line !== undefined);
  expect(inSeed.length).toBeGreaterThan(60);
  expect(new Set(inSeed).size).toBe(inSeed.length);
  for (const { entries } of TRANSCRIPTS) {
    for (const entry of entries) expect(entry.line === undefined).toBe((entry.added ?? "") !== "");
  }
});

itWithSeeds("golden files and seeds cover each piece in braces of each block of the five seeds, once", () => {
  expect(seedNames()).toHaveLength(5);
  for (const seed of seedNames()) {
    const golden = TRANSCRIPTS.filter((transcript) => transcript.seed === seed).flatMap(({ entries }) =>
      entries.flatMap(({ line }) => line ?? []),
    );
    const leftOut = LEFT_OUT.filter((piece) => seed.startsWith(piece.seed)).map(({ line }) => line);
    const lines = new Set(piecesOf(seed).map(({ line }) => line));
    expect([...golden, ...leftOut].toSorted((a, b) => a - b)).toEqual([...lines].toSorted((a, b) => a - b));
  }
});

itWithSeeds(
  "golden files and seeds have the bytes of the seeds; pieces of several lines without comments and spaces",
  () => {
    for (const { seed, entries } of TRANSCRIPTS) {
      const pieces = piecesOf(seed);
      for (const { line, golden } of entries) {
        if (line === undefined) continue;
        const here = pieces.filter((piece) => piece.line === line);
        expect(here.map((piece) => onOneLine(piece.text))).toEqual([golden]);
      }
    }
  },
);

itWithSeeds("golden files and seeds leave out pieces that begin as the list says", () => {
  for (const { seed, line, begins, reason } of LEFT_OUT) {
    const name = seedNames().find((candidate) => candidate.startsWith(seed)) ?? "";
    const first = piecesOf(name).find((piece) => piece.line === line)?.text ?? "";
    expect(first.startsWith(begins), `${seed}:${line} ${first}`).toBe(true);
    expect(reason).not.toBe("");
  }
});
