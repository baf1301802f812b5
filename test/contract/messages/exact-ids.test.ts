// Request ids, progress tokens and subscription ids are echoed byte for byte, and a cancellation finds its request by the
// source text of the id. An id that is in flight cannot be used again.

import { afterAll, describe, expect, it } from "vitest";
import { LineValidator } from "./transcript-checks.ts";
import { closeConnections, CONNECTIONS } from "./line-connection.ts";
import type { LineConnection } from "./line-connection.ts";

afterAll(closeConnections);

const REVISION = "2025-11-25";
const STATELESS =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';

/** Ids that JavaScript would write differently, or that differ only in their source text. */
const TOKENS = ["1", "1.0", '"1"', "9007199254740993", "1e2", "-0", '"\\u0041"', '"é\\n"', `"${"x".repeat(70_000)}"`];

/** Sends messages, and validates each line that it reads. */
class Conversation {
  readonly #connection: LineConnection;
  readonly #validator = new LineValidator(REVISION);

  constructor(connection: LineConnection) {
    this.#connection = connection;
  }

  send(text: string): void {
    this.#validator.sent(text);
    this.#connection.send(`${text}\n`);
  }

  async next(): Promise<string> {
    const text = await this.#connection.next();
    expect(this.#validator.received(text)).toEqual([]);
    return text;
  }

  call(id: string, tool: string, meta = ""): void {
    this.send(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{},"_meta":{${meta}}}}`,
    );
  }

  /** The text of a tool's result; the result must be the next line. */
  async ask(tool: string, meta = ""): Promise<unknown> {
    this.call('"ask"', tool, meta);
    const answer = await this.next();
    expect(answer).toMatch(/^\{"jsonrpc":"2\.0","id":"ask","result":/);
    return JSON.parse(answer).result.content[0].text;
  }

  async end(): Promise<void> {
    expect(this.#connection.unread()).toEqual([]);
    expect(await this.#connection.end()).toBe(0);
  }
}

describe.each(CONNECTIONS)("over %s", (_, open) => {
  const begin = async (): Promise<Conversation> => {
    const conversation = new Conversation(await open("edge"));
    conversation.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"${REVISION}"}}`);
    await conversation.next();
    return conversation;
  };

  it("exact ids echo the progress token, in a session and stateless", async () => {
    const conversation = await begin();
    for (const style of ["", `${STATELESS},`]) {
      for (const token of TOKENS) {
        conversation.call(token, "steps", `${style}"progressToken":${token}`);
        for (const progress of [1, 2]) {
          expect(await conversation.next()).toBe(
            `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${progress},"total":2}}`,
          );
        }
        expect(await conversation.next()).toContain(`{"jsonrpc":"2.0","id":${token},"result":`);
      }
    }
    await conversation.end();
  });

  it("exact ids cancel the request with the same source text of the id, and no other", async () => {
    const conversation = await begin();
    // As numbers, 1 and 1.0 are equal, and so are 9007199254740993 and 9007199254740992.
    const ids = ["1", "1.0", '"1"', "9007199254740993", "9007199254740992", '"a"'];
    for (const id of ids) conversation.call(id, "hold");
    expect(await conversation.ask("held")).toBe("6");
    conversation.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.00}}');
    conversation.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740994}}');
    expect(await conversation.ask("held")).toBe("6");
    for (const [index, id] of ids.entries()) {
      conversation.send(
        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"enough"}}`,
      );
      expect(await conversation.ask("held")).toBe(String(ids.length - index - 1));
    }
    // No cancelled request is answered: end() expects no more lines.
    await conversation.end();
  });

  it("exact ids cancel a request if both ids are the same string, written differently", async () => {
    const conversation = await begin();
    conversation.call('"\\u0041"', "hold");
    conversation.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"A"}}');
    expect(await conversation.ask("held")).toBe("0");
    await conversation.end();
  });

  it("exact ids: tag the notifications of a subscription with its id", async () => {
    const conversation = await begin();
    for (const id of TOKENS) {
      const tag = `"io.modelcontextprotocol/subscriptionId":${id}`;
      conversation.send(
        `{"jsonrpc":"2.0","id":${id},"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["edge://thing"]},"_meta":{${STATELESS}}}}`,
      );
      const acknowledged = await conversation.next();
      expect(acknowledged).toContain('"method":"notifications/subscriptions/acknowledged"');
      expect(acknowledged).toContain(tag);
      conversation.call('"ask"', "touch");
      const updated = await conversation.next();
      expect(updated).toContain('"method":"notifications/resources/updated","params":{"uri":"edge://thing"');
      expect(updated).toContain(tag);
      expect(await conversation.next()).toContain('"touched"');
      conversation.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`);
      expect(await conversation.ask("touch")).toBe("touched");
    }
    await conversation.end();
  });

  it("exact ids refuse a second request with an id in flight, and answer the first one", async () => {
    const conversation = await begin();
    for (const id of ["7", "7.0", '"7"']) {
      conversation.call(id, "hold");
      conversation.call(id, "held");
      const error = await conversation.next();
      expect(error).toContain(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32600,`);
      expect(error).toContain("still in flight");
      conversation.call('"let go"', "let_go");
      const answers = [await conversation.next(), await conversation.next()].join("\n");
      expect(answers).toContain('"id":"let go","result":');
      expect(answers).toContain(`{"jsonrpc":"2.0","id":${id},"result":`);
      // After the answer, the id can be used again.
      conversation.call(id, "held");
      expect(await conversation.next()).toContain(`{"jsonrpc":"2.0","id":${id},"result":`);
    }
    await conversation.end();
  });
});
