// Formats lists of tools, resources and prompts, and the details of a single tool or prompt. All text comes from the
// server and is sanitized even if the output is not a terminal: lists are for people, programs use --json. What only
// some lists need is loaded late.

import { isObject } from "../../core/values.ts";
import { UNAVAILABLE, type Unavailable, UPSTREAM } from "../../protocol/lists.ts";
import type { Prompt, Resource, ResourceTemplate, Tool } from "../../protocol/model/index.ts";
import { withKey } from "../command.ts";
import { argumentTable, promptProperties, readProperties, signature } from "../target/properties.ts";
import { paint, terminalWidth } from "../terminal/output.ts";
import { oneLine, pad, sanitize, sanitizeJson, truncate, widthOf } from "../terminal/text.ts";

export interface ListStyle {
  /** The maximum width of a line; undefined: unlimited. */
  readonly width: number | undefined;
  readonly strong: (text: string) => string;
  readonly faint: (text: string) => string;
}

/** The style for stdout. */
export function listStyle(): ListStyle {
  const { stdout } = process;
  return {
    width: terminalWidth(stdout),
    strong: (text) => paint("bold", text, stdout),
    faint: (text) => paint("dim", text, stdout),
  };
}

interface ListEntry {
  readonly name: string;
  /** The server of the item, if the list is that of a gateway with several. */
  readonly upstream: string;
  /** One line, or empty. */
  readonly summary: string;
  readonly detail: string;
}

/** A longer name gets a line of its own. */
const MAX_NAME_WIDTH = 28;
/** If less space is left beside the names, descriptions go below the names. */
const MIN_DESCRIPTION_WIDTH = 20;

export function toolList(tools: readonly Tool[], style: ListStyle): string {
  const entries = tools.map((tool) => ({
    name: oneLine(tool.name),
    upstream: upstreamOf(tool),
    summary: summarize(tool),
    detail: signature(readProperties(tool.inputSchema)),
  }));
  return formatLists(entries, style);
}

export function promptList(prompts: readonly Prompt[], style: ListStyle): string {
  const entries = prompts.map((prompt) => ({
    name: oneLine(prompt.name),
    upstream: upstreamOf(prompt),
    summary: summarize(prompt),
    detail: signature(promptProperties(prompt)),
  }));
  return formatLists(entries, style);
}

export function resourceList(
  resources: readonly Resource[],
  templates: readonly ResourceTemplate[],
  style: ListStyle,
): string {
  const uris = resources.map((resource) => resourceEntry(resource.uri, resource, resource.size));
  const patterns = templates.map((template) => resourceEntry(template.uriTemplate, template));
  const gap = uris.length > 0 && patterns.length > 0 ? "\n" : "";
  const heading = patterns.length > 0 ? `${gap}${style.faint("Templates:")}\n` : "";
  return formatLists(uris, style) + heading + formatLists(patterns, style);
}

function resourceEntry(uri: string, resource: Resource | ResourceTemplate, size?: unknown): ListEntry {
  const facts = [
    stringOf(resource.name),
    stringOf(resource.mimeType),
    typeof size === "number" ? formatBytes(size) : "",
  ];
  const detail = oneLine(facts.filter((fact) => fact !== "").join(", "));
  const name = oneLine(uri);
  const summary = summarize(resource);
  const upstream = upstreamOf(resource);
  return summary === "" ? { name, upstream, summary: detail, detail: "" } : { name, upstream, summary, detail };
}

/** The value if it is a string, else an empty string: the server may send anything. */
function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The server of an item, as a gateway says it; empty if it says none. */
function upstreamOf({ _meta: meta }: { readonly _meta?: unknown }): string {
  return isObject(meta) ? oneLine(stringOf(meta[UPSTREAM])) : "";
}

/** A list for each server, with a heading. A list without servers has no heading. */
function formatLists(entries: readonly ListEntry[], style: ListStyle): string {
  const upstreams = [...new Set(entries.map(({ upstream }) => upstream))];
  return upstreams
    .map((upstream) => {
      const heading = upstream === "" ? "" : `${style.faint(`Server ${upstream}:`)}\n`;
      const ofUpstream = entries.filter((entry) => entry.upstream === upstream);
      return heading + formatList(ofUpstream, style);
    })
    .join("\n");
}

