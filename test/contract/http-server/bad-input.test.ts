// Posts the table of bad inputs to a session. Each gets the same answer as over stdio, with a suitable status, and a ping
// after each shows that the session still works.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Handler, type Serving } from "catenary";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { expectAnswer, type Row } from "../messages/bad-input-row.ts";
import { WITH_BATCHES, IN_SESSION } from "../messages/bad-inputs.ts";

const GROUPS: readonly { name: string; revision: string; rows: readonly Row[] }[] = [
  { name: "a session", revision: "2025-11-25", rows: IN_SESSION },
  { name: "a session with batches", revision: "2025-03-26", rows: WITH_BATCHES },
];

/** Inputs that are refused before they are parsed, with a status. */
const UNPARSED = [{ details: "Invalid UTF-8", status: 400, code: -32700 }];

const unparsed = ({ expected }: Row): (typeof UNPARSED)[number] | undefined =>
  UNPARSED.find(({ details }) => expected.kind === "error" && JSON.stringify(expected.data ?? "").includes(details));

describe.each(GROUPS)("posted to $name", ({ revision, rows }) => {
  let front: Serving;
  let client: SessionClient;

  beforeAll(async () => {
    const { server } = (await import(new URL("../messages/servers/edge.js", import.meta.url).href)) as {
      server: Handler;
    };
    front = await serve(server, { http: { port: 0 } });
    client = await SessionClient.open(new HttpPeer(front.url ?? ""), revision);
  });

  afterAll(() => front.close());

  it.each(rows.map((row) => [row.name, row] as const))("posted input: %s", async (_name, row) => {
    const { send, expected } = row;
    const body = Buffer.concat(send.map((piece) => Buffer.from(piece)));
    const reply = await client.peer.post(body, {
      "mcp-session-id": client.session,
      "content-type": "application/json",
    });
    const refused = unparsed(row);
    if (refused !== undefined) {
      const { id, error } = reply.json;
      expect([reply.status, id, error?.code]).toEqual([refused.status, null, refused.code]);
    } else if (expected.kind === "none") {
      // A message without an answer gets 202; an input that is not a message gets 400.
      expect([202, 400]).toContain(reply.status);
      if (reply.status === 202) expect(reply.text).toBe("");
      else expect(reply.json).toMatchObject({ id: null, error: { code: expect.any(Number) as number } });
    } else {
      expectAnswer(reply.text, expected);
      if (expected.kind === "error") expect([200, 400]).toContain(reply.status);
      else expect(reply.status).toBe(200);
    }
    expect(await client.request("ping")).toMatchObject({ result: {} });
  });
});
