// How an evaluation is stopped that does not end by itself: by the gentlest step that works. First it is interrupted;
// then, where the language can do that, another evaluator takes the place of the one that does not heed; at last the
// process is ended, and with it goes all that was defined.

import type { Guest, Reply } from "./guest.ts";
import type { Rung } from "./runtime.ts";

export type Step = Rung | "restart";

/** How long each step may take until the next is tried. */
const RUNG_MS = 2_000;

/** Stops the request `target`, whose answer is `reply`; says which step it took. */
export async function climb(
  guest: Guest,
  rungs: readonly Rung[],
  target: number,
  reply: Promise<Reply>,
): Promise<Step> {
  const answered = reply.then(
    () => true,
    () => true,
  );
  for (const rung of rungs) {
    // A guest that cannot do this says so at once.
    const refused = guest.tell(rung, { target }).then(
      () => new Promise<false>(() => undefined),
      () => false,
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), RUNG_MS);
    });
    const isOver = await Promise.race([answered, late, refused]);
    clearTimeout(timer);
    if (guest.isGone) break;
    if (isOver) return rung;
  }
  await guest.close(0);
  return "restart";
}
