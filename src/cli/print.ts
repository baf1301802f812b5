// Data on stdout. To a pipe or a file it goes byte for byte; on a terminal, text is made harmless, and bytes that are no
// text are never written at all (whoever prints them asks first). A reader that has left is no failure of ours.

import { fitFor, harmlessJson, isTerminal } from "./harmless.ts";

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

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

/** One document: on a terminal for reading, elsewhere on one line. */
export function printJson(value: unknown): void {
  const text = isTerminal(process.stdout) ? harmlessJson(JSON.stringify(value, undefined, 2)) : JSON.stringify(value);
  process.stdout.write(`${text}\n`);
}
