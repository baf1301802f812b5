// Reads what a person types at a prompt: several lines while the input is unfinished, with history, a search in it and
// completion. An input of several lines is one entry of the history, which is kept in a file for the next time. If stdin
// is not a terminal, the same without prompts and history.

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clearScreenDown, createInterface, cursorTo, moveCursor, type Interface } from "node:readline";
import { onAbort, within } from "../../core/async.ts";
import { stateDirectory } from "../../core/private-files.ts";
import { addHistorySearch, type LineEditor } from "./history-search.ts";
import { isTerminal, sanitizeFor } from "./output.ts";
import { TypedLines } from "./typed-lines.ts";

export interface LineReaderOptions {
  /** Names the file of the history. */
  readonly historyName: string;
  readonly needsMore: (input: string) => boolean;
  /** What can stand at the end of the input; each value is a whole name. */
  readonly complete: (input: string) => Promise<readonly string[]>;
  /** Called at Ctrl-C. False means that nothing was running, so the input is dropped instead. */
  readonly onInterrupt: () => boolean;
  /** Ends the input. */
  readonly signal?: AbortSignal | undefined;
}

const MAX_HISTORY = 1_000;
const CONTINUATION = "... ";
/** Whether an input is finished is found out by reading all of it, so a longer one, which was pasted, is read less often. */
const LONG_INPUT = 10_000;
/** How long to wait for more of it, and by which factor it grows until it is read even if there is more. */
const PASTE_PAUSE_MS = 100;
const GROWTH = 1.5;
/** The longest name that is completed. */
const MAX_NAME = 200;

export class LineReader {
  readonly isInteractive: boolean = isTerminal(process.stdin) && isTerminal(process.stdout);
  readonly #options: LineReaderOptions;
  readonly #input: Interface;
  readonly #typed: TypedLines;
  readonly #forget: () => void;
  #prompt = "";
  /** The lines of an unfinished input. */
  #begun = "";
  /** Whether a prompt is shown. */
  #isPrompting = false;
  #historyFile: string | undefined;
  /** The entries before the current input, the newest first. */
  #history: readonly string[] = [];

