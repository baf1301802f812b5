// Log messages are filtered by the present level, not by the level at the start of the call.

import { expect, it } from "vitest";
import { CancelToken } from "../core/cancel.ts";
import { ClientRequests } from "./client-requests.ts";
import { Contexts } from "./contexts.ts";

const log = (level: string): { method: string; params: { level: string; data: string } } => ({
  method: "notifications/message",
  params: { level, data: level },
});

it("filters by the present level, unless the call has its own", () => {
  const received: unknown[] = [];
  const contexts = new Contexts({
    info: { name: "test", version: "1" },
    requests: new ClientRequests({}),
    onLog: ({ data }) => received.push(data),
  });
  const before = contexts.forCall(new CancelToken(), {}, false);
  const own = contexts.forCall(new CancelToken(), { logLevel: "error" }, false);
  contexts.logLevel = "debug";
  before.notify(log("debug"));
  own.notify(log("warning"));
  own.notify(log("error"));
  expect(received).toEqual(["debug", "error"]);
  contexts.logLevel = "error";
  before.notify(log("info"));
  expect(received).toEqual(["debug", "error"]);
});
