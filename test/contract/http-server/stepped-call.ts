// A call that reports progress step by step, for tests of broken streams: the test controls its steps and checks which of
// them a reply contains.

import type { SessionClient } from "../../support/http/mcp-clients.ts";
import type { Reply } from "../../support/http/http-peer.ts";
import type { TestedServer } from "./fixture.ts";

export const STEPS = 12;

/** The progress values in the replies, and "answer" for the result. */
export const received = (...replies: readonly Reply[]): unknown[] =>
  replies.flatMap(({ messages }) => messages).map(({ params, result }) => params?.progress ?? (result && "answer"));

/** Everything that a client must receive after this step. */
export const allAfter = (from: number): unknown[] => [
  ...Array.from({ length: STEPS - from }, (_, n) => from + n + 1),
  "answer",
];

/** Starts a call and waits until the client has received this many steps; `go` continues to a step. */
export async function startCall(
  { fixture }: TestedServer,
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
