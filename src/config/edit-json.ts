// Sets and removes properties in the text of a JSON file with comments. Everything else stays as it is: comments, blank
// lines, indentation, line ends, trailing commas. jsonc-parser can edit too, but it moves a comment at the end of a line
// to the new property, and removes comments before a removed one.

import { parseTree, type Node, type ParseError } from "jsonc-parser";
import { defined } from "../core/values.ts";
import { Problems } from "./document.ts";

/** Sets a value, or with undefined removes it. Throws if the text is not a JSON object, or has something else on the way. */
export function editJson(text: string, path: readonly string[], value: unknown): string {
  if (text.trim() === "") return value === undefined ? text : `${write(text, nested(path, value), "")}\n`;
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (root?.type !== "object" || errors.length > 0) throw notJson(text, errors[0]?.offset ?? 0);
  let node = root;
  for (const [depth, key] of path.entries()) {
    if (node.type !== "object") throw new Error(`${path.slice(0, depth).join(".")} is not an object`);
    const property = findProperty(node, key);
    const [, child] = property?.children ?? [];
    if (property === undefined || child === undefined) {
      return value === undefined ? text : insertProperty(text, node, key, nested(path.slice(depth + 1), value));
    }
    if (depth === path.length - 1) {
      return value === undefined ? removeProperty(text, node, property) : replaceValue(text, property, child, value);
    }
    node = child;
  }
  return text;
}

/** Adds a string to an array, which is created if there is none, or removes it. */
export function editStrings(
  text: string,
  path: readonly string[],
  change: { add: string } | { remove: string },
): string {
  const array = nodeAt(text, path);
  if (array === undefined) return "add" in change ? editJson(text, path, [change.add]) : text;
  if (array.type !== "array") throw new Error(`${path.join(".")} is not an array`);
  const items = array.children ?? [];
  if ("remove" in change) {
    const item = items.find(({ value }) => value === change.remove);
    return item === undefined ? text : editStrings(removeProperty(text, array, item), path, change);
  }
  if (items.some(({ value }) => value === change.add)) return text;
  return insert(text, array, () => JSON.stringify(change.add));
}

function nodeAt(text: string, path: readonly string[]): Node | undefined {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (root === undefined || errors.length > 0) throw notJson(text, errors[0]?.offset ?? 0);
  return path.reduce<Node | undefined>(
    (node, key) => (node?.type === "object" ? findProperty(node, key)?.children?.[1] : undefined),
    root,
  );
}

export function notJson(text: string, offset: number): Error {
  const { line, column } = new Problems(text).position(offset);
  return new Error(`it is not a valid JSON object (line ${line}, column ${column}); correct it first`);
}

function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight((inner, key) => ({ [key]: inner }), value);
}

/** The last one counts, as in JSON.parse. */
function findProperty(object: Node, key: string): Node | undefined {
  return object.children?.findLast(({ children: [name] = [] }) => name?.value === key);
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function lineEndIn(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** The whitespace at the beginning of the line. */
function indentAt(text: string, offset: number): string {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, offset))?.[0] ?? "";
}

