// Runs a program in a real terminal (a pty from Python's standard library) and shows what a user would see: the text of the
// screen after all cursor movements, and the raw bytes.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { succeeds } from "../blocking-program.ts";
import { WAIT_MS } from "../waiting.ts";

const RELAY = fileURLToPath(new URL("relay.py", import.meta.url));

/** Without Python, tests that need a terminal are skipped. */
export const HAS_TERMINAL: boolean = succeeds("python3", ["-c", "import pty"]);

export const CTRL_C = "\u0003";
export const CTRL_D = "\u0004";
export const ENTER = "\r";

/** The environment of a user's terminal. Node disables colours if CI is set. */
const USER_ENV = { TERM: "xterm-256color", NO_COLOR: undefined, FORCE_COLOR: undefined, CI: undefined };

export class Terminal {
  readonly exited: Promise<number | null>;
  /** Everything that the program wrote. */
  bytes = "";
  readonly #process: ChildProcessWithoutNullStreams;

  constructor(command: readonly string[], options: { columns?: number; env?: NodeJS.ProcessEnv; cwd?: string } = {}) {
    const { columns = 80, cwd } = options;
    this.#process = spawn("python3", [RELAY, String(columns), "24", ...command], {
      env: { ...process.env, ...USER_ENV, ...options.env },
      ...(cwd === undefined ? undefined : { cwd }),
    });
    this.#process.stdout.setEncoding("utf8").on("data", (text: string) => (this.bytes += text));
    this.exited = new Promise((resolve) => this.#process.once("close", resolve));
  }

  type(keys: string): void {
    this.#process.stdin.write(keys);
  }

  /** The lines of the screen, without trailing spaces and empty lines. */
  get screen(): string {
    return screenOf(this.bytes);
  }

  /** Waits until the screen shows the text. */
  async shows(text: string | RegExp): Promise<void> {
    const matches = (): boolean => (typeof text === "string" ? this.screen.includes(text) : text.test(this.screen));
    await expect.poll(() => (matches() ? "shown" : this.screen), { interval: 20 }).toBe("shown");
  }

  /** Waits until the text was written, even if it was erased again. */
  async showed(text: string): Promise<void> {
    await expect.poll(() => (this.bytes.includes(text) ? "shown" : this.bytes), { interval: 20 }).toBe("shown");
  }

  /** Ends the program, with SIGKILL if necessary. */
  async close(): Promise<void> {
    this.#process.stdin.end();
    const late = setTimeout(() => this.#process.kill("SIGKILL"), WAIT_MS);
    await this.exited;
    clearTimeout(late);
  }
}

/** The control sequences that our programs and readline use. Colours are ignored. */
// oxlint-disable-next-line no-control-regex -- matches control characters
const CONTROL = /\u001b\[([0-9;?]*)([A-Za-z])/y;

/** The text of an unlimited screen. An unknown control sequence is an error. */
function screenOf(bytes: string): string {
  const lines: string[][] = [[]];
  let row = 0;
  let column = 0;
  const line = (): string[] => (lines[row] ??= []);
  for (let at = 0; at < bytes.length; at += 1) {
    const character = bytes[at] ?? "";
    if (character === "\r") column = 0;
    else if (character === "\n") row += 1;
    else if (character === "\b") column = Math.max(0, column - 1);
    else if (character === "\u0007") continue;
    else if (character === "\u001b") {
      CONTROL.lastIndex = at;
      const [whole = "", parameters = "", verb = ""] = CONTROL.exec(bytes) ?? [];
      // The rest of the sequence has not arrived yet.
      if (whole === "" && bytes.length - at < 12) break;
      const count = Number(parameters === "" ? 1 : parameters.split(";")[0]);
      if (verb === "K") line().length = Math.min(line().length, column);
      else if (verb === "J") {
        line().length = Math.min(line().length, column);
        lines.length = row + 1;
      } else if (verb === "G") column = count - 1;
      else if (verb === "C") column += count;
      else if (verb === "D") column = Math.max(0, column - count);
      else if (verb === "A") row = Math.max(0, row - count);
      else if (verb === "B") row += count;
      else if (!["m", "h", "l"].includes(verb))
        throw new Error(`Unknown control sequence ${JSON.stringify(bytes.slice(at, at + 12))}`);
      at += whole.length - 1;
    } else {
      const cells = line();
      while (cells.length < column) cells.push(" ");
      cells[column] = character;
      column += 1;
    }
  }
  return Array.from(lines, (cells) => (cells ?? []).join("").trimEnd())
    .join("\n")
    .trimEnd();
}
