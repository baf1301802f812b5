// Who serves on the stdio of this process. Separate from src/serve.ts, which the main entry loads later: a second
// serve() must fail at once, before the first one has answered a message.

/** Shared by all copies of this package in a process, since a process has only one stdin. */
const STDIO = Symbol.for("catenary.stdio");
export const STDIO_TAKEN = "This process already serves on its stdio: call serve() once per process, or pass streams";

const holder = (): NodeJS.Process & { [STDIO]?: string } => process;

/** Throws an error with the holder's message if the process's stdio is reserved. */
export function checkStdio(): void {
  const { [STDIO]: refusal } = holder();
  if (refusal !== undefined) throw new Error(refusal);
}

/**
 * Reserves the process's stdio; returns a function that releases it. Two servers on one stdin would both answer every
 * message, so a second call throws an error with the first call's `refusal` as its message.
 */
export function takeStdio(refusal: string): () => void {
  checkStdio();
  holder()[STDIO] = refusal;
  return () => {
    delete holder()[STDIO];
  };
}
