// `inputs`, as in VS Code: values that are asked for when a config is used, so that the file does not contain them. A
// callback returns the values; the default callback reads environment variables. Only inputs that the config refers to
// are asked for, each once.

import { type Cursor, arrayOf, readFields, suggest, warnIfMisspelt, wrongType, type Fields } from "./readers.ts";
import type { Problems } from "./document.ts";
import type { InputAnswers } from "./variables.ts";

export interface Input {
  readonly id: string;
  /**
   * `promptString`: any string. `pickString`: one of `options`. `command`: an editor would run a command to get the
   * value, but here the value is asked for like a string.
   */
  readonly type: "promptString" | "pickString" | "command";
  readonly description?: string;
  readonly default?: string;
  /** Do not echo what is typed. */
  readonly password?: boolean;
  /** The choices of `pickString`. */
  readonly options?: readonly string[];
}

/** Answers an input. If it returns undefined, the default of the input is used. */
export type AskInput = (input: Input) => Promise<string | undefined>;

/**
 * The environment variable that answers an input: `CATENARY_INPUT_` and the id in capitals. One _ replaces each run of
 * characters other than A-Z and 0-9.
 */
export function inputVariable(id: string): string {
  return `CATENARY_INPUT_${id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}`;
}

export function inputsFromEnv(env: Readonly<Record<string, string | undefined>>): AskInput {
  return async ({ id }) => env[inputVariable(id)];
}

const INPUT = {
  id: (cursor) => literalString(cursor),
  type: (cursor) => literalString(cursor),
  description: (cursor) => literalString(cursor),
  default: (cursor) => literalString(cursor),
  password: ({ value }) => value.kind === "boolean" && value.scalar === true,
  options: arrayOf((item) => literalString(item.get("value") ?? item), "an array of strings"),
} as const satisfies Fields;

export const INPUT_FIELDS: Fields = INPUT;

/** A string in which variables are not expanded. */
function literalString(cursor: Cursor): string | undefined {
  return cursor.value.kind === "string" ? cursor.value.text : wrongType(cursor, "a string");
}

const TYPES = ["promptString", "pickString", "command"] as const;
const EXAMPLE = 'an object, such as {"id": "key", "type": "promptString", "password": true}';

export function readInputs(cursor: Cursor | undefined): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  if (cursor !== undefined && cursor.value.kind !== "array") wrongType(cursor, "an array of inputs");
  for (const item of cursor?.items() ?? []) {
    const input = item.value.kind === "object" ? readInput(item) : wrongType(item, EXAMPLE);
    if (input === undefined) continue;
    if (inputs.has(input.id)) {
      item.get("id")?.error(`another input has the id ${JSON.stringify(input.id)}`, "rename or remove one of them");
    } else inputs.set(input.id, input);
  }
  return inputs;
}

function readInput(item: Cursor): Input | undefined {
  const { id, type: given = "", ...rest } = readFields(item, INPUT, warnIfMisspelt);
  if (item.get("id") === undefined || id === "") {
    return item.error('"id" is missing', "${input:...} refers to the input by its id");
  }
  const type = TYPES.find((known) => known === given);
  if (type === undefined) {
    const typeCursor = item.get("type");
    const hint = "write promptString for a string that a person types";
    if (typeCursor === undefined) item.error('"type" is missing', hint);
    else typeCursor.error(`expected one of ${TYPES.join(", ")}`, suggest(given, TYPES) ?? hint);
  }
  if (type === "pickString" && item.get("options") === undefined) {
    item.warn('"options" is missing, so any string is accepted', "list the choices, or write promptString");
  }
  // The input is kept even if its type is wrong, so that references to it are not reported as errors too.
  return id === undefined ? undefined : { id, type: type ?? "promptString", ...rest };
}

/** Collects the inputs that a config uses, then asks for them. */
export class Answers implements InputAnswers {
  #inputs: ReadonlyMap<string, Input> = new Map();
  readonly #given = new Map<string, string>();
  /** The inputs that are used, each with the offset of its first use. */
  readonly used: Map<Input, number> = new Map();

  declare(inputs: ReadonlyMap<string, Input>): void {
    this.#inputs = inputs;
  }

  get ids(): Iterable<string> {
    return this.#inputs.keys();
  }

  answer(id: string, offset: number): string | undefined {
    const input = this.#inputs.get(id);
    if (input !== undefined && !this.used.has(input)) this.used.set(input, offset);
    return this.#given.get(id);
  }

  /** Asks for every used input, one after the other, and reports those without a valid answer. */
  async ask(askInput: AskInput, problems: Problems): Promise<void> {
    for (const [input, offset] of this.used) {
      const { id, options } = input;
      const text = (await askInput(input)) ?? input.default;
      const name = JSON.stringify(id);
      if (text === undefined) {
        problems.error(offset, `No value for the input ${name}`, `set ${inputVariable(id)} in the environment`);
      } else if (input.type === "pickString" && options?.includes(text) === false) {
        problems.error(
          offset,
          `The value of the input ${name} is not an option`,
          `the options are ${options.join(", ")}`,
        );
      } else {
        this.#given.set(id, text);
      }
    }
  }
}
