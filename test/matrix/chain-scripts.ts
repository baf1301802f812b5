// The programs of this folder, made plain: without types and over the package as it is built, in a folder of their own.
// A chain of processes is started for each pair of revisions, and so each of them starts in a fifth of the time.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transform } from "sucrase";

const FILES = ["end-server", "chain-end-server", "chain-end", "chain-gateway"] as const;

export interface Program {
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
}

export class Scripts {
  readonly #folder = mkdtempSync(join(tmpdir(), "catenary-flow-"));
  #caches = 0;

  constructor() {
    writeFileSync(join(this.#folder, "package.json"), '{ "type": "module" }');
    for (const name of FILES) {
      const { code } = transform(readFileSync(new URL(`${name}.ts`, import.meta.url), "utf8"), {
        transforms: ["typescript"],
        disableESTransforms: true,
      });
      const plain = code
        .replaceAll(/"\.\.\/\.\.\/src\/([^"]+)\.ts"/g, (_, path: string) => JSON.stringify(built(path)))
        .replaceAll(/"\.\/([^"]+)\.ts"/g, '"./$1.js"');
      writeFileSync(join(this.#folder, `${name}.js`), plain);
    }
  }

  /** With a cache of its own: what ends offer is remembered there. */
  program(name: (typeof FILES)[number], ...args: readonly string[]): Program {
    this.#caches += 1;
    const env = { CATENARY_CACHE: join(this.#folder, `cache-${this.#caches}`) };
    return { command: process.execPath, args: [join(this.#folder, `${name}.js`), ...args], env };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function built(path: string): string {
  return new URL(`../../dist/${path}.js`, import.meta.url).href;
}
