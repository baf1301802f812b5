// The TypeScript examples of the documentation in a temporary folder where `catenary` resolves to our sources, so that
// they compile and run like a user's code, without a build.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { codeBlocks } from "./markdown.ts";
import { endOf } from "../support/blocking-program.ts";
import { PROGRAM_MS } from "../support/waiting.ts";

/** A block of TypeScript. The mark after the language is `run`, or the name of a file that other examples use. */
export interface Example {
  /** Its page and line. */
  readonly name: string;
  readonly code: string;
  /** The file name, if other examples import or start it. */
  readonly file: string | undefined;
  /** The expected output if the example is run: the text block that follows it. */
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

export interface ExampleOutput {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class ExampleFolder {
  readonly #root: string;
  readonly #folder: string;

  constructor(root: string, examples: readonly Example[]) {
    this.#root = root;
    this.#folder = mkdtempSync(join(tmpdir(), "catenary-examples-"));
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
    // An absolute path, since the temporary folder is a symlink on some systems.
    this.#write("tsconfig.json", JSON.stringify({ ...config, include: [join(this.#folder, "*.ts")] }));
    for (const { name, code, file } of examples) {
      this.#write(`${name}.ts`, `${code}\nexport {};\n`);
      if (file !== undefined) this.#write(file, code);
    }
  }

  /** The path of a file in the folder. */
  path(name: string): string {
    return join(this.#folder, name);
  }

  /** The output of the compiler; empty if there are no errors. */
  compile(): string {
    const compiler = join(this.#root, "node_modules/typescript/bin/tsc");
    const { stdout, stderr } = endOf(process.execPath, [compiler, "-p", this.#folder]);
    return stdout + stderr;
  }

  /** Runs a file of the folder with `input` on stdin. */
  async run(file: string, args: readonly string[] = [], input = ""): Promise<ExampleOutput> {
    const child = spawn(process.execPath, [file, ...args], {
      cwd: this.#folder,
      timeout: PROGRAM_MS,
      killSignal: "SIGKILL",
      // In the environment, so that programs started by an example get it too.
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
