// The many forms in which an answer may come over HTTP and still be one: types with parameters, bodies without a length,
// interim heads, batches, answers by another stream; and forms that are refused with a word on why.

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import type { Json, Visit } from "../../support/http/raw-server.ts";
import { expectHelpful, joined, met, opened, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

const resultOf = (visit: Visit): Json => ({
  jsonrpc: "2.0",
  id: visit.json?.["id"],
  result: { resultType: "complete", content: [{ type: "text", text: "it came" }], isError: false },
});
const bodyOf = (visit: Visit): string => JSON.stringify(resultOf(visit));
const eventsOf = (visit: Visit): string => `data: ${bodyOf(visit)}\n\n`;

const FORMS: Readonly<Record<string, Fault>> = {
  "with a charset": (visit) => visit.answer(200, bodyOf(visit), { "content-type": "application/json; charset=utf-8" }),
  "with a type in capitals": (visit) => visit.answer(200, bodyOf(visit), { "Content-Type": "Application/JSON" }),
  "as events with a charset": (visit) =>
    visit.answer(200, eventsOf(visit), { "content-type": "text/event-stream;charset=UTF-8" }),
  "as an event without a name": (visit) => visit.answer(200, eventsOf(visit), { "content-type": "text/event-stream" }),
  "as an event over several lines": (visit) => {
    const body = JSON.stringify(resultOf(visit), undefined, 2);
    const lines = body.split("\n").map((line) => `data: ${line}\n`);
    visit.answer(200, `${lines.join("")}\n`, { "content-type": "text/event-stream" });
  },
  "as events with the ends of lines of another age": (visit) =>
    visit.answer(200, `: hi\r\r${eventsOf(visit).replaceAll("\n", "\r")}`, { "content-type": "text/event-stream" }),
  "as events with a mark before them": (visit) =>
    visit.answer(200, `\uFEFF${eventsOf(visit).replaceAll("\n", "\r\n")}`, { "content-type": "text/event-stream" }),
  "as JSON with a mark before it": (visit) =>
    visit.answer(200, `\uFEFF${bodyOf(visit)}`, { "content-type": "application/json" }),
  "with a head of an older HTTP, and an end that is that of the connection": (visit) => {
    visit.write(`HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n${bodyOf(visit)}`);
    visit.hangUp();
  },
  "as events that end with the connection": (visit) => {
    visit.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${eventsOf(visit)}`);
    visit.hangUp();
  },
  "after interim heads": (visit) => {
    visit.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n");
    visit.answer(200, bodyOf(visit), { "content-type": "application/json" });
  },
  "in chunks of one byte": (visit) => {
    visit.begin(200, { "content-type": "application/json" });
    for (const letter of bodyOf(visit)) visit.chunk(letter);
    visit.end();
  },
  "and the connection is closed after it": (visit) => {
    visit.answer(200, bodyOf(visit), { "content-type": "application/json", connection: "close" });
    visit.hangUp();
  },
  "with headers that are there twice": (visit) =>
    visit.answer(200, bodyOf(visit), { "content-type": "application/json", "x-one": "a\r\nx-one: b" }),
  "as 201": (visit) => visit.answer(201, bodyOf(visit), { "content-type": "application/json" }),
};

describe.each([
  ["exchanges", STYLES["exchanges"] ?? {}],
  ["sessions", SESSION],
])("an answer in %s", (_, options) => {
  it.each(Object.entries(FORMS))("may come %s", async (_form, form) => {
    const { end, client } = await met(options);
    end.lay("tools/call", form);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("it came");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.count("tools/call")).toBe(2);
  });

  it("may come with any status of its own, if it is an error of the protocol", async () => {
    const { end, client } = await met(options);
    for (const code of [200, 400, 404, 422, 500, 503]) {
      if (code === 404 && options === SESSION) continue;
      end.lay("tools/call", (visit) =>
        visit.answer(code, { jsonrpc: "2.0", id: visit.json?.["id"], error: { code: -32603, message: `No: ${code}` } }),
      );
      const { error } = await outcome(client.callTool("run", { key: "a" }));
      expect(error, String(code)).toMatchObject({ code: -32603, message: `No: ${code}` });
    }
    expect(end.desk.runsOf("a")).toBe(0);
  });

  it("that is compressed though nobody asked for it is refused, and named", async () => {
    const { end, client } = await met(options);
    end.lay("tools/call", (visit) => {
      const body = gzipSync(bodyOf(visit)).toString("latin1");
      visit.answer(200, body, { "content-type": "application/json", "content-encoding": "gzip" });
    });
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error?.message).toContain("gzip");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it.each([
    ["a head that has no end", (visit: Visit) => visit.write(`HTTP/1.1 200 OK\r\nx-long: ${"x".repeat(100_000)}`)],
    ["a head that is none", (visit: Visit) => visit.write("SSH-2.0-OpenSSH_9.6\r\n\r\n")],
    ["a length that is none", (visit: Visit) => visit.write("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}")],
    [
      "two lengths",
      (visit: Visit) => visit.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}"),
    ],
    [
      "a chunk that is none",
      (visit: Visit) => visit.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    ],
  ])("with %s is no HTTP, and that is said", async (_form, form) => {
    const { end, client } = await met(options);
    end.lay("tools/call", form);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 5_000 }));
    expectHelpful(error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});

describe("an answer to a call in a session", () => {
  it("may be an array of one, where the revision has such", async () => {
    const { end, client } = await met(SESSION, { revision: REVISIONS.find(({ batches }) => batches)?.name ?? "" });
    end.lay("tools/call", (visit) => visit.answer(200, [resultOf(visit)]));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("it came");
  });

  it("may come by the stream that belongs to no call, after a bare 202", async () => {
    const { end, client } = await met(SESSION);
    await end.untilHeard();
    end.lay("tools/call", (visit) => {
      visit.answer(202);
      const stream = end.visits.find(({ what }) => what === "GET");
      stream?.chunk(eventsOf(visit));
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("it came");
  });

  it("to the handshake may come as a stream, with or without ids", async () => {
    for (const id of ["", "id: 1\n"]) {
      const end = await opened(SESSION);
      end.lay("initialize", (visit, serve) => {
        const { answer } = visit;
        visit.answer = (_status, body, headers) => {
          visit.begin(200, { ...headers, "content-type": "text/event-stream" });
          visit.chunk(`${id}data: ${JSON.stringify(body)}\n\n`);
          visit.end();
          visit.answer = answer;
        };
        return serve();
      });
      const client = await joined(end);
      expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    }
  });
});

describe("headers of a program's own", () => {
  it("go with every request, in every style", async () => {
    for (const options of [STYLES["exchanges"] ?? {}, SESSION]) {
      const { end, client } = await met(options, { headers: { "X-Team": "green", Authorization: "Basic eDp5" } });
      await client.callTool("run", { key: "a" });
      await client.close();
      for (const { headers } of end.visits) {
        expect(headers).toMatchObject({ "x-team": "green", authorization: "Basic eDp5" });
      }
    }
  });

  it("that no header can be are refused before anything is sent, and their value is not shown", async () => {
    const end = await opened();
    const { error } = await outcome(joined(end, { headers: { authorization: "Bearer secret\r\nx: y" } }));
    expect(error).toMatchObject({ mayHaveRun: false });
    expect(String(error?.message) + String(error?.stack)).not.toContain("secret");
    expect(end.visits).toEqual([]);
  });
});
