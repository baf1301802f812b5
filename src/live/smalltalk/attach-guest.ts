// The guest process of a session that is attached to a running Pharo image: it turns requests into HTTP requests to
// PharoSmalltalkInteropServer, which runs in the image. Nothing of ours is loaded into the image. All sessions share it,
// and what was evaluated stays in it when a session ends. The argument is the address of the server.

import { Socket } from "node:net";
import { isObject, errorMessage } from "../../core/values.ts";
import type { Condition, Definition, GuestEvaluation, GuestRequest } from "../runtime.ts";
import { frame, FrameReader } from "../frames.ts";
import { chunkPieces } from "./gst-source.ts";
import { scan } from "./scan.ts";

const [address = ""] = process.argv.slice(2);
const host = new Socket({ fd: 3 });
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
/** The most that is printed of a value. */
const MAX_VALUE_CHARS = 1_000_000;
/** The longest word that is completed: the pattern that finds it would take long for more. */
const MAX_WORD = 1_000;

/** The text without the spaces and periods at its end. A pattern would try each space in the text. */
function withoutEnd(text: string): string {
  let end = text.length;
  while (end > 0 && /[.\s]/.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

type Fields = { readonly [name: string]: unknown };

/** The field, or an empty string if it is not a string. */
function stringIn(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === "string" ? value : "";
}

/** An error that the image reports. */
class ImageError extends Error {
  readonly details: Fields;

  constructor(details: Fields) {
    super(stringIn(details, "description") || "The image reported an error");
    this.details = details;
  }
}

let running: { readonly id: number; readonly abort: AbortController } | undefined;
let lastError: Condition | undefined;
const definitions: Definition[] = [];

function send(message: object): void {
  host.write(frame(JSON.stringify(message)));
}

/** A string as Smalltalk writes it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

async function fetchResult(path: string, init: RequestInit): Promise<unknown> {
  let answer: unknown;
  try {
    const response = await fetch(new URL(path, address), { ...init, signal: running?.abort.signal ?? null });
    answer = await response.json();
  } catch (error) {
    if (running?.abort.signal.aborted === true) throw error;
    const reason = errorMessage((error as { cause?: unknown }).cause ?? error);
    throw new Error(`${address} does not answer as PharoSmalltalkInteropServer does: ${reason}`, { cause: error });
  }
  if (!isObject(answer)) throw new Error(`${address} does not answer as PharoSmalltalkInteropServer does`);
  if (answer["success"] !== true) throw new ImageError(isObject(answer["error"]) ? answer["error"] : {});
  return answer["result"];
}

function get(endpoint: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
  return fetchResult(`/${endpoint}?${new URLSearchParams(parameters).toString()}`, {});
}

function evaluateInImage(code: string): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  return fetchResult("/eval", { method: "POST", headers, body: JSON.stringify({ code }) });
}

/** Declares the names that the code assigns, so that they are kept, and prints its value. */
async function evaluateStatements(code: string): Promise<{ readonly value: string; readonly defined: Definition[] }> {
  const names = [...scan(code).assigned];
  if (names.length > 0) {
    const list = names.map((name) => `#${name}`).join(" ");
    await evaluateInImage(`#(${list}) do: [ :each | Smalltalk globals at: each ifAbsentPut: [ nil ] ]`);
  }
  const value = await evaluateInImage(`[ ${code}\n] value printStringLimitedTo: ${MAX_VALUE_CHARS}`);
  const defined = names.map((name) => ({ type: "variable", name }));
  // A return in the code skips the printing.
  return { value: typeof value === "string" ? value : JSON.stringify(value ?? null), defined };
}

async function compile(owner: string, source: string, protocol = "as yet unclassified"): Promise<Definition> {
  const code = `((${owner}) compile: ${quoted(source)} classified: ${quoted(protocol)}) asString`;
  return { type: "method", name: `${owner}>>${String(await evaluateInImage(code))}` };
}

async function evaluate({ code }: GuestRequest): Promise<GuestEvaluation> {
  const startedAt = performance.now();
  const defined: Definition[] = [];
  const values: string[] = [];
  const reply = (status: GuestEvaluation["status"], condition?: Condition): GuestEvaluation => {
    for (const definition of defined) define(definition);
    const timing = { realMs: Math.round(performance.now() - startedAt) };
    return { status, values, warnings: [], timing, defined, ...(condition && { condition }) };
  };
  try {
    for (const piece of chunkPieces(String(code))) {
      values.length = 0;
      if (piece.kind === "method") defined.push(await compile(piece.class ?? "", piece.text, piece.category));
      else {
        const { value, defined: names } = await evaluateStatements(withoutEnd(piece.text));
        values.push(value);
        defined.push(...names);
      }
    }
    return reply("ok");
  } catch (error) {
    values.length = 0;
    if (running?.abort.signal.aborted === true) return reply("interrupted", interruptedCondition());
    if (!(error instanceof ImageError)) throw error;
    lastError = conditionOf(error);
    return reply("error", lastError);
  }
}

function interruptedCondition(): Condition {
  const message = "Its caller no longer waits for it, but it may still run in the image";
  return { type: "Interrupted", message, restarts: [], frames: [] };
}

/** The stack ends with the frames of the HTTP server, which begin with the evaluation. */
function conditionOf({ message, details }: ImageError): Condition {
  const [, type = "Error", text = message] = /^([A-Z]\w*)(?:: ([^]*))?$/.exec(message) ?? [];
  const lines = stringIn(details, "stack_trace")
    .split(/[\r\n]+/)
    .map((line) => line.trim());
  const ownLines = lines.slice(0, lines.findIndex((line) => /\b(?:OpalCompiler|SisServer)\b/.test(line)) >>> 0);
  const receiver = isObject(details["receiver"]) ? details["receiver"] : {};
  const variables = Object.entries(isObject(receiver["variables"]) ? receiver["variables"] : {});
  const locals = [["self", receiver["self"] ?? ""] as const, ...variables]
    .slice(0, 20)
    .map(([name, value]) => ({ name, value: String(value).slice(0, 200) }));
  const frames = ownLines
    .filter((line) => line !== "")
    .slice(0, 20)
    .map((line, number) => ({ number, text: line, ...(number === 0 && { locals }) }));
  return { type, message: text, restarts: [], frames };
}

function define(definition: Definition): void {
  const isKnown = definitions.some(({ type, name }) => type === definition.type && name === definition.name);
  if (!isKnown) definitions.push(definition);
}

function lines(items: unknown, none: string): { readonly text: string } {
  const texts = (Array.isArray(items) ? items : []).map((item: unknown) =>
    isObject(item) ? `${String(item["class"])}>>${String(item["method"])}` : String(item),
  );
  return { text: texts.length === 0 ? none : texts.join("\n") };
}

/** `Foo class` as the two arguments of the server. */
function side(name: string): Readonly<Record<string, string>> {
  const isMeta = name.endsWith(" class");
  return { class_name: isMeta ? name.slice(0, -" class".length) : name, is_class_method: String(isMeta) };
}

const UNSUPPORTED =
  "A session that is attached to an image has no open errors, handles or saved images: use the debugger and the inspector in the image.";

const TOOLS: Readonly<Record<string, (args: Readonly<Record<string, string>>) => Promise<object> | object>> = {
  "browse-class": async ({ class: name = "" }) => ({
    text: String(await get("get-class-source", { class_name: side(name)["class_name"] ?? "" })),
  }),
  "method-source": async ({ class: name = "", selector = "" }) => ({
    text: String(await get("get-method-source", { ...side(name), method_name: selector })),
  }),
  "define-class": async (args) => {
    const { name = "", superclass = "Object", instanceVariables = "", classVariables = "", comment } = args;
    if (!/^[A-Z]\w*$/.test(name) || !/^[A-Z]\w*$/.test(superclass))
      throw new Error("The name of a class begins with a capital letter");
    const message = `${superclass} subclass: #${name} instanceVariableNames: ${quoted(instanceVariables)} classVariableNames: ${quoted(classVariables)} package: ${quoted(args["package"] ?? "Catenary-Session")}`;
    await evaluateInImage(`(${message}) name`);
    if (comment !== undefined) await evaluateInImage(`${name} comment: ${quoted(comment)}. nil`);
    define({ type: "class", name });
    return { text: `Defined ${name}, a subclass of ${superclass}` };
  },
  "compile-method": async ({ class: name = "", source = "", protocol }) => {
    const definition = await compile(name, source, protocol);
    define(definition);
    return { text: `Compiled ${definition.name}` };
  },
  "search-classes": async ({ pattern = "" }) =>
    lines(await get("search-classes-like", { class_name_query: pattern }), `No name of a class begins with ${pattern}`),
  implementors: async ({ selector = "" }) =>
    lines(await get("search-implementors", { method_name: selector }), `No class implements ${selector}`),
  senders: async ({ selector = "" }) =>
    lines(await get("search-references", { program_symbol: selector }), `No method sends ${selector}`),
  "class-references": async ({ class: name = "" }) =>
    lines(await get("search-references-to-class", { class_name: name }), `No method refers to ${name}`),
  "run-tests": async ({ class: name, package: packageName }) => {
    if (name === undefined && packageName === undefined)
      throw new Error("Name the class or the package whose tests are to run");
    const result =
      name === undefined
        ? await get("run-package-test", { package_name: packageName ?? "" })
        : await get("run-class-test", { class_name: name });
    return { tests: testsOf(String(result)), output: String(result) };
  },
  "list-definitions": () => ({
    text: definitions.map(({ type, name }) => `${type} ${name}`).join("\n") || "Nothing was defined in this session.",
  }),
  "describe-last-error": () => ({
    text:
      lastError === undefined
        ? "There was no error in this session."
        : [`[ERROR] ${lastError.type}`, lastError.message, ...lastError.frames.map(({ text }) => `  ${text}`)].join(
            "\n",
          ),
  }),
  complete: async ({ code = "", position }) => {
    const end = position === undefined ? code.length : Number(position);
    const [prefix = ""] = /[\w:]*$/.exec(code.slice(Math.max(0, end - MAX_WORD), end)) ?? [];
    return { start: end - prefix.length, values: prefix === "" ? [] : (await namesFrom(prefix)).slice(0, 100) };
  },
  "complete-argument": async ({ value = "" }) => {
    const names = await namesFrom(value === "" ? "A" : value);
    return { values: names.slice(0, 100), total: names.length };
  },
};

async function namesFrom(prefix: string): Promise<readonly string[]> {
  const isClass = /^[A-Z]/.test(prefix);
  const names = isClass
    ? await get("search-classes-like", { class_name_query: prefix })
    : await get("search-methods-like", { method_name_query: prefix });
  return (Array.isArray(names) ? names : []).map(String);
}

/** Reads `3 ran, 1 passed, 0 skipped, ..., 1 failures, 1 errors`, and the names below it. */
function testsOf(text: string): object {
  const amount = (what: string): number => Number(new RegExp(`(\\d+) ${what}`).exec(text)?.[1] ?? 0);
  const failures = [...text.matchAll(/^\s*(\w+)>>#?(\w+)/gm)].map(([, owner, selector]) => ({
    name: `${owner}>>${selector}`,
    reason: "see the image, or evaluate the test",
  }));
  const failed = amount("failures") + amount("errors");
  return { passed: amount("passed"), failed, skipped: amount("skipped"), failures };
}

async function serve(request: GuestRequest): Promise<object> {
  if (request.op === "eval") return evaluate(request);
  if (request.op === "read-resource") return readResource(request);
  const tool = Object.hasOwn(TOOLS, request.op) ? TOOLS[request.op] : undefined;
  if (tool === undefined) throw new Error(UNSUPPORTED);
  const fields = Object.entries(request).filter(([, value]) => value !== undefined && value !== null);
  return tool(Object.fromEntries(fields.map(([name, value]) => [name, String(value)])));
}

async function readResource({ template, arguments: args }: GuestRequest): Promise<object> {
  const { className = "", selector = "" } = args as Readonly<Record<string, string>>;
  if (String(template).includes("system/version"))
    return { text: String(await evaluateInImage("SystemVersion current printString")), mimeType: "text/plain" };
  if (String(template).includes("{selector}"))
    return {
      text: String(await get("get-method-source", { ...side(className), method_name: selector })),
      mimeType: "text/plain",
    };
  if (!/^[A-Z]\w*$/.test(className)) throw new Error(`There is no class ${className}`);
  const code = `{ 'name' -> ${className} name. 'superclass' -> (${className} superclass ifNotNil: [ :each | each name ]). 'instanceVariables' -> ${className} instVarNames. 'methods' -> ${className} selectors sorted } asDictionary`;
  return { text: JSON.stringify(await evaluateInImage(code)), mimeType: "application/json" };
}

/** Whether the reply to a request has the form of an evaluation, so that a failure must be an error. */
const EVALUATES = new Set(["eval", "take-restart", "evaluate-in-frame"]);

async function answer(request: GuestRequest): Promise<void> {
  const { id, op } = request;
  running = { id, abort: new AbortController() };
  try {
    send({ id, result: await serve(request) });
  } catch (error) {
    if (EVALUATES.has(op)) send({ id, error: errorMessage(error) });
    else send({ id, result: { text: errorMessage(error), isError: true } });
  } finally {
    if (running?.id === id) running = undefined;
  }
}

const reader = new FrameReader(
  (text) => {
    const request = JSON.parse(text) as GuestRequest;
    if (request.op !== "interrupt") void answer(request);
    else {
      if (running !== undefined && running.id === request["target"]) running.abort.abort();
      send({ id: request.id, result: {} });
    }
  },
  () => MAX_REQUEST_BYTES,
);
host.on("data", (chunk: Buffer) => reader.push(chunk));
host.on("end", () => process.exit(0));
try {
  const version = String(await evaluateInImage("SystemVersion current printString"));
  send({ event: "ready", version: `${version}, attached at ${address}` });
} catch (error) {
  process.stderr.write(`${errorMessage(error)}\n`);
  process.exit(1);
}
