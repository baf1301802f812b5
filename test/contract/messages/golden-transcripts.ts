// Reads the golden files: each is one transcript, that is one connection from its first message to its last. The
// first line says which seed it is from, which server answers and how that is served. Each further line is one
// message: `line` is where it stands in the seed; `added` says why a message stands here that the seed does not
// show. `message` is always the last key, so that its source text can be cut out byte for byte; `text` stands
// instead where what is sent is no JSON. `within` marks a piece of the answer that came just before.

import { readdirSync, readFileSync } from "node:fs";
import type { LineOptions } from "./line-connection.ts";

const folder = new URL("golden/", import.meta.url);

export interface Entry {
  readonly line?: number;
  readonly added?: string;
  readonly from: "caller" | "end";
  readonly within?: "result";
  /** The bytes on the wire, without the newline. */
  readonly text: string;
}

export interface Transcript {
  readonly seed: string;
  readonly name: string;
  readonly server: string;
  readonly revision: string;
  readonly options: LineOptions;
  readonly entries: readonly Entry[];
}

interface Head {
  readonly transcript: string;
  readonly seed: string;
  readonly server: string;
  readonly revision: string;
  readonly profile?: "mcp" | "chain";
}

export const TRANSCRIPTS: readonly Transcript[] = readdirSync(folder)
  .toSorted()
  .flatMap((seed) =>
    readdirSync(new URL(`${seed}/`, folder))
      .toSorted()
      .map((file) => read(seed, file)),
  );

function read(seed: string, file: string): Transcript {
  const [first = "", ...rest] = readFileSync(new URL(`${seed}/${file}`, folder), "utf8")
    .trimEnd()
    .split("\n");
  const { transcript, server, revision, profile } = JSON.parse(first) as Head;
  return {
    seed,
    name: transcript,
    server,
    revision,
    options: profile === undefined ? {} : { profile },
    entries: rest.map(entry),
  };
}

function entry(source: string): Entry {
  const { message, text, ...rest } = JSON.parse(source) as Entry & { message?: unknown };
  if (message === undefined) return { ...rest, text };
  const key = '"message":';
  return { ...rest, text: source.slice(source.indexOf(key) + key.length, -1) };
}
