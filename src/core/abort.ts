// Many may wait for one signal. Each signal gets one listener, however many wait, so that a signal shared by a
// thousand calls neither warns nor grows, and who no longer waits leaves nothing behind.

interface Watch {
  readonly acts: Set<() => void>;
  readonly tell: () => void;
}

const watched = new WeakMap<AbortSignal, Watch>();

/** Calls `act` once when the signal is aborted from now on; returns how to take that back. */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined) return () => undefined;
  let watch = watched.get(signal);
  if (watch === undefined) {
    const acts = new Set<() => void>();
    const tell = (): void => {
      watched.delete(signal);
      for (const one of [...acts]) one();
    };
    watch = { acts, tell };
    watched.set(signal, watch);
    signal.addEventListener("abort", tell, { once: true });
  }
  const { acts, tell } = watch;
  // A function of its own, so that the same act can wait twice.
  const one = (): void => act();
  acts.add(one);
  return () => {
    // A signal with a listener is kept alive by some that follow others: the last to leave takes it away.
    if (!acts.delete(one) || acts.size > 0 || watched.get(signal)?.acts !== acts) return;
    watched.delete(signal);
    signal.removeEventListener("abort", tell);
  };
}
