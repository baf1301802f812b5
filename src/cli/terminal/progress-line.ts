// One line on stderr that says how far it is: redrawn in place on a terminal, and written as plain lines, at most one a
// second, elsewhere. What else is said meanwhile goes above it, and while the person is asked something nothing moves.
// What an end says of its progress is its own affair: numbers that are none, and texts of any length, do no harm here.

import type { Progress } from "../../client/contexts.ts";
import { oneLine } from "./harmless.ts";
import { cutTo } from "./text-width.ts";

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressLineOptions {
  readonly quiet?: boolean;
  /** A terminal on which the cursor cannot be moved. */
  readonly dumb?: boolean;
}

/** What takes less is not worth a word. */
const PATIENCE_MS = 300;
const REDRAW_MS = 100;
const PLAIN_MS = 1_000;
const BAR = 24;
/** On a narrower screen the numbers have the room to themselves. */
const ROOM_FOR_BAR = 48;
const FRAMES = ["|", "/", "-", "\\"] as const;
const CLEAR = "\r\u001b[K";

export class ProgressLine {
  readonly #screen: Screen;
  readonly #quiet: boolean;
  readonly #inPlace: boolean;
  readonly #waiting: string[] = [];
  #held = 0;
  #drawn = false;
  #frame = 0;
  #busy: { text: string; since: number } | undefined;
  #progress: Progress | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastPlain = -Infinity;

  constructor(screen: Screen, { quiet = false, dumb = false }: ProgressLineOptions = {}) {
    this.#screen = screen;
    this.#quiet = quiet;
    this.#inPlace = screen.isTTY === true && !dumb;
  }

  /** Something is under way; shown on a terminal, and only where it takes a while. */
  busy(text: string): void {
    this.#busy = { text, since: performance.now() };
    this.#progress = undefined;
    this.#wake();
  }

  progress(progress: Progress): void {
    if (!Number.isFinite(progress.progress)) return;
    const isFirst = this.#progress === undefined;
    this.#progress = progress;
    if (isFirst && this.#inPlace && !this.#quiet) this.#draw();
    this.#wake();
    if (!this.#inPlace) this.#sayPlainly();
  }

  /** A line of its own. */
  note(text: string): void {
    if (this.#held > 0) {
      this.#waiting.push(text);
      return;
    }
    this.#clear();
    this.#screen.write(`${text}\n`);
    this.#draw();
  }

  /** Leaves the screen to somebody else, until what is returned is called. */
  hold(): () => void {
    this.#clear();
    this.#held += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#held -= 1;
      if (this.#held === 0) for (const text of this.#waiting.splice(0)) this.note(text);
    };
  }

  /** Nothing is under way any more. */
  idle(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#busy = undefined;
    this.#progress = undefined;
    this.#clear();
  }

  #wake(): void {
    if (this.#quiet || this.#timer !== undefined) return;
    const tick = this.#inPlace ? (): void => this.#draw() : (): void => this.#sayPlainly();
    this.#timer = setInterval(tick, REDRAW_MS);
    this.#timer.unref();
  }

  #clear(): void {
    if (this.#drawn) this.#screen.write(CLEAR);
    this.#drawn = false;
  }

  #draw(): void {
    if (this.#quiet || !this.#inPlace || this.#held > 0) return;
    const line = this.#text();
    if (line === undefined) return;
    // The last column is left free: a letter there makes some terminals begin a new line.
    this.#screen.write(`${CLEAR}${cutTo(this.#columns - 1, line)}`);
    this.#drawn = true;
    this.#frame += 1;
  }

  /** A terminal that does not know its width says 0. */
  get #columns(): number {
    const { columns = 0 } = this.#screen;
    return columns > 0 ? columns : 80;
  }

  #text(): string | undefined {
    const frame = FRAMES[this.#frame % FRAMES.length];
    if (this.#progress !== undefined) {
      return progressText(this.#progress, (ratio) =>
        ratio === undefined || this.#columns < ROOM_FOR_BAR ? `${frame} ` : bar(ratio),
      );
    }
    if (this.#busy === undefined) return undefined;
    const { text, since } = this.#busy;
    const elapsed = performance.now() - since;
    if (elapsed < PATIENCE_MS) return undefined;
    return `${frame} ${oneLine(text)}${elapsed < 2_000 ? "" : ` ${Math.floor(elapsed / 1_000)} s`}`;
  }

  #sayPlainly(): void {
    const progress = this.#progress;
    const now = performance.now();
    if (this.#quiet || this.#held > 0 || progress === undefined || now - this.#lastPlain < PLAIN_MS) return;
    this.#lastPlain = now;
    // Said once: it stays the latest until the next one comes.
    this.#progress = undefined;
    this.#screen.write(`progress: ${progressText(progress, () => "")}\n`);
  }
}

function progressText({ progress, total, message }: Progress, drawing: (ratio?: number) => string): string {
  const hasTotal = typeof total === "number" && Number.isFinite(total) && total > 0;
  const ratio = hasTotal ? Math.min(Math.max(progress / total, 0), 1) : undefined;
  const count = hasTotal ? `${short(progress)}/${short(total)}` : short(progress);
  const percent = ratio === undefined ? "" : `${Math.floor(ratio * 100)}% `;
  const said = typeof message === "string" && message !== "" ? `  ${oneLine(message)}` : "";
  return `${drawing(ratio)}${percent}${count}${said}`;
}

function bar(ratio: number): string {
  const done = Math.round(ratio * BAR);
  return `[${"#".repeat(done)}${"-".repeat(BAR - done)}] `;
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}
