// Sends the table of bad inputs to a child process and over streams in memory. Each gets exactly the expected answer, and
// a ping after each shows that the connection still works.

import { afterAll, describe, expect, it } from "vitest";
import { expectAnswer, type Row } from "./bad-input-row.ts";
import { BEFORE_SESSION, WITH_BATCHES, IN_SESSION } from "./bad-inputs.ts";
import { LineValidator } from "./transcript-checks.ts";
import { closeConnections, CONNECTIONS } from "./line-connection.ts";
import type { LineConnection } from "./line-connection.ts";

afterAll(closeConnections);

const GROUPS: readonly { name: string; revision: string; session: boolean; rows: readonly Row[] }[] = [
  { name: "in a session", revision: "2025-11-25", session: true, rows: IN_SESSION },
  { name: "in a session with batches", revision: "2025-03-26", session: true, rows: WITH_BATCHES },
  { name: "before any session", revision: "2025-11-25", session: false, rows: BEFORE_SESSION },
];

async function initialize(connection: LineConnection, revision: string): Promise<void> {
  connection.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"${revision}"}}\n`);
  expect(JSON.parse(await connection.next()).result.protocolVersion).toBe(revision);
}

async function tryRow(
  connection: LineConnection,
  validator: LineValidator,
  { send, expected, oddId }: Row,
  number: number,
): Promise<void> {
  const bytes = Buffer.concat(send.map((piece) => Buffer.from(piece)));
  validator.sent(bytes.toString("utf8"));
  for (const piece of send) connection.send(piece);
  connection.send("\n");
  if (expected.kind !== "none") {
    const answer = await connection.next();
    expectAnswer(answer, expected);
    if (oddId !== true) expect(validator.received(answer)).toEqual([]);
  }
  connection.send(`{"jsonrpc":"2.0","id":"alive ${number}","method":"ping"}\n`);
  expect(await connection.next()).toBe(`{"jsonrpc":"2.0","id":"alive ${number}","result":{}}`);
  expect(connection.unread()).toEqual([]);
}

it("has more than a hundred inputs", () => {
  expect(GROUPS.flatMap(({ rows }) => rows).length).toBeGreaterThan(100);
});

describe.each(CONNECTIONS)("over %s", (_, open) => {
  describe.each(GROUPS)("$name", ({ revision, session, rows }) => {
    let connection: LineConnection | undefined;
    const validator = new LineValidator(revision);

    const begin = async (): Promise<LineConnection> => {
      const opened = await open("edge");
      if (session) await initialize(opened, revision);
      return opened;
    };

    it.each(rows.map((row, index) => [row.name, row, index] as const))(
      "a bad message: %s",
      async (_name, row, index) => {
        const used = (connection ??= await begin());
        // After a failure, the next input gets a new connection.
        connection = undefined;
        await tryRow(used, validator, row, index);
        connection = used;
      },
    );

    it("a bad message: exits with code 0 afterwards", async () => {
      expect(await connection?.end()).toBe(0);
    });
  });
});
