// Reads the seed documents: every piece in braces of every fenced block, with the line on which it begins, so
// that a test can say of each whether it is a golden message or left out. The seeds are not part of the
// repository; they are looked for beside it, and what needs them says by name that it was left out without them.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { it } from "vitest";

const folder = new URL("../../../../shared/seeds/", import.meta.url);

const seedsFound: boolean = existsSync(folder);

/** A test that needs the seed documents. */
export function itWithSeeds(name: string, test: () => void | Promise<void>): void {
  if (!seedsFound) console.warn(`Left out, because the seed documents are not in ../shared/seeds: ${name}`);
  it.skipIf(!seedsFound)(name, test);
}

/** The names of the seeds without `.txt`, in order. */
export function seedNames(): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".txt"))
    .map((file) => file.slice(0, -".txt".length))
    .toSorted();
}

/** A piece in braces inside a fenced block. */
export interface Piece {
  /** The line of the seed, from 1, on which the piece begins. */
  readonly line: number;
  /** The language of the block, empty where it names none. */
  readonly language: string;
  readonly text: string;
}

export function piecesOf(seed: string): Piece[] {
  const pieces: Piece[] = [];
  let block: { language: string; start: number; lines: string[] } | undefined;
  const lines = readFileSync(new URL(`${seed}.txt`, folder), "utf8").split("\n");
  for (const [index, line] of lines.entries()) {
    if (!line.startsWith("```")) block?.lines.push(line);
    else if (block === undefined) block = { language: line.slice(3).trim(), start: index + 2, lines: [] };
    else {
      pieces.push(...braced(block.lines.join("\n"), block.language, block.start));
      block = undefined;
    }
  }
  if (block !== undefined) throw new Error(`${seed}: the block at line ${block.start} has no end`);
  return pieces;
}

function braced(text: string, language: string, firstLine: number): Piece[] {
  const pieces: Piece[] = [];
  let depth = 0;
  let start = 0;
  for (const { char, at, quoted } of characters(text)) {
    if (quoted) continue;
    if (char === "{" && depth++ === 0) start = at;
    if (char === "}" && --depth === 0) {
      const line = firstLine + text.slice(0, start).split("\n").length - 1;
      pieces.push({ line, language, text: text.slice(start, at + 1) });
    }
  }
  if (depth !== 0) throw new Error(`The block at line ${firstLine} has a brace that is not closed`);
  return pieces;
}

/** The piece on one line: as it is where it is one line already, else without comments and the space between tokens. */
export function onOneLine(text: string): string {
  if (!text.includes("\n")) return text;
  let minified = "";
  for (const { char, quoted } of characters(text.replaceAll(/\s\/\/.*$/gm, ""))) {
    if (quoted || !/\s/.test(char)) minified += char;
  }
  return minified;
}

function* characters(text: string): Generator<{ char: string; at: number; quoted: boolean }> {
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (quoted && char === "\\") {
      yield { char, at, quoted };
      at += 1;
      yield { char: text.charAt(at), at, quoted };
      continue;
    }
    if (char === '"') quoted = !quoted;
    yield { char, at, quoted: quoted || char === '"' };
  }
}
