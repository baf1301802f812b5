// A documentation page as a reader would use it: its files are written into an empty folder, and its commands are typed
// into a shell there, in order. `catenary` is the built package, both as a command and as a module.
//
// In a page, ```js server.js is a file, ```console has commands ("$ ...") with their output, and ```console background
// starts a server that runs until the end of the page. "..." in an output stands for anything within a line.

import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { codeBlocks } from "./markdown.ts";
import { PROGRAM_MS } from "../support/waiting.ts";

export const ROOT: string = fileURLToPath(new URL("../../", import.meta.url));
const CLI = join(ROOT, "dist/cli/main.js");

export interface Command {
  readonly line: string;
  readonly output: string;
  readonly isBackground: boolean;
}

export function commandsOf(markdown: string): Command[] {
  return codeBlocks(markdown)
    .filter(({ language }) => language === "console")
    .flatMap(({ code, mark }) =>
      code
        .split(/^\$ /m)
        .slice(1)
        .map((part) => {
          const [line = "", ...output] = part.split("\n");
          return { line, output: output.join("\n"), isBackground: mark === "background" };
        }),
    );
}

/** Matches an output in which "..." stands for anything within a line. */
export function patternOf(output: string): RegExp {
  const escaped = output.trimEnd().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(escaped.replaceAll("\\.\\.\\.", ".*"));
}

export class PageFolder {
  readonly #folder: string = mkdtempSync(join(tmpdir(), "catenary-page-"));
  readonly #background: ChildProcess[] = [];
  readonly #port: number;

  private constructor(port: number) {
    this.#port = port;
  }

  static async create(markdown: string): Promise<PageFolder> {
    const page = new PageFolder(await freePort());
    page.#write("package.json", '{ "type": "module" }');
    page.#write("bin/catenary", `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
    chmodSync(page.path("bin/catenary"), 0o755);
    mkdirSync(page.path("home"));
    mkdirSync(page.path("node_modules"));
    symlinkSync(ROOT, page.path("node_modules/catenary"));
    for (const name of ["zod", "@modelcontextprotocol"]) {
      symlinkSync(join(ROOT, "node_modules", name), page.path(`node_modules/${name}`));
    }
    symlinkSync(join(ROOT, "examples"), page.path("examples"));
    for (const { mark, code } of codeBlocks(markdown)) if (mark.includes(".")) page.#write(mark, page.#local(code));
    return page;
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  async run({ line, output, isBackground }: Command): Promise<void> {
    const command = this.#local(line);
    if (isBackground) {
      await this.#start(command, patternOf(this.#local(output)));
      return;
    }
    const printed = await this.#output(command);
    expect(printed).toMatch(new RegExp(`^${patternOf(this.#local(output)).source}\\s*$`));
  }

  /** Starts a program that speaks on its stdin and stdout. */
  open(command: string, env: NodeJS.ProcessEnv = {}): ChildProcessWithoutNullStreams {
    const options = this.#options();
    return spawn("sh", ["-c", `exec ${command}`], { ...options, env: { ...options.env, ...env }, stdio: "pipe" });
  }

  async close(): Promise<void> {
    for (const child of this.#background) {
      if (child.exitCode !== null || child.pid === undefined) continue;
      const exited = once(child, "exit");
      process.kill(-child.pid, "SIGTERM");
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Starts a server and waits until it has printed its output. */
  async #start(command: string, pattern: RegExp): Promise<void> {
    const isOnDefaultPort = /^catenary up\b/.test(command) && !command.includes("--http");
    const line = isOnDefaultPort ? `${command} --http 127.0.0.1:${this.#port}` : command;
    // A group of its own, so that the shell and what it starts end together.
    const child = spawn("sh", ["-c", `exec 2>&1; ${line}`], { ...this.#options(), detached: true });
    this.#background.push(child);
    let printed = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => (printed += chunk));
    await expect.poll(() => printed).toMatch(pattern);
  }

  #output(command: string): Promise<string> {
    // The first Lisp session on a machine says on stderr that it takes longer.
    const redirect = command.startsWith("catenary eval lisp") ? "exec 2>/dev/null" : "exec 2>&1";
    const child = spawn("sh", ["-c", `${redirect}\n${command}`], { ...this.#options(), timeout: PROGRAM_MS });
    return text(child.stdout as NodeJS.ReadableStream);
  }

  #options(): { cwd: string; stdio: ["ignore", "pipe", "ignore"]; env: NodeJS.ProcessEnv } {
    const path = [this.path("bin"), process.env["PATH"]].join(delimiter);
    // A page may write into the home folder. npm keeps its cache.
    const cache = process.env["npm_config_cache"] ?? join(homedir(), ".npm");
    const own = { PATH: path, HOME: this.path("home"), npm_config_cache: cache };
    const env = { ...process.env, ...own, XDG_CONFIG_HOME: undefined, FORCE_COLOR: undefined, NO_COLOR: "1" };
    return { cwd: this.#folder, stdio: ["ignore", "pipe", "ignore"], env };
  }

  /** Pages use the default port; tests use a free one. */
  #local(words: string): string {
    return words.replaceAll(/\b3000\b/g, String(this.#port));
  }

  #write(name: string, content: string): void {
    const path = this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

export function readPage(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}
