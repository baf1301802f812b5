// `inputs`, as VS Code has them: what a config asks for when it is used, instead of holding it. Who is asked is the
// caller's affair; by default nobody is, and the environment answers. Only what is used is asked for, and once.

import type { Problems } from "./problems.ts";
import { listOf, meant, readFields, warnOfStray, wrongKind, type Fields } from "./readers.ts";
import type { Spot } from "./cursor.ts";
import type { InputAnswers } from "./variables.ts";

export interface Input {
  readonly id: string;
  /** A text, or one of `options`; `command` is what an editor finds out by itself, and is asked for here. */
  readonly type: "promptString" | "pickString" | "command";
  readonly description?: string;
  readonly default?: string;
  /** Whether what is typed must not be seen. */
  readonly password?: boolean;
  /** What `pickString` offers. */
  readonly options?: readonly string[];
}

/** Where an input may be given beforehand: `CATENARY_INPUT_` and the id in capitals, with _ for all but letters and digits. */
export function inputVariable(id: string): string {
  return `CATENARY_INPUT_${id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}`;
}

const INPUT = {
  id: (spot) => plainText(spot),
  type: (spot) => plainText(spot),
  description: (spot) => plainText(spot),
  default: (spot) => plainText(spot),
  password: ({ value }) => value.kind === "boolean" && value.plain === true,
  options: listOf((item) => plainText(item.named("value") ?? item), "a list of texts"),
} as const satisfies Fields;

export const INPUT_FIELDS: Fields = INPUT;

/** Variables mean nothing here: it is what a person is shown. */
function plainText(spot: Spot): string | undefined {
  return spot.value.kind === "text" ? spot.value.text : wrongKind(spot, "a text");
}

const TYPES = ["promptString", "pickString", "command"] as const;

export function readInputs(spot: Spot | undefined): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  if (spot !== undefined && spot.value.kind !== "list") wrongKind(spot, "a list of inputs");
  for (const item of spot?.items() ?? []) {
    const input = item.value.kind === "object" ? readInput(item) : wrongKind(item, SAMPLE);
    if (input === undefined) continue;
    if (!inputs.has(input.id)) inputs.set(input.id, input);
    else
      item.named("id")?.error(` is ${JSON.stringify(input.id)}, as another input is`, "keep one of them, or rename it");
  }
  return inputs;
}

const SAMPLE = 'an object, such as {"id": "key", "type": "promptString", "password": true}';

function readInput(item: Spot): Input | undefined {
  const { id, type: given = "", ...rest } = readFields(item, INPUT, warnOfStray);
  if (item.named("id") === undefined || id === "") {
    return item.error(' has no "id"', "give it one, by which ${input:...} names it");
  }
  const type = TYPES.find((known) => known === given);
  if (type === undefined) {
    const typed = item.named("type");
    const hint = "write promptString for a text that a person types";
    if (typed === undefined) item.error(' has no "type"', hint);
    else typed.error(` must be one of ${TYPES.join(", ")}`, meant(given, TYPES) ?? hint);
  }
  if (type === "pickString" && item.named("options") === undefined) {
    item.warn(' has no "options", so any text is taken', "list what there is to pick, or write promptString");
  }
  // Also where its type is wrong: that has been told, and whoever uses it makes no mistake.
  return id === undefined ? undefined : { id, type: type ?? "promptString", ...rest };
}

/** The answers to what is used, while a config is read and read again. */
export class Answers implements InputAnswers {
  #inputs: ReadonlyMap<string, Input> = new Map();
  readonly #given = new Map<string, string>();
  /** Those that are used, each with the place where it is used first. */
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

  /** Asks for all that are used, one after the other; tells of those that nobody answers. */
  async ask(who: AskInput, problems: Problems): Promise<void> {
    for (const [input, offset] of this.used) {
      const { id, options } = input;
      const text = (await who(input)) ?? input.default;
      const name = JSON.stringify(id);
      if (text === undefined) {
        problems.error(offset, `The input ${name} was not given`, `set ${inputVariable(id)} in the environment`);
      } else if (input.type === "pickString" && options?.includes(text) === false) {
        problems.error(offset, `The input ${name} is none of its options`, `there are ${options.join(", ")}`);
      } else {
        this.#given.set(id, text);
      }
    }
  }
}

/** Answers for an input; undefined where it cannot, and the default is taken. */
export type AskInput = (input: Input) => Promise<string | undefined>;

export function inputsFrom(env: Readonly<Record<string, string | undefined>>): AskInput {
  return async ({ id }) => env[inputVariable(id)];
}
