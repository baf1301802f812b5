// Work beyond the bound waits, in order, and is not lost.

import { expect, it } from "vitest";
import { facing } from "../../../test/support/connection.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";

it("works on so many at once and takes the rest in the order of arrival", async () => {
  const running: string[] = [];
  const doors: (() => void)[] = [];
  const peer = await facing(
    async ({ method, params }) => {
      if (method === "server/discover") return { capabilities: { tools: {} } };
      if (method === "subscriptions/listen") return {};
      running.push(String(params["name"]));
      await new Promise<void>((resolve) => doors.push(resolve));
      return { content: [] };
    },
    { maxInFlight: 2 },
  );
  await peer.handshake(NEWEST_SESSION.name);
  for (const id of [1, 2, 3, 4]) peer.send({ id, method: "tools/call", params: { name: String(id) } });
  await expect.poll(() => running).toEqual(["1", "2"]);
  // Busy is not dead.
  expect(await peer.request({ id: "alive", method: "ping" })).toMatchObject({ result: {} });
  peer.send({ method: "notifications/cancelled", params: { requestId: 3 } });
  doors.shift()?.();
  await peer.answerTo(1);
  await expect.poll(() => running).toEqual(["1", "2", "4"]);
  for (const door of doors) door();
  await peer.answerTo(2);
  await peer.answerTo(4);
  expect(peer.received.some(({ id }) => id === 3)).toBe(false);
});
