// Expands the references in the strings of a config: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`,
// `${file:path}`, and the predefined variables of editors. The values may be secret, so no message ever shows them (core/secrets.ts).
// Inputs, as in VS Code, are asked for when a config is used, each once, and only those that the config refers to.

import { basename, resolve, sep } from "node:path";
import { boolean, choice, field, required, string, strings, type OptionsOf } from "../core/fields.ts";
import { homeFolder, readBoundedSync } from "../core/files.ts";
import { nearest } from "../core/options.ts";
import type { Secret } from "../core/secrets.ts";
import { errorMessage } from "../core/values.ts";
import type { Problems } from "./document.ts";

const isString = (value: unknown): value is string => typeof value === "string";

export const INPUT_TYPES = ["promptString", "pickString", "command"] as const;

export const INPUT = {
  id: required("", string("The id that ${input:id} refers to.")),
  type: required(
    "",
    choice(
      "promptString: a string. pickString: one of options. command: a value that an editor computes; here it is asked for.",
      INPUT_TYPES,
    ),
  ),
  description: field("The question that is shown.", { type: "string" }, "a string", isString),
  default: field("The value if nothing is answered.", { type: "string" }, "a string", isString),
  password: boolean("true: do not echo what is typed."),
  options: strings("The choices of pickString."),
};

/** A value that a config asks the user for. */
export type Input = OptionsOf<typeof INPUT>;

/** Answers an input. If it returns undefined, the default of the input is used. */
export type AskInput = (input: Input) => Promise<string | undefined>;

/**
 * The environment variable that answers an input: `CATENARY_INPUT_` and the id in capitals. One _ replaces each run of
 * characters other than A-Z and 0-9.
 */
export function inputVariable(id: string): string {
  return `CATENARY_INPUT_${id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}`;
}

