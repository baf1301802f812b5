// Reads the golden files. Each is one transcript: all messages of one connection. The first line names the seed and the
// server. Each other line is one message: `line` is its line in the seed, or `added` says why it is not in the seed.
// `message` is the last key, so that its source text can be cut out byte for byte; `text` replaces it if the input is not
// JSON. `within` marks a part of the previous answer.

import { readdirSync, readFileSync } from "node:fs";
import { onOneLine, piecesOf, seedsFound } from "./seeds.ts";

const folder = new URL("golden/", import.meta.url);

export interface Entry {
  readonly line?: number;
  readonly added?: string;
  readonly from: "client" | "server";
  readonly within?: "result";
  /** The bytes of the line, without the newline: those of the seed, if it is there. */
  readonly text: string;
  /** The bytes in the golden file. */
  readonly golden: string;
}

export interface Transcript {
  readonly seed: string;
  readonly name: string;
  readonly server: string;
  readonly revision: string;
  readonly entries: readonly Entry[];
}

interface Head {
  readonly transcript: string;
  readonly seed: string;
  readonly server: string;
  readonly revision: string;
}

export const TRANSCRIPTS: readonly Transcript[] = readdirSync(folder)
  .toSorted()
  .flatMap((seed) => {
    const pieces = new Map(seedsFound ? piecesOf(seed).map(({ line, text }) => [line, onOneLine(text)]) : []);
    return readdirSync(new URL(`${seed}/`, folder))
      .toSorted()
      .map((file) => read(seed, file, pieces));
  });

function read(seed: string, file: string, pieces: ReadonlyMap<number, string>): Transcript {
  const [first = "", ...rest] = readFileSync(new URL(`${seed}/${file}`, folder), "utf8")
    .trimEnd()
    .split("\n");
  const { transcript, server, revision } = JSON.parse(first) as Head;
  return { seed, name: transcript, server, revision, entries: rest.map((source) => entry(source, pieces)) };
}

function entry(source: string, pieces: ReadonlyMap<number, string>): Entry {
  const { message, text, ...rest } = JSON.parse(source) as Omit<Entry, "golden"> & { message?: unknown };
  const key = '"message":';
  const golden = message === undefined ? text : source.slice(source.indexOf(key) + key.length, -1);
  return { ...rest, golden, text: pieces.get(rest.line ?? 0) ?? golden };
}
