// Writes the tables of options in docs/middleware/ from the declarations of the options.

import type { Field, Fields, OptionSchema } from "../../src/core/options.ts";
import { writtenTable } from "./markdown.ts";

/** The page, with the table of the options written anew. */
export function withOptions(page: string, fields: Fields): string {
  return page.replace(/^\| Option [^]*?\n(?=\n|$(?![^]))/m, () => optionTable(fields));
}

function optionTable(fields: Fields): string {
  const rows = Object.entries(fields).map(([name, field]) => {
    const [, meaning = "", usual = ""] = /^([^]*?)(?: Default: ([^]*)\.)?$/.exec(field.description) ?? [];
    const type = name.endsWith("Ms") ? "milliseconds" : typeOf(field);
    return [`\`${name}\``, type, defaultOf(field, usual), meaning];
  });
  const hasDefaults = rows.some(([, , usual]) => usual !== "");
  const columns = (cells: string[]): string[] => cells.filter((_, column) => column !== 2 || hasDefaults);
  return writtenTable(columns(["Option", "Type", "Default", "Meaning"]), rows.map(columns));
}

function defaultOf({ default: value, required }: Field, written: string): string {
  if (required !== undefined) return "required";
  // Numbers as the description writes them, such as 64 MiB.
  return value === undefined || typeof value === "number" ? written : code(value);
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value).replaceAll(",", ", ")}\``;
}

function typeOf({ schema, forms }: Field): string {
  if (schema === undefined) return "only in code";
  return forms === undefined ? valueType(schema) : forms.map(typeOf).join(" or ");
}

function valueType(schema: OptionSchema): string {
  const {
    type = "any",
    enum: choices,
    items,
    properties,
    additionalProperties: values,
  } = schema as {
    readonly type?: string;
    readonly enum?: readonly unknown[];
    readonly items?: OptionSchema;
    readonly properties?: object;
    readonly additionalProperties?: OptionSchema | false;
  };
  if (properties !== undefined) return `\`{ ${Object.keys(properties).join(", ")} }\``;
  if (choices?.includes("tools/call") === true) return "method names";
  if (choices !== undefined)
    return choices
      .map(code)
      .join(", ")
      .replace(/, (?=[^,]*$)/, " or ");
  if (type === "array" && items !== undefined) return `array of ${plural(valueType(items))}`;
  if (type === "object" && values) return `object of ${plural(valueType(values))}`;
  return type === "integer" ? "number" : type;
}

function plural(type: string): string {
  return type.startsWith("`") || type.endsWith("s") ? type : `${type}s`;
}
