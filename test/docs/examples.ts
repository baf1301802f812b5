// The examples of the documents, put on a stage of their own: a folder in which `catenary` is our sources, so
// that they compile and run as a user's would, without anything being built first.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { codeBlocks } from "./markdown.ts";

/** A block of TypeScript. A mark behind the language says more: `run`, or the name of a file that others start. */
export interface Example {
  /** Where it stands: its page and the line on which it opens. */
  readonly name: string;
  readonly code: string;
  /** The file that it is, for examples that start it. */
  readonly file: string | undefined;
  /** What it prints, where it is to be run: the block of text that follows it. */
  readonly prints: string | undefined;
}

export function examplesOf(page: string, markdown: string): Example[] {
  const blocks = codeBlocks(markdown);
  return blocks.flatMap(({ line, language, mark, code }, index) => {
    if (language !== "ts") return [];
    const next = blocks[index + 1];
    const printed = next?.language === "text" ? next.code : "";
    return {
      name: `${page}-${line}`,
      code,
      file: mark.includes(".") ? mark : undefined,
      prints: mark === "run" ? printed : undefined,
    };
  });
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Stage {
  readonly #root: string;
  readonly #folder: string;

  constructor(root: string, examples: readonly Example[]) {
    this.#root = root;
    this.#folder = mkdtempSync(join(tmpdir(), "catenary-documents-"));
    symlinkSync(join(root, "node_modules"), join(this.#folder, "node_modules"));
    this.#write("package.json", JSON.stringify({ type: "module" }));
    const source = (path: string): string[] => [join(root, "src", path)];
    const paths = {
      catenary: source("index.ts"),
      "catenary/http": source("http.ts"),
      "catenary/middleware": source("chain/middleware/index.ts"),
      "catenary/oauth": source("auth/oauth/index.ts"),
      "catenary/stdio": source("stdio.ts"),
      "catenary/testing": source("testing.ts"),
      "catenary/*": source("*/index.ts"),
    };
    const config = { extends: join(root, "tsconfig.json"), compilerOptions: { rootDir: "/", paths } };
    // Not named by a relative path: the folder is a link on some systems.
    this.#write("tsconfig.json", JSON.stringify({ ...config, include: [join(this.#folder, "*.ts")] }));
    for (const { name, code, file } of examples) {
      this.#write(`${name}.ts`, `${code}\nexport {};\n`);
      if (file !== undefined) this.#write(file, code);
    }
  }

  /** Where a file would stand that examples speak of. */
  path(name: string): string {
    return join(this.#folder, name);
  }

  /** What the compiler has to say; empty where all is well. */
  compile(): string {
    const compiler = join(this.#root, "node_modules/typescript/bin/tsc");
    const { stdout, stderr } = spawnSync(process.execPath, [compiler, "-p", this.#folder], { encoding: "utf8" });
    return stdout + stderr;
  }

  /** Runs a file of the stage, or of the sources where the path is absolute; its input ends after `input`. */
  async run(file: string, args: readonly string[] = [], input = ""): Promise<Ran> {
    const child = spawn(process.execPath, [file, ...args], {
      cwd: this.#folder,
      timeout: 25_000,
      killSignal: "SIGKILL",
      // By the environment, because programs that an example starts need the same.
      env: { ...process.env, NODE_OPTIONS: "--import=tsx", TSX_TSCONFIG_PATH: join(this.#folder, "tsconfig.json") },
    });
    const exit = new Promise<number | null>((resolve) => child.once("exit", resolve));
    child.stdin.end(input);
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
    return { code, stdout, stderr };
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(name: string, content: string): void {
    writeFileSync(join(this.#folder, name), content);
  }
}
