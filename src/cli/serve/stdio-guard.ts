// The process's stdio is ours while people's modules are loaded: one that calls serve() itself would serve it twice, or
// with no end to it. It is told so, and so is the person.

import { errorMessage } from "../../core/text.ts";
import { STDIO_TAKEN, takeStdio } from "../../serve.ts";
import { UsageError } from "../exit-codes.ts";
import { fail } from "../terminal/output.ts";

/** `refusal` is what a module is told that wants it. Returns what ends that. */
export function keepStdio(refusal: string): () => void {
  const release = takeStdio(refusal);
  // A module that does not wait for its serve() does not hear that it is refused.
  process.once("unhandledRejection", (error) => {
    if (![refusal, STDIO_TAKEN].includes(errorMessage(error))) throw error;
    fail(new UsageError(refusal));
  });
  return release;
}
