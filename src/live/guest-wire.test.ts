// The frames that the host writes to guests of all languages, as a guest gets them.

import { expect, it } from "vitest";
import { Guest, type GuestReply } from "./guest.ts";
import { DEFAULT_LIMITS, type Runtime } from "./runtime.ts";

/** Sends each chunk that it gets back as a call that belongs to the request 1. */
const GUEST = `
  const { Socket } = require("node:net");
  const host = new Socket({ fd: 3 });
  const send = (message) => { const text = JSON.stringify(message); host.write(Buffer.byteLength(text) + "\\n" + text); };
  send({ event: "ready", version: "1" });
  host.on("data", (chunk) => send({ target: 1, call: 7, got: chunk.toString() }));
  host.on("end", () => process.exit());`;

it("is JSON after its length in bytes, and an answer begins with its call", async () => {
  const runtime: Runtime = {
    language: "none",
    stopSteps: [],
    start: async () => ({ command: process.execPath, args: ["-e", GUEST] }),
    prepare: (request) => ({ ...request, pieces: [1] }),
  };
  const guest = await Guest.start(runtime, DEFAULT_LIMITS);
  try {
    const waiting: ((message: GuestReply) => void)[] = [];
    const next = (): Promise<GuestReply> => new Promise((resolve) => waiting.push(resolve));
    const first = next();
    const code = 'é\u0000\n"\\\ud800𝒳';
    const { reply } = guest.request("eval", { code, none: undefined }, undefined, (message) => {
      waiting.shift()?.(message);
    });
    const request = `{"code":"é\\u0000\\n\\"\\\\\\ud800𝒳","id":1,"op":"eval","pieces":[1]}`;
    expect((await first)["got"]).toBe(`${Buffer.byteLength(request)}\n${request}`);
    const second = next();
    const sent = guest.answer({ call: 7, result: { structured: [1.5, null, { a: [] }], text: "" } });
    const answer = `{"call":7,"result":{"structured":[1.5,null,{"a":[]}],"text":""},"id":2,"op":"call-result"}`;
    expect((await second)["got"]).toBe(`${sent}\n${answer}`);
    expect(sent).toBe(answer.length);
    void reply.catch(() => undefined);
  } finally {
    await guest.close(0);
  }
});