export interface Expanded {
  readonly text: string;
  /** The values that came from variables and inputs. */
  readonly secrets: readonly Secret[];
  /** Whether a value in the string is missing: an input that has not been asked for yet, or a variable that is not set. The text can then not be checked. */
  readonly isPending: boolean;
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface Replacement {
  readonly text: string;
  readonly isSecret: boolean;
  readonly isPending?: boolean;
}

const REFERENCE = /\$\$\{|\$\{(?:[^{}]|\$\{[^{}]*\})*\}|\$\{/g;
const VARIABLE = /^(env:)?([A-Za-z_]\w*)(?::-(.*))?$/s;
const FORMS = "${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${file:path}, ${workspaceFolder} and ${userHome}";

/** Of one string. */
const MAX_LITERAL_WARNINGS = 10;
/** Of one string. */
const MAX_REFERENCES = 1_000;
/** Of a `${file:...}` or an `envFile`. No program can get a longer variable. */
const MAX_VALUE_BYTES = 1_048_576;
/** Of all strings with references, together. A string is expanded more than once. */
const MAX_EXPANDED = 33_554_432;

/** Resolves a path of a config. As no shell is used, `~` is expanded here. */
export function resolvePath(folder: string, path: string): string {
  return resolve(
    folder,
    path.replace(/^~(?=$|[/\\])/, () => homeFolder()),
  );
}

/** The text of a file with values. The message of its error is the reason alone. */
export function readValueFile(file: string): string {
  try {
    return readBoundedSync(file, MAX_VALUE_BYTES)
      .toString()
      .replace(/^\uFEFF/, "");
  } catch (cause) {
    const { code = `not a file of at most ${MAX_VALUE_BYTES} bytes` } = cause as NodeJS.ErrnoException;
    throw new Error(code, { cause });
  }
}

export class Variables {
  /** The inputs that the config declares, by id. */
  inputs: ReadonlyMap<string, Input> = new Map();
  /** The ids of the inputs that are used. */
  readonly usedInputs: Set<string> = new Set();
  readonly #answers = new Map<string, string>();
  /** Why inputs have no valid answer, by id. */
  readonly #unanswered = new Map<string, readonly [message: string, hint: string]>();
  readonly #env: Environment;
  readonly #problems: Problems;
  readonly #folder: string;
  /** The characters of all strings that were expanded. */
  #expanded = 0;
  /** The predefined variables of VS Code and Cursor. */
  readonly #predefined: ReadonlyMap<string, string>;

  /** `folder` is the value of `${workspaceFolder}`. */
  constructor(env: Environment, folder: string, problems: Problems) {
    this.#env = env;
    this.#problems = problems;
    this.#folder = folder;
    this.#predefined = new Map([
      ["workspaceFolder", folder],
      ["workspaceFolderBasename", basename(folder)],
      ["userHome", homeFolder()],
      ["pathSeparator", sep],
      ["/", sep],
    ]);
  }

  /** Expands the string that begins at `start` in the text. If a reference has no value, reports it and returns undefined. */
  expand(raw: string, start: number): Expanded | undefined {
    let [isPending, isComplete] = [false, true];
    let [literals, references] = [0, 0];
    const secrets = new Map<string, Secret>();
    const offsetOf = offsetsIn(this.#problems.text, start);
    const text = raw.replaceAll(REFERENCE, (reference: string, at: number) => {
      if (reference === "$${") return "${";
      references += 1;
      if (references > MAX_REFERENCES || this.#expanded > MAX_EXPANDED) return "";
      const offset = offsetOf(at);
      const expanded = reference.endsWith("}") ? this.#find(reference.slice(2, -1), offset) : "literal";
      if (expanded === "literal") {
        literals += 1;
        if (literals <= MAX_LITERAL_WARNINGS) this.#warnOfLiteral(offset, reference);
        return reference;
      }
      if (expanded === undefined) isComplete = false;
      else if (expanded.isPending === true) isPending = true;
      if (expanded?.isSecret === true)
        secrets.set(`${reference} ${expanded.text}`, { value: expanded.text, reference });
      this.#expanded += expanded?.text.length ?? 0;
      return expanded?.text ?? "";
    });
    if (references > MAX_REFERENCES) {
      const hint = "put them together in one variable, or in a file for ${file:path}";
      this.#problems.error(start, `${references} references in one string; the limit is ${MAX_REFERENCES}`, hint);
      return undefined;
    }
    if (this.#expanded > MAX_EXPANDED) {
      const hint = "remove references, or make their values shorter";
      this.#problems.error(start, `The variables expand to more than ${MAX_EXPANDED} characters`, hint);
      return undefined;
    }
    return isComplete ? { text, secrets: [...secrets.values()], isPending } : undefined;
  }

  /** Asks for every used input, one after the other. The next reading reports those without a valid answer. */
  async askInputs(ask: AskInput): Promise<void> {
    for (const id of this.usedInputs) {
      const input = this.inputs.get(id);
      if (input === undefined) continue;
      const { options, type } = input;
      const text = (await ask(input)) ?? input.default;
      const name = JSON.stringify(id);
      if (text === undefined) {
        this.#unanswered.set(id, [`No value for the input ${name}`, `set ${inputVariable(id)} in the environment`]);
      } else if (type === "pickString" && options?.includes(text) === false) {
        const hint = `the options are ${options.join(", ")}`;
        this.#unanswered.set(id, [`The value of the input ${name} is not an option`, hint]);
      } else this.#answers.set(id, text);
    }
  }

  #find(inner: string, offset: number): Replacement | "literal" | undefined {
    const predefined = this.#predefined.get(inner);
    if (predefined !== undefined) return { text: predefined, isSecret: false };
    const [scope, id] = /^(\w+):(?!-)(.+)$/s.exec(inner)?.slice(1) ?? [];
    if (scope === "input" && id !== undefined) return this.#input(id, offset);
    if (scope === "file" && id !== undefined) return this.#file(id, offset);
    const [variable, , name, fallback] = VARIABLE.exec(inner) ?? [];
    if (variable === undefined || name === undefined) {
      if (scope === undefined) return "literal";
      this.#problems.error(offset, `\${${scope}:...} is not supported`, `use ${FORMS}`);
      return undefined;
    }
    if (fallback?.includes("${") === true) {
      this.#problems.error(offset, `The default of ${name} contains a variable`, "write a plain string after the :-");
      return undefined;
    }
    const value = this.#env[name];
    // As in a shell, a default also replaces an empty value.
    const text = fallback === undefined ? value : value === undefined || value === "" ? fallback : value;
    if (text !== undefined) return { text, isSecret: value !== undefined };
    const [near] = nearest(name, this.#predefined.keys(), 1);
    this.#problems.missing(
      offset,
      `The variable ${name} is not set`,
      near === undefined
        ? `set it in the environment, or write \${${name}:-...} with a default value`
        : `did you mean \${${near}}?`,
    );
    return missing(inner);
  }

  /** The content of a file, as in Windsurf and opencode, without the newline at its end. */
  #file(path: string, offset: number): Replacement | undefined {
    try {
      const text = readValueFile(resolvePath(this.#folder, path)).replace(/\r?\n$/, "");
      return { text, isSecret: true };
    } catch (error) {
      const reason = errorMessage(error);
      this.#problems.missing(offset, `The file of \${file:...} cannot be read (${reason})`, `looked for ${path}`);
      return missing(`file:${path}`);
    }
  }

  #input(id: string, offset: number): Replacement | undefined {
    if (!this.inputs.has(id)) {
      const [near] = nearest(id, this.inputs.keys());
      const hint = near === undefined ? `declare it in "inputs"` : `did you mean \${input:${near}}?`;
      this.#problems.error(offset, `There is no input ${JSON.stringify(id)}`, hint);
      return undefined;
    }
    this.usedInputs.add(id);
    const [problem, hint] = this.#unanswered.get(id) ?? [];
    if (problem !== undefined) this.#problems.missing(offset, problem, hint);
    const text = this.#answers.get(id);
    return { text: text ?? "", isSecret: true, isPending: text === undefined };
  }

  /** Any other use of `${` may be meant for the upstream's program, so it is kept. */
  #warnOfLiteral(offset: number, reference: string): void {
    const opening = reference === "${" ? "${" : "${...}";
    const hint = `write $${reference} to silence this warning; the references are ${FORMS}`;
    this.#problems.warn(offset, `${opening} is not a reference to a variable and is kept as it is`, hint);
  }
}

/** A value that is missing now. The reference stays, so that the rest of the entry can be read and shown. */
function missing(inner: string): Replacement {
  return { text: `\${${inner}}`, isSecret: false, isPending: true };
}

/** Maps an index in a string to an offset in the source, where escape sequences are longer. Continues from its last index. */
function offsetsIn(text: string, start: number): (index: number) => number {
  let [passed, at] = [0, start + 1];
  return (index) => {
    for (; passed < index; passed += 1) at += text[at] !== "\\" ? 1 : text[at + 1] === "u" ? 6 : 2;
    return Math.min(at, text.length);
  };
}
