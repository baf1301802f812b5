// What every registration must bring, whatever it registers: something to call it by, options, a handler. Programs
// without types may leave out any of them, or give them in the wrong order, and are told which at once.

import { isObject } from "../core/objects.ts";
import { scopesProblem } from "../auth/bearer/scopes.ts";

type Kind = "tool" | "resource" | "template" | "prompt";

const FORMS: Readonly<Record<Kind, string>> = {
  tool: ".tool(name, options, handler)",
  resource: ".resource(uri, options, read)",
  template: ".template(uriTemplate, options, read)",
  prompt: ".prompt(name, options, get)",
};

/** Options whose value is a text wherever they are given. */
const TEXTS = ["name", "title", "description", "mimeType"];

/** Throws a TypeError that names what is missing or wrong; gives the name under which later errors speak of it. */
export function checkRegistration(kind: Kind, key: unknown, options: unknown, handler: unknown): string {
  const form = `the form is ${FORMS[kind]}`;
  if (typeof key !== "string" || key === "") {
    const what = kind === "tool" || kind === "prompt" ? "a name" : "an address";
    throw new TypeError(`A ${kind} needs ${what}, a string; ${form}`);
  }
  const owner = `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${key}`;
  if (!isObject(options)) {
    const what = options === undefined ? "are missing" : "must be an object";
    throw new TypeError(`${owner}: its options ${what}; ${form}`);
  }
  if (typeof handler !== "function") {
    const what = handler === undefined ? "is missing" : "must be a function";
    throw new TypeError(`${owner}: its handler ${what}; ${form}`);
  }
  const wrong = TEXTS.find((field) => options[field] !== undefined && typeof options[field] !== "string");
  if (wrong !== undefined) throw new TypeError(`${owner}: its ${wrong} must be a string`);
  const problem = options["scopes"] === undefined ? undefined : scopesProblem(options["scopes"]);
  if (problem !== undefined) throw new TypeError(`${owner}: its scopes ${problem}`);
  return owner;
}
