// Reads the `inputs` of a config: the values that a person is asked for. Any string of the config may refer to them, so
// they are read before everything else, and variables are not expanded in them.

import { objectSchema } from "../core/options.ts";
import * as read from "./readers.ts";
import { INPUT, INPUT_TYPES, type Input } from "./variables.ts";

/** A string in which variables are not expanded. */
const literal: read.Reader<string> = read.reader({ type: "string" }, (cursor) =>
  cursor.kind === "string" ? String(cursor.value) : read.wrongType(cursor, "a string"),
);

/** A choice may also be an object with a label. */
const CHOICE = read.schemasOf({
  label: literal.describe("The label that is shown."),
  value: literal.describe("The value of the choice."),
});

const choices = read
  .arrayOf(
    read.reader({ anyOf: [literal.schema, { type: "object", required: ["value"], properties: CHOICE }] }, (item) =>
      literal(item.get("value") ?? item),
    ),
    "an array of strings",
  )
  .describe(INPUT.options.description);

const READERS = {
  id: literal,
  type: literal,
  description: literal,
  default: literal,
  password: read.reader(read.flag.schema, ({ value }) => value === true),
  options: choices,
} as const satisfies Record<keyof Input, read.Reader<unknown>>;

const { properties, additionalProperties: _, ...inputSchema } = objectSchema(INPUT);

/** The JSON Schema of an input. Clients have further keys. */
export const INPUT_SCHEMA: read.Schema = {
  ...inputSchema,
  properties: { ...(properties as object), options: choices.schema },
};

const INPUT_EXAMPLE = 'an object, such as {"id": "key", "type": "promptString", "password": true}';

export function readInputs(cursor: read.Cursor | undefined): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  if (cursor !== undefined && cursor.kind !== "array") read.wrongType(cursor, "an array of inputs");
  for (const item of cursor?.items() ?? []) {
    const input = item.kind === "object" ? readInput(item) : read.wrongType(item, INPUT_EXAMPLE);
    if (input === undefined) continue;
    if (inputs.has(input.id)) {
      item.get("id")?.error(`another input has the id ${JSON.stringify(input.id)}`, "rename or remove one of them");
    } else inputs.set(input.id, input);
  }
  return inputs;
}

function readInput(item: read.Cursor): Input | undefined {
  const { id, type: written = "", ...rest } = read.readFields(item, READERS, read.warnIfMisspelt);
  if (item.get("id") === undefined || id === "") {
    return item.error('"id" is missing', "${input:...} refers to the input by its id");
  }
  const type = INPUT_TYPES.find((known) => known === written);
  if (type === undefined) {
    const typeCursor = item.get("type");
    const hint = "write promptString for a string that a person types";
    if (typeCursor === undefined) item.error('"type" is missing', hint);
    else typeCursor.error(`expected one of ${INPUT_TYPES.join(", ")}`, read.suggest(written, INPUT_TYPES) ?? hint);
  }
  if (type === "pickString" && item.get("options") === undefined) {
    item.warn('"options" is missing, so any string is accepted', "list the choices, or write promptString");
  }
  // The input is kept even if its type is wrong, so that references to it are not reported as errors too.
  return id === undefined ? undefined : { id, type: type ?? "promptString", ...rest };
}