/** Prints name and summary side by side, with the detail below. */
function formatList(entries: readonly ListEntry[], { width, strong, faint }: ListStyle): string {
  const widest = entries
    .map(({ name }) => widthOf(name))
    .filter((it) => it <= MAX_NAME_WIDTH)
    .reduce((one, other) => Math.max(one, other), 0);
  const nameWidth = width !== undefined && width - widest - 2 < MIN_DESCRIPTION_WIDTH ? 0 : widest;
  const textWidth = width === undefined ? undefined : Math.max(width - nameWidth - 2, 1);
  const fit = (text: string): string => (textWidth === undefined ? text : truncate(textWidth, text));
  const margin = " ".repeat(nameWidth + 2);
  return entries
    .map(({ name, summary, detail }) => {
      const rest = [...(summary === "" ? [] : [fit(summary)]), ...(detail === "" ? [] : [faint(fit(detail))])];
      const label = strong(name) + pad(nameWidth, name).slice(name.length);
      const [beside, ...below] = widthOf(name) > nameWidth ? ["", ...rest] : rest;
      const first = beside === undefined || beside === "" ? strong(name) : `${label}  ${beside}`;
      return [first, ...below.map((line) => margin + line)].map((line) => `${line}\n`).join("");
    })
    .join("");
}

/** The first non-blank line of the description, or the title if there is none. */
function summarize({ title, description }: { readonly title?: unknown; readonly description?: unknown }): string {
  const lines = [...stringOf(description).split("\n"), stringOf(title)];
  return oneLine(lines.find((line) => line.trim() !== "") ?? "");
}

export function toolDetail(tool: Tool, style: ListStyle): string {
  const properties = readProperties(tool.inputSchema);
  return [
    formatHead(tool, style),
    `${style.faint("Arguments:")}${properties.length === 0 ? " none" : ""}\n${argumentTable(properties)}`,
    formatHints(tool.annotations, style),
    formatSchema("Input schema", tool.inputSchema, style),
    formatSchema("Output schema", tool.outputSchema, style),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

export function promptDetail(prompt: Prompt, style: ListStyle): string {
  const properties = promptProperties(prompt);
  const none = properties.length === 0 ? " none" : "";
  return `${formatHead(prompt, style)}\n${style.faint("Arguments:")}${none}\n${argumentTable(properties)}`;
}

function formatHead(item: Tool | Prompt, { strong, faint }: ListStyle): string {
  const { name, title, description } = item;
  const upstream = upstreamOf(item);
  const suffix = stringOf(title) === "" || title === name ? "" : ` (${oneLine(stringOf(title))})`;
  const body = sanitize(stringOf(description).trim());
  const server = upstream === "" ? "" : `${faint("Server:")} ${upstream}\n`;
  return `${strong(oneLine(name))}${suffix}\n${server}${body === "" ? "" : `${body}\n`}`;
}

const HINTS: readonly (readonly [name: string, yes: string, no: string])[] = [
  ["readOnlyHint", "read-only", "may change things"],
  ["destructiveHint", "may be destructive", "not destructive"],
  ["idempotentHint", "safe to repeat", "not safe to repeat"],
  ["openWorldHint", "uses external systems", "uses no external systems"],
];

function formatHints(annotations: Tool["annotations"], { faint }: ListStyle): string {
  const hints = HINTS.flatMap(([name, yes, no]) => {
    const value = (annotations as Record<string, unknown> | undefined)?.[name];
    return typeof value === "boolean" ? [value ? yes : no] : [];
  });
  return hints.length === 0 ? "" : `${faint("Hints from the server:")} ${hints.join(", ")}\n`;
}

function formatSchema(heading: string, value: unknown, { faint }: ListStyle): string {
  return value === undefined ? "" : `${faint(`${heading}:`)}\n${sanitizeJson(JSON.stringify(value, undefined, 2))}\n`;
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"] as const;

export function formatBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1_000 && unit < UNITS.length - 1) {
    amount /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${UNITS[unit]}`;
}

/** A result whose `_meta` may say which upstreams of a gateway are missing from the list. */
export interface ListResult {
  readonly _meta?: { readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

/** The upstreams missing from these lists, each once. */
export function findMissingUpstreams(...lists: readonly ListResult[]): Unavailable[] {
  const reported = lists.flatMap(({ _meta }) =>
    withKey<Unavailable>(isObject(_meta) ? _meta[UNAVAILABLE] : undefined, "upstream"),
  );
  const valid = withKey<Unavailable>(reported, "message");
  return [...new Map(valid.map((unavailable) => [unavailable.upstream, unavailable])).values()];
}

export function noteMissingUpstreams(missing: readonly Unavailable[], note: (text: string) => void): void {
  for (const { upstream, message } of missing) note(`Not listed: ${oneLine(upstream)} (${oneLine(message)})`);
}

/** The metadata for --json. */
export function missingUpstreamsMeta(missing: readonly Unavailable[]): ListResult {
  return missing.length === 0 ? {} : { _meta: { [UNAVAILABLE]: missing } };
}
