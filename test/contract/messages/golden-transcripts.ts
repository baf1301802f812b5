// Reads the golden files. Each is one transcript: all messages of one connection. The first line names the seed, the server
// and its options. Each other line is one message: `line` is its line in the seed, or `added` says why it is not in the
// seed. `message` is the last key, so that its source text can be cut out byte for byte; `text` replaces it if the input
// is not JSON. `within` marks a part of the previous answer.

import { readdirSync, readFileSync } from "node:fs";
import type { ConnectionOptions } from "./line-connection.ts";

const folder = new URL("golden/", import.meta.url);

export interface Entry {
  readonly line?: number;
  readonly added?: string;
  readonly from: "client" | "server";
  readonly within?: "result";
  /** The bytes of the line, without the newline. */
  readonly text: string;
}

export interface Transcript {
  readonly seed: string;
  readonly name: string;
  readonly server: string;
  readonly revision: string;
  readonly options: ConnectionOptions;
  readonly entries: readonly Entry[];
}

interface Head {
  readonly transcript: string;
  readonly seed: string;
  readonly server: string;
  readonly revision: string;
  readonly compat?: NonNullable<ConnectionOptions["compat"]>;
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
  const { transcript, server, revision, compat } = JSON.parse(first) as Head;
  return {
    seed,
    name: transcript,
    server,
    revision,
    options: compat === undefined ? {} : { compat },
    entries: rest.map(entry),
  };
}

function entry(source: string): Entry {
  const { message, text, ...rest } = JSON.parse(source) as Entry & { message?: unknown };
  if (message === undefined) return { ...rest, text };
  const key = '"message":';
  return { ...rest, text: source.slice(source.indexOf(key) + key.length, -1) };
}
