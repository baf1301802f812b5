// What names something comes back byte for byte: ids, the token of progress, the id of a subscription; and a
// cancellation finds its request by the text of the id. An id that is in flight cannot be used again.

import { afterAll, describe, expect, it } from "vitest";
import { Judge } from "./transcript-checks.ts";
import { closeLines, LINES } from "./line-connection.ts";
import type { Line } from "./line-connection.ts";

afterAll(closeLines);

const REVISION = "2025-11-25";
const EXCHANGE =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';

/** Source texts that JavaScript would write differently, or that differ only in their text. */
const TOKENS = ["1", "1.0", '"1"', "9007199254740993", "1e2", "-0", '"\\u0041"', '"é\\n"', `"${"x".repeat(70_000)}"`];

/** Sends, and reads the next line after having judged it. */
class Talk {
  readonly #line: Line;
  readonly #judge = new Judge(REVISION);

  constructor(line: Line) {
    this.#line = line;
  }

  send(text: string): void {
    this.#judge.sent(text);
    this.#line.send(`${text}\n`);
  }

  async next(): Promise<string> {
    const text = await this.#line.next();
    expect(this.#judge.received(text)).toEqual([]);
    return text;
  }

  call(id: string, tool: string, meta = ""): void {
    this.send(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{},"_meta":{${meta}}}}`,
    );
  }

  /** The text that a tool answers; it must be the next thing that comes. */
  async ask(tool: string, meta = ""): Promise<unknown> {
    this.call('"ask"', tool, meta);
    const answer = await this.next();
    expect(answer).toMatch(/^\{"jsonrpc":"2\.0","id":"ask","result":/);
    return JSON.parse(answer).result.content[0].text;
  }

  async end(): Promise<void> {
    expect(this.#line.unread()).toEqual([]);
    expect(await this.#line.end()).toBe(0);
  }
}

describe.each(LINES)("over %s", (_, open) => {
  const begin = async (): Promise<Talk> => {
    const talk = new Talk(await open("edge"));
    talk.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"${REVISION}"}}`);
    await talk.next();
    return talk;
  };

  it("the token of progress, in a session and in an exchange", async () => {
    const talk = await begin();
    for (const style of ["", `${EXCHANGE},`]) {
      for (const token of TOKENS) {
        talk.call(token, "steps", `${style}"progressToken":${token}`);
        for (const progress of [1, 2]) {
          expect(await talk.next()).toBe(
            `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${progress},"total":2}}`,
          );
        }
        expect(await talk.next()).toContain(`{"jsonrpc":"2.0","id":${token},"result":`);
      }
    }
    await talk.end();
  });

  it("the requestId of a cancellation, which hits the request of that text and no other", async () => {
    const talk = await begin();
    // Read as numbers, 1 and 1.0 are one, and so are 9007199254740993 and its neighbour.
    const ids = ["1", "1.0", '"1"', "9007199254740993", "9007199254740992", '"a"'];
    for (const id of ids) talk.call(id, "hold");
    expect(await talk.ask("held")).toBe("6");
    talk.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.00}}');
    talk.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740994}}');
    expect(await talk.ask("held")).toBe("6");
    for (const [index, id] of ids.entries()) {
      talk.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"enough"}}`);
      expect(await talk.ask("held")).toBe(String(ids.length - index - 1));
    }
    // None of them is answered: these are the next answers, and the last.
    await talk.end();
  });

  it("the requestId of a cancellation as another way to write the same string", async () => {
    const talk = await begin();
    talk.call('"\\u0041"', "hold");
    talk.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"A"}}');
    expect(await talk.ask("held")).toBe("0");
    await talk.end();
  });

  it("the id of a subscription, in an exchange", async () => {
    const talk = await begin();
    for (const id of TOKENS) {
      const tag = `"io.modelcontextprotocol/subscriptionId":${id}`;
      talk.send(
        `{"jsonrpc":"2.0","id":${id},"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["edge://thing"]},"_meta":{${EXCHANGE}}}}`,
      );
      const acknowledged = await talk.next();
      expect(acknowledged).toContain('"method":"notifications/subscriptions/acknowledged"');
      expect(acknowledged).toContain(tag);
      talk.call('"ask"', "touch");
      const updated = await talk.next();
      expect(updated).toContain('"method":"notifications/resources/updated","params":{"uri":"edge://thing"');
      expect(updated).toContain(tag);
      expect(await talk.next()).toContain('"touched"');
      talk.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`);
      expect(await talk.ask("touch")).toBe("touched");
    }
    await talk.end();
  });

  it("an id that is in flight is refused to a second request, and the first one is still answered", async () => {
    const talk = await begin();
    for (const id of ["7", "7.0", '"7"']) {
      talk.call(id, "hold");
      talk.call(id, "held");
      const refused = await talk.next();
      expect(refused).toContain(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32600,`);
      expect(refused).toContain("still in flight");
      talk.call('"let go"', "let_go");
      const answers = [await talk.next(), await talk.next()].join("\n");
      expect(answers).toContain('"id":"let go","result":');
      expect(answers).toContain(`{"jsonrpc":"2.0","id":${id},"result":`);
      // Once it is answered the id is free again.
      talk.call(id, "held");
      expect(await talk.next()).toContain(`{"jsonrpc":"2.0","id":${id},"result":`);
    }
    await talk.end();
  });
});
