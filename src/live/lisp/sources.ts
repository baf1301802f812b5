// The Lisp sources of the guest: where they are, in which order SBCL loads them, and a digest of all that they say, by
// which what was compiled from them is known. They ship with the package as they are. Nothing here starts SBCL.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The same folder, whether this file runs from src or from dist. */
const FOLDER = fileURLToPath(new URL("../../../src/live/lisp/", import.meta.url));

/** Each needs those before it. The tools come after, by their names; what they share is in tools.lisp. */
const GUEST = [
  "package",
  "json",
  "wire",
  "request",
  "streams",
  "place",
  "frames",
  "guard",
  "heap",
  "evaluate",
  "tools",
  "job",
  "desk",
  "main",
  "warm",
].map((name) => `guest-${name}.lisp`);

export interface LispSources {
  /** What SBCL is given to load; it is told of the others. */
  readonly start: string;
  readonly files: readonly string[];
  readonly digest: string;
}

let found: Promise<LispSources> | undefined;

/** Read once: a process that runs does not see them change. */
export function lispSources(): Promise<LispSources> {
  found ??= look();
  return found;
}

async function look(): Promise<LispSources> {
  const tools = (await readdir(FOLDER)).filter((name) => /^tools-.*\.lisp$/.test(name)).toSorted();
  const names = [...GUEST, "tools.lisp", ...tools];
  const texts = await Promise.all(["start.lisp", ...names].map((name) => readFile(join(FOLDER, name))));
  const digest = createHash("sha256");
  for (const text of texts) digest.update(`${text.length}\n`).update(text);
  return {
    start: join(FOLDER, "start.lisp"),
    files: names.map((name) => join(FOLDER, name)),
    digest: digest.digest("hex"),
  };
}
