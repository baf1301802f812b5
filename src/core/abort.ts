// Many may wait for one signal. Each signal gets one listener, however many wait, so that a signal shared by a
// thousand calls neither warns nor grows, and who no longer waits leaves nothing behind.

const watched = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `act` once when the signal is aborted from now on; returns how to take that back. */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined) return () => undefined;
  let acts = watched.get(signal);
  if (acts === undefined) {
    const mine = new Set<() => void>();
    acts = mine;
    watched.set(signal, mine);
    const tell = (): void => {
      for (const one of [...mine]) one();
      mine.clear();
    };
    signal.addEventListener("abort", tell, { once: true });
  }
  const own = acts;
  // A function of its own, so that the same act can wait twice.
  const one = (): void => act();
  own.add(one);
  return () => void own.delete(one);
}
