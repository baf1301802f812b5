// Sends the table of bad inputs over a child process and over streams: each gets exactly the answer that it must
// get, or none, and a ping after each shows that the connection lives on.

import { afterAll, describe, expect, it } from "vitest";
import { expectAnswer, type Row } from "./bad-input-row.ts";
import { BEFORE_SESSION, WITH_BATCHES, IN_SESSION } from "./bad-inputs.ts";
import { Judge } from "./transcript-checks.ts";
import { closeLines, LINES } from "./line-connection.ts";
import type { Line } from "./line-connection.ts";

afterAll(closeLines);

const GROUPS: readonly { name: string; revision: string; session: boolean; rows: readonly Row[] }[] = [
  { name: "in a session", revision: "2025-11-25", session: true, rows: IN_SESSION },
  { name: "in a session with batches", revision: "2025-03-26", session: true, rows: WITH_BATCHES },
  { name: "before any session", revision: "2025-11-25", session: false, rows: BEFORE_SESSION },
];

async function initialize(line: Line, revision: string): Promise<void> {
  line.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"${revision}"}}\n`);
  expect(JSON.parse(await line.next()).result.protocolVersion).toBe(revision);
}

async function tryRow(line: Line, judge: Judge, { send, expected, oddId }: Row, number: number): Promise<void> {
  const bytes = Buffer.concat(send.map((piece) => Buffer.from(piece)));
  judge.sent(bytes.toString("utf8"));
  for (const piece of send) line.send(piece);
  line.send("\n");
  if (expected.kind !== "none") {
    const answer = await line.next();
    expectAnswer(answer, expected);
    if (oddId !== true) expect(judge.received(answer)).toEqual([]);
  }
  line.send(`{"jsonrpc":"2.0","id":"alive ${number}","method":"ping"}\n`);
  expect(await line.next()).toBe(`{"jsonrpc":"2.0","id":"alive ${number}","result":{}}`);
  expect(line.unread()).toEqual([]);
}

it("has some hundred inputs", () => {
  expect(GROUPS.flatMap(({ rows }) => rows).length).toBeGreaterThan(100);
});

describe.each(LINES)("over %s", (_, open) => {
  describe.each(GROUPS)("$name", ({ revision, session, rows }) => {
    let line: Line | undefined;
    const judge = new Judge(revision);

    const begin = async (): Promise<Line> => {
      const begun = await open("edge");
      if (session) await initialize(begun, revision);
      return begun;
    };

    it.each(rows.map((row, index) => [row.name, row, index] as const))("%s", async (_name, row, index) => {
      const used = (line ??= await begin());
      // What broke the connection fails; what comes after it gets a new one.
      line = undefined;
      await tryRow(used, judge, row, index);
      line = used;
    });

    it("has lived through all of it and ends by itself", async () => {
      expect(await line?.end()).toBe(0);
    });
  });
});
