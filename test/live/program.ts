// `catenary serve CONFIG` on its stdio, spoken to line by line, exactly as a client's pipe carries it. It is the
// program as it is built; what is left of it when it has ended can be counted by its mark.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Run } from "../cli/stage.ts";

/** No machine takes so long for one line. */
const PATIENCE_MS = 20_000;

export class Program {
  readonly run: Run;
  readonly #folder: string;
  #read = 0;

  constructor(servers: object) {
    this.#folder = mkdtempSync(join(tmpdir(), "catenary-live-"));
    const file = join(this.#folder, "catenary.json");
    writeFileSync(file, JSON.stringify({ mcpServers: servers }));
    this.run = new Run(["serve", file]);
  }

  send(line: string): void {
    this.run.process.stdin.write(`${line}\n`);
  }

  /** The next line that comes back. */
  async next(): Promise<string> {
    const { run } = this;
    const late = AbortSignal.timeout(PATIENCE_MS);
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
          reject(new Error(`No line came: ${run.err}`));
        };
        run.process.stdout.once("data", wake).once("end", over);
        late.addEventListener("abort", over);
      });
    }
  }

  /** Ends its input; with what code it ended, and what it said that nobody has read. */
  async end(): Promise<{ readonly code: number | null; readonly unread: string }> {
    this.run.process.stdin.end();
    const code = await this.run.exited;
    return { code, unread: this.run.out.slice(this.#read) };
  }

  /** Whatever has happened. */
  async kill(): Promise<void> {
    this.run.process.kill("SIGKILL");
    await this.run.exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
