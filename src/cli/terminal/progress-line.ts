// Shows progress on stderr: on a terminal as one line that is redrawn in place, otherwise as plain lines, at most one
// per second. Other messages are printed above the line. The line is hidden while a dialog is open. Progress comes from
// the server, so its numbers may have any value and its messages any length.

import type { Progress } from "../../client/contexts.ts";
import { oneLine, truncate } from "./text.ts";

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressLineOptions {
  readonly quiet?: boolean;
  /** Whether the terminal cannot move the cursor. */
  readonly dumb?: boolean;
}

/** Work that takes less time is not shown. */
const SHOW_AFTER_MS = 300;
const REDRAW_MS = 100;
const PLAIN_INTERVAL_MS = 1_000;
const BAR_WIDTH = 24;
/** Narrower screens get no bar. */
const MIN_BAR_COLUMNS = 48;
const SPINNER = ["|", "/", "-", "\\"] as const;
const CLEAR = "\r\u001b[K";

export class ProgressLine {
  readonly #screen: Screen;
  readonly #isQuiet: boolean;
  readonly #inPlace: boolean;
  /** Messages that arrived while paused. */
  readonly #waiting: string[] = [];
  #pauses = 0;
  #isDrawn = false;
  #frame = 0;
  #busy: { text: string; since: number } | undefined;
  #progress: Progress | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastPlain = -Infinity;

  constructor(screen: Screen, { quiet = false, dumb = false }: ProgressLineOptions = {}) {
    this.#screen = screen;
    this.#isQuiet = quiet;
    this.#inPlace = screen.isTTY === true && !dumb;
  }

  /** Shows a spinner with this text if stderr is a terminal, after `SHOW_AFTER_MS`. */
  busy(text: string): void {
    this.#busy = { text, since: performance.now() };
    this.#progress = undefined;
    this.#startTimer();
  }

  progress(progress: Progress): void {
    if (!Number.isFinite(progress.progress)) return;
    const isFirst = this.#progress === undefined;
    this.#progress = progress;
    if (isFirst || !this.#inPlace) this.#draw();
    this.#startTimer();
  }

  /** Prints a message on a line of its own. */
  note(text: string): void {
    if (this.#pauses > 0) {
      this.#waiting.push(text);
      return;
    }
    this.#clear();
    this.#screen.write(`${text}\n`);
    if (this.#inPlace) this.#draw();
  }

  /** Hides the line and holds back messages until the returned function is called. */
  pause(): () => void {
    this.#clear();
    this.#pauses += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#pauses -= 1;
      if (this.#pauses === 0) for (const text of this.#waiting.splice(0)) this.note(text);
    };
  }

  /** Removes the line. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#busy = undefined;
    this.#progress = undefined;
    this.#clear();
  }

  #startTimer(): void {
    if (this.#isQuiet) return;
    this.#timer ??= setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  #clear(): void {
    if (this.#isDrawn) this.#screen.write(CLEAR);
    this.#isDrawn = false;
  }

  #draw(): void {
    if (this.#isQuiet || this.#pauses > 0) return;
    if (!this.#inPlace) {
      this.#printPlain();
      return;
    }
    // A terminal that does not know its width reports 0.
    const columns = this.#screen.columns || 80;
    const line = this.#text(columns);
    if (line === undefined) return;
    // The last column stays free: a character there makes some terminals wrap.
    this.#screen.write(`${CLEAR}${truncate(columns - 1, line)}`);
    this.#isDrawn = true;
    this.#frame += 1;
  }

  #text(columns: number): string | undefined {
    const spinner = SPINNER[this.#frame % SPINNER.length];
    if (this.#progress !== undefined) {
      return progressText(this.#progress, (ratio) =>
        ratio === undefined || columns < MIN_BAR_COLUMNS ? `${spinner} ` : bar(ratio),
      );
    }
    const { text, since } = this.#busy ?? { text: "", since: Infinity };
    const elapsed = performance.now() - since;
    if (elapsed < SHOW_AFTER_MS) return undefined;
    return `${spinner} ${oneLine(text)}${elapsed < 2_000 ? "" : ` ${Math.floor(elapsed / 1_000)} s`}`;
  }

  #printPlain(): void {
    const progress = this.#progress;
    const now = performance.now();
    if (progress === undefined || now - this.#lastPlain < PLAIN_INTERVAL_MS) return;
    this.#lastPlain = now;
    // Each update is printed only once.
    this.#progress = undefined;
    this.#screen.write(`progress: ${progressText(progress, () => "")}\n`);
  }
}

function progressText({ progress, total, message }: Progress, indicator: (ratio?: number) => string): string {
  const hasTotal = typeof total === "number" && Number.isFinite(total) && total > 0;
  const ratio = hasTotal ? Math.min(Math.max(progress / total, 0), 1) : undefined;
  const count = hasTotal ? `${rounded(progress)}/${rounded(total)}` : rounded(progress);
  const percent = ratio === undefined ? "" : `${Math.floor(ratio * 100)}% `;
  const note = typeof message === "string" && message !== "" ? `  ${oneLine(message)}` : "";
  return `${indicator(ratio)}${percent}${count}${note}`;
}

function bar(ratio: number): string {
  const done = Math.round(ratio * BAR_WIDTH);
  return `[${"#".repeat(done)}${"-".repeat(BAR_WIDTH - done)}] `;
}

function rounded(value: number): string {
  return String(Math.round(value * 100) / 100);
}
