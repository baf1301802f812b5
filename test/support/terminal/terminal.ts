// A program in a real terminal (a pty, by Python's own module), and what a person would see there: the text of the
// screen after all that moves the cursor, and the very bytes where those matter. Keys are typed as bytes.

import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

const RELAY = fileURLToPath(new URL("relay.py", import.meta.url));

/** Where there is no Python, a test that needs a terminal says by name that it was left out. */
export const HAS_TERMINAL: boolean = spawnSync("python3", ["-c", "import pty"]).status === 0;

export const CTRL_C = "\u0003";
export const CTRL_D = "\u0004";
export const ENTER = "\r";

/** As in a person's terminal, wherever the tests run: Node takes the colours away where it finds a build server's CI. */
const PERSONAL = { TERM: "xterm-256color", NO_COLOR: undefined, FORCE_COLOR: undefined, CI: undefined };

export class Terminal {
  readonly exited: Promise<number | null>;
  /** All that was written, as it came. */
  bytes = "";
  readonly #process: ChildProcessWithoutNullStreams;

  constructor(command: readonly string[], options: { columns?: number; env?: NodeJS.ProcessEnv; cwd?: string } = {}) {
    const { columns = 80, cwd } = options;
    this.#process = spawn("python3", [RELAY, String(columns), "24", ...command], {
      env: { ...process.env, ...PERSONAL, ...options.env },
      ...(cwd === undefined ? undefined : { cwd }),
    });
    this.#process.stdout.setEncoding("utf8").on("data", (text: string) => (this.bytes += text));
    this.exited = new Promise((resolve) => this.#process.once("close", resolve));
  }

  type(keys: string): void {
    this.#process.stdin.write(keys);
  }

  /** The lines of the screen, without the spaces at their ends, and without empty lines at its own. */
  get screen(): string {
    return screenOf(this.bytes);
  }

  /** Waits until the screen shows it. */
  async shows(text: string | RegExp): Promise<void> {
    const matches = (): boolean => (typeof text === "string" ? this.screen.includes(text) : text.test(this.screen));
    await expect.poll(() => (matches() ? "shown" : this.screen), { timeout: 20_000, interval: 20 }).toBe("shown");
  }

  /** Waits until it has been shown at any time, even if it is gone again. */
  async showed(text: string): Promise<void> {
    await expect
      .poll(() => (this.bytes.includes(text) ? "shown" : this.bytes), { timeout: 20_000, interval: 20 })
      .toBe("shown");
  }

  /** Ends it, whatever it does. */
  async close(): Promise<void> {
    this.#process.stdin.end();
    const late = setTimeout(() => this.#process.kill("SIGKILL"), 10_000);
    await this.exited;
    clearTimeout(late);
  }
}

/** What moves the cursor or clears, as far as our programs and readline use it; colours leave no trace. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /\u001b\[([0-9;?]*)([A-Za-z])/y;

/** A screen of endless height and width. A sequence that it does not know is an error: nothing unknown may come. */
function screenOf(bytes: string): string {
  const lines: string[][] = [[]];
  let row = 0;
  let column = 0;
  const line = (): string[] => (lines[row] ??= []);
  for (let at = 0; at < bytes.length; at += 1) {
    const letter = bytes[at] ?? "";
    if (letter === "\r") column = 0;
    else if (letter === "\n") row += 1;
    else if (letter === "\b") column = Math.max(0, column - 1);
    else if (letter === "\u0007") continue;
    else if (letter === "\u001b") {
      CONTROL.lastIndex = at;
      const [whole = "", parameters = "", verb = ""] = CONTROL.exec(bytes) ?? [];
      // The rest of it is still on its way.
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
        throw new Error(`The screen got ${JSON.stringify(bytes.slice(at, at + 12))}`);
      at += whole.length - 1;
    } else {
      const cells = line();
      while (cells.length < column) cells.push(" ");
      cells[column] = letter;
      column += 1;
    }
  }
  return Array.from(lines, (cells) => (cells ?? []).join("").trimEnd())
    .join("\n")
    .trimEnd();
}
