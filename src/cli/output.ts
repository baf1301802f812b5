// What a command says to the person who started it: on stderr, with colour only where a person sees it.

import { styleText } from "node:util";

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
