// Promises of work that others wrote, that others may forget, or that may never settle. A handler is typed to return a
// promise, but users' code may throw before it has made one; a promise that nobody awaits must not end the process when
// it fails; and patience has an end.

/** What the work throws at once is a failure of its promise like any other. */
export function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The same promise; who awaits it hears of its failure, and if nobody does, it is no unhandled one. */
export function forgettable<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Waits for a promise, but no longer than this. */
export async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
