// Data on stdout. To a pipe or a file it goes byte for byte; on a terminal, text is made harmless, and bytes that are no
// text are never written at all (whoever prints them asks first). A reader that has left, or a terminal that was
// closed, is no failure of ours; a disk that is full is one, and is remembered until the connection is closed.

import { fitFor, harmlessJson, isTerminal } from "./harmless.ts";

let lost: Error | undefined;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  const isGone = error.code === "EPIPE" || (error.code === "EIO" && isTerminal(process.stdout));
  if (!isGone) lost ??= error;
});

/** Why what was printed did not all arrive. */
export function lostOutput(): Error | undefined {
  return lost;
}

/** As it is, on a terminal with a newline at its end. */
export function printRaw(text: string): void {
  if (!isTerminal(process.stdout)) process.stdout.write(text);
  else printText(text);
}

/** With a newline at its end in any case. */
export function printText(text: string): void {
  process.stdout.write(text.endsWith("\n") ? fitFor(process.stdout, text) : `${fitFor(process.stdout, text)}\n`);
}

/** What is harmless already, and has its newlines: our own words, with colours perhaps. */
export function printOwn(text: string): void {
  process.stdout.write(text);
}

export function printBytes(bytes: Uint8Array): void {
  process.stdout.write(bytes);
}

/** A value for reading, on several lines in any case. */
export function printValue(value: unknown): void {
  const text = JSON.stringify(value, undefined, 2);
  process.stdout.write(`${isTerminal(process.stdout) ? harmlessJson(text) : text}\n`);
}

/** One document: on a terminal for reading, elsewhere on one line. */
export function printJson(value: unknown): void {
  if (isTerminal(process.stdout)) printValue(value);
  else process.stdout.write(`${JSON.stringify(value)}\n`);
}
