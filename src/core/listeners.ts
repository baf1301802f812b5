// Calls the functions that users pass to be informed: listeners of progress, logs, changes, output and states. What one
// throws, or what its promise rejects with, is reported and ends neither the call, the connection nor the process.

import { errorMessage } from "./values.ts";

/** Gets the errors of the functions that were passed as options. `option` is the name of the option, such as "onLog". */
export type ListenerErrors = (error: unknown, option: string) => void;

/** Calls a listener, if there is one. `onError` gets its errors. Default: one line on stderr. */
export function callListener<Args extends readonly unknown[]>(
  option: string,
  listener: ((...args: Args) => unknown) | undefined,
  args: Args,
  onError?: ListenerErrors,
): void {
  if (listener === undefined) return;
  const failure = run(listener, args, (error) => reportListenerError(error, option, onError));
  if (failure !== undefined) reportListenerError(failure.error, option, onError);
}

/** Reports an error of a user's function to `onError`, which is a user's function too. */
export function reportListenerError(error: unknown, option: string, onError: ListenerErrors = printError): void {
  const failure = run(onError, [error, option], (other) => printError(other, "onError"));
  if (failure === undefined) return;
  printError(error, option);
  printError(failure.error, "onError");
}

export function printProblem(text: string): void {
  // oxlint-disable-next-line no-console -- some runtimes have no process.stderr
  console.error(`catenary: ${text}`);
}

function run<Args extends readonly unknown[]>(
  listener: (...args: Args) => unknown,
  args: Args,
  onRejected: (error: unknown) => void,
): { readonly error: unknown } | undefined {
  try {
    // A listener may be an async function, though its type returns nothing.
    const returned = listener(...args);
    if (returned instanceof Promise) returned.catch(onRejected);
    return undefined;
  } catch (error) {
    return { error };
  }
}

const printError: ListenerErrors = (error, option) => printProblem(`${option} failed: ${errorMessage(error)}`);
