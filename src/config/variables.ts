// What stands for something else in the texts of a config: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}` and
// the few names that editors know. What they stand for may be secret: it is put in and never told.

import { homedir } from "node:os";
import { basename, sep } from "node:path";
import { nearest } from "../core/options.ts";
import type { TextValue } from "./document.ts";
import type { Problems } from "./problems.ts";

export interface Expanded {
  readonly text: string;
  /** What of it came from elsewhere and must not be shown, each with what may be shown instead. */
  readonly hidden: readonly Hidden[];
  /** Whether an input in it has not been asked for yet, so that nothing can be said of the text. */
  readonly isOpen: boolean;
}

export interface Hidden {
  readonly value: string;
  readonly reference: string;
}

/** A sentence of somebody else's, who may have quoted what must not be shown. */
export function withoutHidden(sentence: string, hidden: readonly Hidden[]): string {
  return hidden
    .filter(({ value }) => value !== "")
    .reduce((shown, { value, reference }) => shown.replaceAll(value, () => reference), sentence);
}

export interface VariableSource {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What editors call the folder of the workspace. */
  readonly folder: string;
  readonly inputs: InputAnswers;
}

export interface InputAnswers {
  /** Those that the config declares. */
  readonly ids: Iterable<string>;
  /** Notes that it is used there; undefined where it has not been asked for yet. */
  answer(id: string, offset: number): string | undefined;
}

interface Replacement {
  readonly text: string;
  readonly isHidden: boolean;
  readonly isOpen: boolean;
}

const REFERENCE = /\$\$\{|\$\{(?:[^{}]|\$\{[^{}]*\})*\}|\$\{/g;
const VARIABLE = /^(env:)?([A-Za-z_]\w*)(?::-(.*))?$/s;

export class Variables {
  readonly #source: VariableSource;
  readonly #problems: Problems;
  /** As VS Code and Cursor know them. */
  readonly #places: ReadonlyMap<string, string>;

  constructor(source: VariableSource, problems: Problems) {
    this.#source = source;
    this.#problems = problems;
    this.#places = new Map([
      ["workspaceFolder", source.folder],
      ["workspaceFolderBasename", basename(source.folder)],
      ["userHome", homedir()],
      ["pathSeparator", sep],
      ["/", sep],
    ]);
  }

  /** Undefined where one of them stands for nothing; it has been told then. */
  expand(value: TextValue): Expanded | undefined {
    let [isOpen, isWhole] = [false, true];
    const hidden: Hidden[] = [];
    const text = value.text.replaceAll(REFERENCE, (written: string, at: number) => {
      if (written === "$${") return "${";
      const offset = value.offsetOf(at);
      const found = written.endsWith("}") ? this.#find(written.slice(2, -1), offset) : "literal";
      if (found === "literal") return this.#literal(offset, written);
      if (found === undefined) isWhole = false;
      else if (found.isOpen) isOpen = true;
      if (found?.isHidden === true) hidden.push({ value: found.text, reference: written });
      return found?.text ?? "";
    });
    return isWhole ? { text, hidden, isOpen } : undefined;
  }

  #find(inner: string, offset: number): Replacement | "literal" | undefined {
    const place = this.#places.get(inner);
    if (place !== undefined) return { text: place, isHidden: false, isOpen: false };
    const [scope, id] = /^(\w+):(?!-)(.+)$/s.exec(inner)?.slice(1) ?? [];
    if (scope === "input" && id !== undefined) return this.#input(id, offset);
    const [variable, , name, otherwise] = VARIABLE.exec(inner) ?? [];
    if (variable === undefined || name === undefined) {
      if (scope === undefined) return "literal";
      this.#problems.error(offset, `There is no \${${scope}:...} here`, `there are ${FORMS}`);
      return undefined;
    }
    if (otherwise?.includes("${") === true) {
      this.#problems.error(offset, `The default of ${name} has a variable in it`, "write a plain text after the :-");
      return undefined;
    }
    const found = this.#source.env[name];
    // As in a shell, what is empty counts as missing where there is a default.
    const text = otherwise === undefined ? found : found === undefined || found === "" ? otherwise : found;
    if (text !== undefined) return { text, isHidden: found !== undefined, isOpen: false };
    const [near] = nearest(name, this.#places.keys(), 1);
    const ways = `set it in the environment, or write \${${name}:-...} with a value to use instead`;
    this.#problems.error(
      offset,
      `The variable ${name} is not set`,
      near === undefined ? ways : `did you mean \${${near}}?`,
    );
    return undefined;
  }

  #input(id: string, offset: number): Replacement | undefined {
    const ids = [...this.#source.inputs.ids];
    if (!ids.includes(id)) {
      const [near] = nearest(id, ids);
      const hint = near === undefined ? `declare it in "inputs"` : `did you mean \${input:${near}}?`;
      this.#problems.error(offset, `There is no input ${JSON.stringify(id)}`, hint);
      return undefined;
    }
    const text = this.#source.inputs.answer(id, offset);
    return { text: text ?? "", isHidden: true, isOpen: text === undefined };
  }

  /** A program may want such a text for itself, so it goes on as it is. */
  #literal(offset: number, written: string): string {
    const hint = `if it is meant so, write $${written} and nothing is said; variables are written ${FORMS}`;
    this.#problems.warn(
      offset,
      `This ${written === "${" ? "${" : "${...}"} names no variable and is left as it is`,
      hint,
    );
    return written;
  }
}

const FORMS = "${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${workspaceFolder} and ${userHome}";
