// What a command says to the person who started it: on stderr, with colour only where a person sees it. Its last word,
// where it fails, ends the process.

import { styleText } from "node:util";
import { errorMessage } from "../../core/text.ts";
import { EXIT } from "../exit-codes.ts";
import { fitFor, isTerminal } from "./harmless.ts";
import type { ListStyle } from "../show/lists.ts";

// Whoever heard us has left, or the terminal was closed: there is nobody to tell, and the work goes on to its end.
process.stderr.on("error", () => undefined);

type Style = Parameters<typeof styleText>[0];

export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Escape sequences belong on a terminal, and there too only where nobody has asked to be spared. */
export function paint(style: Style, text: string, stream: { readonly isTTY?: boolean } = process.stderr): string {
  const { NO_COLOR, TERM } = process.env;
  const coloured = isTerminal(stream) && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
  return coloured ? styleText(style, text) : text;
}

/** Says what went wrong, and ends the process: a module that was loaded may hold it open for ever. */
export function fail(error: unknown): void {
  const code = error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage;
  leave(code, `catenary: ${fitFor(process.stderr, errorMessage(error))}\n`);
}

/** Ends the process when all that was written is on its way. */
export function leave(code: number, lastWord = ""): void {
  process.exitCode = code;
  // Whoever read our output may have left.
  process.stdout.write("", () => process.stderr.write(lastWord, () => process.exit(code)));
}

/** How lists are written to stdout: for a screen where it is one. */
export function listStyle(): ListStyle {
  const { stdout } = process;
  return {
    // A terminal that does not know its width says 0.
    width: isTerminal(stdout) && stdout.columns > 0 ? stdout.columns : undefined,
    strong: (text) => paint("bold", text, stdout),
    faint: (text) => paint("dim", text, stdout),
  };
}
