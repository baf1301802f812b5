// Which of what an end says reaches the listeners: by the level that holds when it comes, not when its call began.

import { expect, it } from "vitest";
import { Asks } from "./client-requests.ts";
import { Contexts } from "./contexts.ts";

const log = (level: string): { method: string; params: { level: string; data: string } } => ({
  method: "notifications/message",
  params: { level, data: level },
});

it("lets a message through by the level of now, unless the call has named its own", () => {
  const heard: unknown[] = [];
  const contexts = new Contexts({
    info: { name: "test", version: "1" },
    asks: new Asks({}),
    onLog: ({ data }) => heard.push(data),
  });
  const { signal } = new AbortController();
  const before = contexts.call(signal, {});
  const own = contexts.call(signal, { logLevel: "error" });
  contexts.level = "debug";
  before.notify(log("debug"));
  own.notify(log("warning"));
  own.notify(log("error"));
  expect(heard).toEqual(["debug", "error"]);
  contexts.level = "error";
  before.notify(log("info"));
  expect(heard).toEqual(["debug", "error"]);
});
