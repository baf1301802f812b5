// Reads the seed documents: each piece in braces of each fenced block, with its line. The seeds are not part of the
// repository. Without them in ../shared/seeds, the tests that need them are skipped with a warning.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { it } from "vitest";

const folder = new URL("../../../../shared/seeds/", import.meta.url);

export const seedsFound: boolean = existsSync(folder);

/** A test that needs the seed documents. */
export function itWithSeeds(name: string, test: () => void | Promise<void>): void {
  if (!seedsFound) console.warn(`Skipped, because the seed documents are not in ../shared/seeds: ${name}`);
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
  /** The line in the seed, from 1, where the piece begins. */
  readonly line: number;
  /** The language of the block; may be empty. */
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
  if (depth !== 0) throw new Error(`The block at line ${firstLine} has an unclosed brace`);
  return pieces;
}

/** The piece on one line. A piece of several lines loses its comments and the spaces between tokens. */
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
