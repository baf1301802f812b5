// The built program as `catenary serve CONFIG`, driven line by line over stdio. Its processes carry a mark by which
// leftover ones can be found.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CliProcess } from "../cli/cli-process.ts";
import { WAIT_MS } from "../../support/waiting.ts";

export class ServeProcess {
  readonly run: CliProcess;
  readonly #folder: string;
  #read = 0;

  constructor(servers: object) {
    this.#folder = mkdtempSync(join(tmpdir(), "catenary-live-"));
    const file = join(this.#folder, "catenary.json");
    writeFileSync(file, JSON.stringify({ mcpServers: servers }));
    this.run = new CliProcess(["serve", file]);
  }

  send(line: string): void {
    this.run.process.stdin.write(`${line}\n`);
  }

  /** The next line of its output. */
  async next(): Promise<string> {
    const { run } = this;
    const late = AbortSignal.timeout(WAIT_MS);
    for (;;) {
      const end = run.out.indexOf("\n", this.#read);
      if (end >= 0) {
        const line = run.out.slice(this.#read, end);
        this.#read = end + 1;
        return line;
      }
      await new Promise<void>((resolve, reject) => {
        const wake = (): void => {
          run.process.stdout.off("data", wake).off("end", over);
          late.removeEventListener("abort", over);
          resolve();
        };
        const over = (): void => {
          wake();
          reject(new Error(`No line of output: ${run.err}`));
        };
        run.process.stdout.once("data", wake).once("end", over);
        late.addEventListener("abort", over);
      });
    }
  }

  /** Ends its input; returns the exit code and the output that was not read. */
  async end(): Promise<{ readonly code: number | null; readonly unread: string }> {
    this.run.process.stdin.end();
    const code = await this.run.exited;
    return { code, unread: this.run.out.slice(this.#read) };
  }

  async kill(): Promise<void> {
    this.run.process.kill("SIGKILL");
    await this.run.exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
