// A call in steps, for tests of broken streams: the test says how far it goes, and reads off a reply how much of it
// was heard.

import type { SessionClient } from "../../support/http/mcp-clients.ts";
import type { Reply } from "../../support/http/http-peer.ts";
import type { StartedServer } from "./fixture.ts";

export const STEPS = 12;

/** What a stream said of the call: the progress, and "answer". */
export const received = (...replies: readonly Reply[]): unknown[] =>
  replies.flatMap(({ messages }) => messages).map(({ params, result }) => params?.progress ?? (result && "answer"));

export const allAfter = (from: number): unknown[] => [
  ...Array.from({ length: STEPS - from }, (_, n) => from + n + 1),
  "answer",
];

/** A call that has made so many steps, all of which the caller has seen. */
export async function startCall(
  { fixture }: StartedServer,
  client: SessionClient,
  key: string,
  steps: number,
): Promise<{ reply: Reply; go: (to: number) => void }> {
  const call = client.call(key, "hold", { key });
  const context = await fixture.holding(key);
  let at = 0;
  const go = (to: number): void => {
    while (at < to) context.progress((at += 1), STEPS);
    if (to === STEPS) fixture.release(key);
  };
  go(Math.max(steps, 1));
  const reply = await call;
  if (steps > 0) await reply.untilMessage(({ params }) => params?.progress === steps);
  return { reply, go };
}
