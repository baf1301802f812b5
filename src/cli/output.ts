// What a command says to the person who started it: on stderr, with colour only where a person sees it. Its last word,
// where it fails, ends the process.

import { styleText } from "node:util";
import { textOf } from "../core/text.ts";
import { EXIT } from "./exit-codes.ts";

type Style = Parameters<typeof styleText>[0];

export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Escape sequences belong on a terminal, and there too only where nobody has asked to be spared. */
export function paint(style: Style, text: string): string {
  const { NO_COLOR } = process.env;
  const coloured = process.stderr.isTTY && (NO_COLOR === undefined || NO_COLOR === "");
  return coloured ? styleText(style, text) : text;
}

/** Says what went wrong, and ends the process: a module that was loaded may hold it open for ever. */
export function fail(error: unknown): void {
  const code = error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage;
  process.exitCode = code;
  process.stderr.write(`catenary: ${textOf(error)}\n`, () => process.exit(code));
}
