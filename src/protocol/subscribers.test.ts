// Delivery to many subscribers: each gets each notification once and in order, other work runs in between, and nothing
// comes before the acknowledgement.

import { expect, it } from "vitest";
import { fakeClient, type FakeClient, type FakeClientOptions } from "../../test/support/handlers/fake-client.ts";
import type { Notification } from "../core/handler.ts";
import { Subscriber, Subscribers } from "./subscribers.ts";
import { acknowledgement, resourceUpdated } from "./subscription.ts";

const CHANGED = { method: "notifications/tools/list_changed" };
const LOG = { method: "notifications/message", params: { level: "info", data: "x" } };

interface Member extends FakeClient {
  readonly subscriber: Subscriber;
}

function join(all: Subscribers, options?: FakeClientOptions, isAcknowledged = true): Member {
  const client = fakeClient(() => Promise.resolve({}), options);
  const subscriber = new Subscriber(client.context, { toolsListChanged: true, resourceSubscriptions: ["n://1"] });
  if (isAcknowledged) {
    subscriber.acknowledge(subscriber.filter);
    client.notifications.length = 0;
  }
  all.add(subscriber);
  return { ...client, subscriber };
}

const events = [1, 2, 3].map((value): Notification => ({ method: "notifications/test", params: { value } }));
const everyone = (): boolean => true;

async function until(isDone: () => boolean): Promise<number> {
  let turns = 0;
  for (; !isDone(); turns += 1) await new Promise((resolve) => setImmediate(resolve));
  return turns;
}

it("Subscribers delivers to a few subscribers at once, and only what concerns them", () => {
  const all = new Subscribers();
  const [first, second] = [join(all), join(all)];
  second.subscriber.filter = { resourceSubscriptions: ["n://10"] };
  for (const event of [CHANGED, resourceUpdated("n://1/part"), resourceUpdated("n://10/part")]) all.notify(event);
  expect(first.notifications).toEqual([CHANGED, resourceUpdated("n://1/part")]);
  expect(second.notifications).toEqual([resourceUpdated("n://10/part")]);
});

it("Subscribers delivers to many subscribers over several turns of the event loop, to each in order", async () => {
  const all = new Subscribers();
  const members = Array.from({ length: 1_000 }, () => join(all));
  const [one, two, three] = events as [Notification, Notification, Notification];
  all.notify(one, everyone);
  all.notify(two, everyone);
  const reached = (count: number) => members.filter(({ notifications }) => notifications.length >= count).length;
  expect(reached(1)).toBeLessThan(100);
  expect(await until(() => reached(1) === 1_000)).toBeGreaterThan(5);
  all.notify(three, everyone);
  await until(() => reached(3) === 1_000);
  for (const { notifications } of members) expect(notifications).toEqual(events);
});

it("Subscribers goes on after a subscriber that throws, and leaves out those that have ended", () => {
  const all = new Subscribers();
  const [first, second, third] = [join(all), join(all), join(all)];
  first.context.notify = () => {
    throw new Error("gone");
  };
  second.abort();
  all.notify(CHANGED);
  expect([second.notifications, third.notifications]).toEqual([[], [CHANGED]]);
});

it("Subscribers holds what comes before the acknowledgement, each change once", () => {
  const all = new Subscribers();
  const stateless = join(all, {}, false);
  const session = join(all, { caller: { style: "session" } }, false);
  for (const event of [CHANGED, resourceUpdated("n://1"), CHANGED]) all.notify(event);
  all.notify(LOG, everyone);
  expect([stateless.notifications, session.notifications]).toEqual([[], [LOG]]);
  for (const { subscriber } of [stateless, session]) subscriber.acknowledge({ toolsListChanged: true });
  const held = [acknowledgement({ toolsListChanged: true }), CHANGED, resourceUpdated("n://1")];
  expect(stateless.notifications).toEqual([...held, LOG]);
  expect(session.notifications).toEqual([LOG, ...held]);
});

it.each([
  [{}, true],
  [{ toolsListChanged: true }, false],
])("a Subscriber that was granted %j and tasks ends with the tasks: %s", async (changes, endsWithTasks) => {
  const { context, abort } = fakeClient(() => Promise.resolve({}));
  const subscriber = new Subscriber(context, {});
  let [isOver, isStopped] = [false, false];
  void subscriber.ended.then(() => (isOver = true));
  const begin = (end: () => void): (() => void) => {
    end();
    return () => (isStopped = true);
  };
  subscriber.acknowledge(changes, { granted: { taskIds: ["t"] }, scopes: [], begin });
  await Promise.resolve();
  expect(isOver).toBe(endsWithTasks);
  abort();
  await Promise.resolve();
  await Promise.resolve();
  expect([isOver, isStopped]).toEqual([true, true]);
});
