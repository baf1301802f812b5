// A request as the Lisp guest reads it: one property list, with keywords for keys. Only what a reader of Lisp would take
// for something else is escaped, and what Lisp has no form for is nil.

import type { GuestRequest } from "../runtime.ts";

export function encodeRequest(request: GuestRequest): string {
  let text = "";
  for (const name of Object.keys(request)) {
    // An absent key and nil are the same to the guest.
    const value = form(request[name]);
    if (value !== "nil") text += `${text === "" ? "(" : " "}:${keyword(name)} ${value}`;
  }
  return `${text})`;
}

/** Names that have been written before; there are as many as tools have arguments. */
const keywords = new Map<string, string>();

function keyword(name: string): string {
  let known = keywords.get(name);
  if (known === undefined) {
    known = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    keywords.set(name, known);
  }
  return known;
}

function form(value: unknown): string {
  if (value === true) return "t";
  if (typeof value === "string") return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "nil";
  if (Array.isArray(value)) return value.length === 0 ? "nil" : `(${value.map(form).join(" ")})`;
  return "nil";
}