  constructor(options: LineReaderOptions) {
    this.#options = options;
    this.#input = createInterface({
      input: process.stdin,
      ...(this.isInteractive && { output: process.stdout, terminal: true }),
      history: this.isInteractive ? this.#loadHistory() : [],
      historySize: MAX_HISTORY,
      removeHistoryDuplicates: true,
      completer: (line: string, done: (error: Error | null, result: [string[], string]) => void) => {
        this.#complete(line).then(
          (result) => done(null, result),
          () => done(null, [[], line]),
        );
      },
    });
    this.#typed = new TypedLines(this.#input);
    if (this.isInteractive) addHistorySearch(this.#editor);
    this.#input.on("SIGINT", () => this.#interrupt());
    this.#forget = onAbort(options.signal, () => this.#typed.end());
  }

  /** The state of the line editor, which its type does not have. */
  get #editor(): LineEditor {
    return this.#input as unknown as LineEditor;
  }

  /** The next finished input; undefined at the end. */
  async read(prompt: string): Promise<string | undefined> {
    this.#prompt = prompt;
    this.#begun = "";
    // Lines that were typed ahead are in it already.
    if (this.isInteractive && this.#typed.isEmpty) this.#history = [...this.#editor.history];
    const input = await this.#read(prompt);
    if (input !== undefined) this.#remember(input);
    return input;
  }

  async #read(prompt: string): Promise<string | undefined> {
    let nextCheck = LONG_INPUT;
    for (;;) {
      const line = await this.#line(this.#begun === "" ? prompt : CONTINUATION);
      if (line === undefined) return this.#begun === "" ? undefined : this.#begun;
      const input = this.#begun === "" ? line : `${this.#begun}\n${line}`;
      if (this.#begun.length > LONG_INPUT && input.length < nextCheck && (await this.#isPasting())) {
        this.#begun = input;
        continue;
      }
      nextCheck = Math.max(LONG_INPUT, input.length * GROWTH);
      // An empty line ends an input that can never be finished.
      if ((line === "" && this.#begun !== "" && this.isInteractive) || !this.#options.needsMore(input)) {
        this.#begun = "";
        return input;
      }
      this.#begun = input;
    }
  }

  /** Prints text above the prompt, and keeps what is being typed. */
  printAbove(text: string): void {
    const sanitized = sanitizeFor(process.stdout, text);
    if (!this.#isPrompting) {
      process.stdout.write(sanitized);
      return;
    }
    const editor = this.#editor;
    moveCursor(process.stdout, 0, -this.#input.getCursorPos().rows);
    cursorTo(process.stdout, 0);
    clearScreenDown(process.stdout);
    process.stdout.write(sanitized.endsWith("\n") ? sanitized : `${sanitized}\n`);
    editor.prevRows = 0;
    editor._refreshLine();
  }

  close(): void {
    this.#forget();
    this.#input.close();
  }

  /** Whether there is another line, or comes at once. */
  async #isPasting(): Promise<boolean> {
    await within(PASTE_PAUSE_MS, this.#typed.wait());
    return !this.#typed.isEmpty;
  }

  async #line(prompt: string): Promise<string | undefined> {
    this.#isPrompting = this.isInteractive && this.#typed.mustWait;
    if (this.#isPrompting) {
      this.#input.setPrompt(prompt);
      // Keeps what was typed ahead in order: without the argument, the next key would be put before it.
      this.#input.prompt(true);
    }
    const line = await this.#typed.next();
    this.#isPrompting = false;
    if (line === undefined && this.isInteractive) process.stdout.write("\n");
    return line;
  }

  #interrupt(): void {
    if (this.#options.onInterrupt()) return;
    const editor = this.#editor;
    const isEmpty = this.#begun === "" && editor.line === "";
    // Goes to the last row of what was typed, and drops it.
    editor.cursor = editor.line.length;
    editor._refreshLine();
    process.stdout.write(isEmpty ? "\n(Ctrl-D or :quit leaves)\n" : "\n");
    this.#begun = "";
    editor.line = "";
    editor.cursor = 0;
    editor.prevRows = 0;
    this.#input.setPrompt(this.#prompt);
    this.#input.prompt();
  }

  /** Returns the completions, and the end of the line that they replace. */
  async #complete(line: string): Promise<[string[], string]> {
    const values = await this.#options.complete(this.#begun === "" ? line : `${this.#begun}\n${line}`);
    return [[...values], replacedEnd(line, values)];
  }

  #loadHistory(): string[] {
    try {
      const folder = stateDirectory();
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const file = join(folder, `history-${this.#options.historyName}`);
      this.#historyFile = file;
      const lines = readFileSync(file, { encoding: "utf8", flag: "a+" })
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.replaceAll(LINE_MARK, "\n"));
      if (lines.length > 2 * MAX_HISTORY)
        writeFileSync(file, lines.slice(-MAX_HISTORY).map(historyLine).join(""), { mode: 0o600 });
      return lines.slice(-MAX_HISTORY).toReversed();
    } catch {
      // A history that cannot be kept is no reason to refuse the prompt.
      return [];
    }
  }

  #remember(input: string): void {
    if (!this.isInteractive || input.trim() === "") return;
    // The line editor has put each line into it.
    const { history } = this.#editor;
    if (input.includes("\n"))
      history.splice(0, history.length, input, ...this.#history.filter((entry) => entry !== input));
    if (this.#historyFile === undefined) return;
    try {
      appendFileSync(this.#historyFile, historyLine(input), { mode: 0o600 });
    } catch {
      this.#historyFile = undefined;
    }
  }
}

/** Stands in the file for the ends of lines within an entry. It cannot be typed. */
const LINE_MARK = "\r";

function historyLine(input: string): string {
  return `${input.replaceAll("\n", LINE_MARK)}\n`;
}

/** The longest end of the line with which all values begin. */
function replacedEnd(line: string, values: readonly string[]): string {
  for (let from = Math.max(0, line.length - MAX_NAME); from < line.length; from += 1) {
    const end = line.slice(from).toLowerCase();
    if (values.length > 0 && values.every((value) => value.toLowerCase().startsWith(end))) return line.slice(from);
  }
  return "";
}
