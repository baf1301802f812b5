// What an end has, as a person reads it: a tool, a resource or a prompt to a line or two, and one of them in full.
// Every text here is a stranger's, and is made harmless whether or not it goes to a terminal: a list is no data.

import type { Prompt, Resource, ResourceTemplate, Tool } from "../../protocol/model/index.ts";
import { harmless, harmlessJson, oneLine } from "../terminal/harmless.ts";
import { cutTo, padTo, widthOf } from "../terminal/text-width.ts";
import { propertiesOf } from "../target/schema-shape.ts";
import { argumentTable, promptProperties, signature } from "../target/tool-arguments.ts";

export interface ListStyle {
  /** How wide a line may be; any width where it is undefined. */
  readonly width: number | undefined;
  /** Makes a name stand out. */
  readonly strong: (text: string) => string;
  /** Makes what is secondary step back. */
  readonly faint: (text: string) => string;
}

interface Entry {
  readonly name: string;
  /** In one line, or empty. */
  readonly about: string;
  readonly detail: string;
}

/** A name beside which its description still has room. */
const NAME_WIDTH = 28;
/** Descriptions that have less stand below the names. */
const LEAST_WIDTH = 20;

export function toolList(tools: readonly Tool[], style: ListStyle): string {
  const entries = tools.map((tool) => ({
    name: oneLine(tool.name),
    about: summary(tool),
    detail: signature(propertiesOf(tool.inputSchema)),
  }));
  return listed(entries, style);
}

export function promptList(prompts: readonly Prompt[], style: ListStyle): string {
  const entries = prompts.map((prompt) => ({
    name: oneLine(prompt.name),
    about: summary(prompt),
    detail: signature(promptProperties(prompt)),
  }));
  return listed(entries, style);
}

export function resourceList(
  resources: readonly Resource[],
  templates: readonly ResourceTemplate[],
  style: ListStyle,
): string {
  const addresses = resources.map((resource) => entry(resource.uri, resource, resource.size));
  const patterns = templates.map((template) => entry(template.uriTemplate, template));
  const gap = addresses.length > 0 && patterns.length > 0 ? "\n" : "";
  const heading = patterns.length > 0 ? `${gap}${style.faint("Templates:")}\n` : "";
  return listed(addresses, style) + heading + listed(patterns, style);
}

function entry(address: string, resource: Resource | ResourceTemplate, size?: unknown): Entry {
  const facts = [text(resource.name), text(resource.mimeType), typeof size === "number" ? bytesText(size) : ""];
  const detail = oneLine(facts.filter((fact) => fact !== "").join(", "));
  const name = oneLine(address);
  const about = summary(resource);
  return about === "" ? { name, about: detail, detail: "" } : { name, about, detail };
}

/** A stranger may write anything where a text should be. */
function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Name and description side by side, the detail below; a name that is too long has its line to itself. */
function listed(entries: readonly Entry[], { width, strong, faint }: ListStyle): string {
  const widest = entries
    .map(({ name }) => widthOf(name))
    .filter((it) => it <= NAME_WIDTH)
    .reduce((one, other) => Math.max(one, other), 0);
  const room = width !== undefined && width - widest - 2 < LEAST_WIDTH ? 0 : widest;
  const left = width === undefined ? undefined : Math.max(width - room - 2, 1);
  const fit = (text: string): string => (left === undefined ? text : cutTo(left, text));
  const margin = " ".repeat(room + 2);
  return entries
    .map(({ name, about, detail }) => {
      const rest = [...(about === "" ? [] : [fit(about)]), ...(detail === "" ? [] : [faint(fit(detail))])];
      const label = strong(name) + padTo(room, name).slice(name.length);
      const [beside, ...below] = widthOf(name) > room ? ["", ...rest] : rest;
      const first = beside === undefined || beside === "" ? strong(name) : `${label}  ${beside}`;
      return [first, ...below.map((line) => margin + line)].map((line) => `${line}\n`).join("");
    })
    .join("");
}

/** The first line that says something. */
function summary({ title, description }: { readonly title?: unknown; readonly description?: unknown }): string {
  const lines = [...text(description).split("\n"), text(title)];
  return oneLine(lines.find((line) => line.trim() !== "") ?? "");
}

export function toolDetail(tool: Tool, style: ListStyle): string {
  const properties = propertiesOf(tool.inputSchema);
  return [
    head(tool, style),
    `${style.faint("Arguments:")}${properties.length === 0 ? " none" : ""}\n${argumentTable(properties)}`,
    hints(tool.annotations, style),
    schema("Input schema", tool.inputSchema, style),
    schema("Output schema", tool.outputSchema, style),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

export function promptDetail(prompt: Prompt, style: ListStyle): string {
  const properties = promptProperties(prompt);
  const none = properties.length === 0 ? " none" : "";
  return `${head(prompt, style)}\n${style.faint("Arguments:")}${none}\n${argumentTable(properties)}`;
}

function head({ name, title, description }: Tool | Prompt, { strong }: ListStyle): string {
  const titled = text(title) === "" || title === name ? "" : ` (${oneLine(text(title))})`;
  const described = harmless(text(description).trim());
  return `${strong(oneLine(name))}${titled}\n${described === "" ? "" : `${described}\n`}`;
}

const HINTS: readonly (readonly [name: string, yes: string, no: string])[] = [
  ["readOnlyHint", "changes nothing", "may change things"],
  ["destructiveHint", "may destroy", "destroys nothing"],
  ["idempotentHint", "may be repeated", "not to be repeated"],
  ["openWorldHint", "reaches outside", "reaches nothing outside"],
];

function hints(annotations: Tool["annotations"], { faint }: ListStyle): string {
  const said = HINTS.flatMap(([name, yes, no]) => {
    const value = (annotations as Record<string, unknown> | undefined)?.[name];
    return typeof value === "boolean" ? [value ? yes : no] : [];
  });
  return said.length === 0 ? "" : `${faint("It says of itself:")} ${said.join(", ")}\n`;
}

function schema(heading: string, value: unknown, { faint }: ListStyle): string {
  return value === undefined ? "" : `${faint(`${heading}:`)}\n${harmlessJson(JSON.stringify(value, undefined, 2))}\n`;
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"] as const;

export function bytesText(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1_000 && unit < UNITS.length - 1) {
    amount /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${UNITS[unit]}`;
}
