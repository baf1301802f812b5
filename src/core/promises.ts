// Promises of work that others wrote, or that others may forget. A handler is typed to return a promise, but users'
// code may throw before it has made one; and a promise that nobody awaits must not end the process when it fails.

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
