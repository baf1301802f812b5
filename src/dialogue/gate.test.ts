// One caller at a time, and nobody forgotten.

import { expect, it } from "vitest";
import { Gate } from "./gate.ts";

const open = new AbortController().signal;
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it("lets calls of one caller through together, and those of others in turn", async () => {
  const gate = new Gate();
  const [ada, bea] = [{}, {}];
  const order: string[] = [];
  const first = await gate.enter(ada, open);
  const second = await gate.enter(ada, open);
  const waiting = gate.enter(bea, open).then((leave) => {
    order.push("bea");
    return leave;
  });
  const late = gate.enter(ada, open).then((leave) => {
    order.push("ada, late");
    return leave;
  });
  first();
  await settle();
  expect(order).toEqual([]);
  second();
  const leaveBea = await waiting;
  await settle();
  expect(order).toEqual(["bea"]);
  leaveBea();
  (await late)();
  expect(order).toEqual(["bea", "ada, late"]);
  (await gate.enter(bea, open))();
});

it("forgets who gave up waiting", async () => {
  const gate = new Gate();
  const leave = await gate.enter({}, open);
  const stop = new AbortController();
  const given = gate.enter({}, stop.signal);
  stop.abort(new Error("enough"));
  await expect(given).rejects.toThrow("enough");
  const next = gate.enter({}, open);
  leave();
  (await next)();
});