/** The indentation of one level. */
function unitIn(text: string): string {
  return /\n([ \t]+)["/]/.exec(text)?.[1] ?? "  ";
}

function replaceValue(text: string, property: Node, old: Node, value: unknown): string {
  const isOneLine = !text.slice(old.offset, endOf(old)).includes("\n") && !text.trimEnd().includes("\n");
  const written = isOneLine ? JSON.stringify(value) : write(text, value, indentAt(text, property.offset));
  return text.slice(0, old.offset) + written + text.slice(endOf(old));
}

/** A value on several lines; `indent` is that of its first line. */
function write(text: string, value: unknown, indent: string): string {
  const json = compactArrays(JSON.stringify(value, undefined, unitIn(text)));
  return json.replaceAll("\n", `${lineEndIn(text)}${indent}`);
}

/** Arrays of short strings, such as arguments, are easier to read on one line. */
function compactArrays(json: string): string {
  return json.replace(/\[\n\s*((?:"(?:[^"\\]|\\.)*",?\s*)+)\n\s*\]/g, (whole, items: string) => {
    const line = `[${items.split(/\n\s*/).join(" ").trim()}]`;
    return line.length <= 80 ? line : whole;
  });
}

function insertProperty(text: string, object: Node, key: string, value: unknown): string {
  const name = `${JSON.stringify(key)}: `;
  return insert(
    text,
    object,
    (indent) => name + (indent === undefined ? JSON.stringify(value) : write(text, value, indent)),
  );
}

/** Adds a property to an object, or an item to an array. `written` gets the indentation, or undefined for one line. */
function insert(text: string, container: Node, written: (indent: string | undefined) => string): string {
  const eol = lineEndIn(text);
  const last = container.children?.at(-1);
  if (last === undefined) {
    const start = container.offset + 1;
    const comments = text.slice(start, endOf(container) - 1).trimEnd();
    const rest = text.slice(endOf(container) - 1);
    if (container.type === "array" && comments === "") return text.slice(0, start) + written(undefined) + rest;
    const indent = indentAt(text, container.offset);
    const inner = `${indent}${unitIn(text)}`;
    return `${text.slice(0, start)}${comments}${eol}${inner}${written(inner)}${eol}${indent}${rest}`;
  }
  const end = endOf(last);
  const { comma, lineEnd } = scanAfter(text, end);
  if (!text.slice(container.offset, end).includes("\n")) {
    const at = comma ?? end;
    return `${text.slice(0, at)}${comma === undefined ? "," : ""} ${written(undefined)}${text.slice(at)}`;
  }
  const indent = indentAt(text, last.offset);
  const added = `${written(indent)}${comma === undefined ? "" : ","}`;
  const separated = text.slice(0, end) + (comma === undefined ? "," : "") + text.slice(end, lineEnd);
  return `${separated}${eol}${indent}${added}${text.slice(lineEnd)}`;
}

function removeProperty(text: string, object: Node, property: Node): string {
  const siblings = object.children ?? [];
  const before = siblings[siblings.indexOf(property) - 1];
  const { comma } = scanAfter(text, endOf(property));
  let end = comma ?? endOf(property);
  let head = text.slice(0, property.offset);
  // The last property has no comma. The comma before it must go, since not every client accepts trailing commas.
  const separator = before === undefined || comma !== undefined ? undefined : scanAfter(text, endOf(before)).comma;
  if (separator !== undefined) head = head.slice(0, separator - 1) + head.slice(separator);
  const lineStart = head.lastIndexOf("\n") + 1;
  const rest = /^[ \t]*(?:\r?\n|$)/.exec(text.slice(end))?.[0];
  if (head.slice(lineStart).trim() === "" && rest !== undefined) {
    head = head.slice(0, lineStart);
    end += rest.length;
  } else if (comma !== undefined) end += /^[ \t]*/.exec(text.slice(end))?.[0].length ?? 0;
  else head = head.trimEnd();
  return head + text.slice(end);
}

/** The look-ahead lets a comment end only with its line: a comma inside of it is none. */
const COMMENT = String.raw`(?:\/\/[^\r\n]*(?=[\r\n]|$)|\/\*(?:(?!\*\/)[^])*\*\/)`;
const COMMENTS = String.raw`(?:[ \t]*${COMMENT})*`;
/** The rest of the line of a property, up to the end of its last comment or its comma. */
const LINE_REST = new RegExp(`^${COMMENTS}(?:[ \\t]*,${COMMENTS})?`);
/** The comma may be on a later line. */
const UP_TO_COMMA = new RegExp(String.raw`^(?:\s|${COMMENT})*,`);

/** What follows a property: the offset after its comma, and the end of its line with its comments. */
function scanAfter(text: string, from: number): { comma?: number; lineEnd: number } {
  const rest = text.slice(from);
  const upToComma = UP_TO_COMMA.exec(rest)?.[0];
  const comma = upToComma === undefined ? undefined : from + upToComma.length;
  const lineEnd = from + (LINE_REST.exec(rest)?.[0].length ?? 0);
  return { ...defined({ comma }), lineEnd: Math.max(lineEnd, comma ?? 0) };
}
