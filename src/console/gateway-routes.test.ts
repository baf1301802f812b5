// The log that a page follows ends with the console.

import { expect, it } from "vitest";
import { gatewayRoutes } from "./gateway-routes.ts";
import type { ConsoleHost } from "./host.ts";
import type { EventStream } from "./route.ts";

it("a log that is followed ends with the console, and is followed no more", () => {
  let followers = 0;
  const log = { recent: () => [], write: () => undefined, follow: () => ((followers += 1), () => (followers -= 1)) };
  const closed = new AbortController();
  const routes = gatewayRoutes({ log } as unknown as ConsoleHost, (line) => line, closed.signal);
  const query = new URLSearchParams({ follow: "1" });
  const { signal } = new AbortController();
  const stream = routes.find(({ path }) => path === "logs")?.run({ params: {}, query, body: {}, signal });
  let ended = 0;
  const sink = { send: () => undefined, sendJson: () => undefined, end: () => (ended += 1), bufferedBytes: 0 };
  (stream as EventStream).open(sink);
  expect([followers, ended]).toEqual([1, 0]);
  closed.abort();
  expect([followers, ended]).toEqual([0, 1]);
});
