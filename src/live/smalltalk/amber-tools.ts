// The tools that Smalltalk code on Amber can call, in code mode: the classes Tools, ToolServer and ToolError. A call
// blocks the thread until it is answered, since Smalltalk code on Amber cannot wait otherwise.

import { jsonOf } from "../arguments.ts";
import type { BlockingCalls, CallResult } from "../js/messages.ts";
import type { CallableTool } from "../runtime.ts";
import type { AmberImage, Behavior } from "./amber-image.ts";

const PACKAGE = "Catenary";
const MAX_NESTING = 100;
/** A longer call would be refused by the host. */
const MAX_ARGUMENT_CHARS = 500_000;
const NOT_SHOWN =
  "show: takes content that a tool has returned: a block such as an image or a resource link, an array of blocks, or " +
  "a value with content. Print other values.";

/** The methods, by class. `bridge` in them has the functions of this file. */
const METHODS: readonly (readonly [className: string, source: string])[] = [
  ["Tools class", "call: aString\n\t^ self call: aString with: #{}"],
  ["Tools class", "call: aString with: aDictionary\n\t<inlineJS: 'return $self.bridge.call(aString, aDictionary)'>"],
  ["Tools class", "catalogue\n\t<inlineJS: 'return $self.bridge.catalogue()'>"],
  ["Tools class", "search: aString\n\t^ self search: aString limit: 10"],
  ["Tools class", "search: aString limit: aNumber\n\t<inlineJS: 'return $self.bridge.search(aString, aNumber)'>"],
  ["Tools class", "show: aValue\n\t<inlineJS: '$self.bridge.show(aValue)'>"],
  ["Tools class", "contentOf: aValue\n\t<inlineJS: 'return $self.bridge.contentOf(aValue)'>"],
  ["Tools class", "hasServer: aString\n\t<inlineJS: 'return $self.bridge.hasServer(aString)'>"],
  [
    "Tools class",
    "doesNotUnderstand: aMessage\n\t| name |\n\tname := aMessage selector replace: ':' with: ''.\n\t(aMessage arguments isEmpty and: [ self hasServer: name ]) ifTrue: [ ^ ToolServer new setPath: name ].\n\taMessage arguments size > 1 ifTrue: [ ^ super doesNotUnderstand: aMessage ].\n\t^ aMessage arguments isEmpty\n\t\tifTrue: [ self call: name ]\n\t\tifFalse: [ self call: name with: aMessage arguments first ]",
  ],
  ["ToolServer", "setPath: aString\n\tpath := aString"],
  ["ToolServer", "printOn: aStream\n\taStream nextPutAll: 'Tools ', path"],
  [
    "ToolServer",
    "doesNotUnderstand: aMessage\n\t| name |\n\taMessage arguments size > 1 ifTrue: [ ^ super doesNotUnderstand: aMessage ].\n\tname := path, '.', (aMessage selector replace: ':' with: '').\n\t^ aMessage arguments isEmpty\n\t\tifTrue: [ Tools call: name ]\n\t\tifFalse: [ Tools call: name with: aMessage arguments first ]",
  ],
  ["ToolError", "tool\n\t^ tool"],
  ["ToolError", "content\n\t^ content"],
  ["ToolError", "setTool: aString content: anArray\n\ttool := aString.\n\tcontent := anArray"],
];

export class AmberTools {
  readonly #image: AmberImage;
  readonly #calls: BlockingCalls;
  /** By path and by name. */
  #known: ReadonlyMap<string, CallableTool> = new Map();
  #all: readonly CallableTool[] = [];
  /** The whole content of results, by the value that the code got. */
  readonly #contents = new WeakMap<object, unknown>();

  constructor(image: AmberImage, calls: BlockingCalls) {
    this.#image = image;
    this.#calls = calls;
    const { onChange } = image;
    // The classes are not definitions of the user.
    image.onChange = () => undefined;
    try {
      this.#define();
    } finally {
      image.onChange = onChange;
    }
  }

  set(tools: readonly CallableTool[]): void {
    this.#all = tools;
    this.#known = new Map([
      ...tools.map((tool) => [tool.name, tool] as const),
      ...tools.map((tool) => [tool.path, tool] as const),
    ]);
  }

  #define(): void {
    const { globals } = this.#image;
    const define = (above: string, name: string, slots: readonly string[]): void =>
      void this.#image.send(globals[above], "subclass:slots:package:", name, slots, PACKAGE);
    define("Object", "Tools", []);
    define("Object", "ToolServer", ["path"]);
    define("Error", "ToolError", ["tool", "content"]);
    const compiler = this.#image.send(globals["Compiler"], "new");
    for (const [className, source] of METHODS) {
      const [, name = "", isClassSide] = /^(\w+)( class)?$/.exec(className) ?? [];
      const behavior = isClassSide === undefined ? globals[name] : (globals[name] as Behavior).a$cls;
      this.#image.send(compiler, "install:forClass:protocol:", source, behavior, "calling");
    }
    Object.defineProperty(globals["Tools"], "bridge", {
      value: {
        call: (path: unknown, args: unknown) => this.#call(String(path), args),
        catalogue: () => this.#all.map((tool) => this.#entry(tool)),
        search: (words: unknown, limit: unknown) => this.#search(String(words), Number(limit)),
        show: (value: unknown) => this.#show(value),
        contentOf: (value: unknown) => (isReference(value) ? this.#contents.get(value) : undefined),
        hasServer: (name: string) => this.#all.some(({ path }) => path.startsWith(`${name}.`)),
      },
    });
  }

  #call(path: string, args: unknown): unknown {
    const tool = this.#known.get(path);
    const title = tool?.path ?? path;
    const text = JSON.stringify(this.#sent(args));
    if (text.length > MAX_ARGUMENT_CHARS)
      this.#fail(`The arguments of ${title} have more than ${MAX_ARGUMENT_CHARS} characters`);
    // The host knows what a wrong name is close to, and which arguments the tool takes.
    const answer = this.#request(`"tool":${JSON.stringify(tool?.name ?? path)},"values":${text}`);
    const { result, error } = answer;
    if (error?.kind === "tool") {
      const thrown = this.#image.send(this.#image.globals["ToolError"], "new");
      const content = error.content ?? [{ type: "text", text: error.message }];
      this.#image.send(thrown, "setTool:content:", title, this.#valueOf(content));
      this.#image.send(thrown, "signal:", error.message);
    }
    if (error !== undefined) this.#fail(error.message);
    return this.#resultOf(result);
  }

  /** Structured content as a value, or the text; otherwise both text and content. */
  #resultOf(result: CallResult["result"]): unknown {
    const { structured, text = "", content } = result ?? {};
    if (structured === undefined && content === undefined) return text;
    const value = this.#valueOf(structured ?? { text, content });
    if (content !== undefined && isReference(value)) this.#contents.set(value, this.#valueOf(content));
    return value;
  }

  #search(words: string, limit: number): unknown {
    const { result, error } = this.#request(`"search":${JSON.stringify(words)},"limit":${limit || 10}`);
    if (error !== undefined) this.#fail(error.message);
    const tools = (result?.structured ?? []) as readonly CallableTool[];
    return tools.map((tool) => this.#entry(tool));
  }

  #show(value: unknown): void {
    const kept = isReference(value) ? this.#contents.get(value) : undefined;
    const json = jsonOf(this.#sent(kept ?? value));
    const { content } = Object(json) as { readonly content?: unknown };
    const blocks: readonly unknown[] = Array.isArray(json) ? json : Array.isArray(content) ? content : [json];
    const isBlock = (block: unknown): boolean => typeof (Object(block) as { type?: unknown }).type === "string";
    if (blocks.length === 0 || !blocks.every(isBlock)) this.#fail(NOT_SHOWN);
    this.#calls.show(blocks);
  }

  #request(body: string): CallResult {
    try {
      return this.#calls.request(body);
    } catch (error) {
      return { call: 0, error: { kind: "cancelled", message: (error as Error).message } };
    }
  }

  #entry({ path, signature, summary }: Omit<CallableTool, "name">): unknown {
    return this.#valueOf({ path, signature, summary });
  }

  /** Signals an Error of Smalltalk. */
  #fail(message: string): never {
    this.#image.send(this.#image.send(this.#image.globals["Error"], "new"), "signal:", message);
    throw new Error(message);
  }

  /** JSON as values of Smalltalk: objects are dictionaries. */
  #valueOf(json: unknown): unknown {
    if (Array.isArray(json)) return json.map((item) => this.#valueOf(item));
    if (json === null || typeof json !== "object") return json;
    const value = this.#image.send(this.#image.globals["Dictionary"], "new");
    for (const [key, member] of Object.entries(json)) this.#image.send(value, "at:put:", key, this.#valueOf(member));
    return value;
  }

  /** A value as it is: the schema of the tool decides what it is in JSON, and the host knows it. */
  #sent(value: unknown, depth = 0): unknown {
    const image = this.#image;
    if (depth > MAX_NESTING)
      this.#fail(`A value that is circular, or nested in more than ${MAX_NESTING} levels, cannot be sent to a tool`);
    if (image.isNil(value)) return null;
    const behavior = image.classOf(value);
    const inner = (item: unknown): unknown => this.#sent(item, depth + 1);
    const members = (pairs: readonly Pair[]): unknown[] =>
      pairs.flatMap((pair) => [String(pair.key), inner(pair.value)]);
    if (image.inherits(behavior, "AssociativeCollection") || image.inherits(behavior, "Dictionary"))
      return { table: members(image.send(value, "associations") as readonly Pair[]) };
    if (image.inherits(behavior, "Association")) return { pair: members([value as Pair]) };
    if (behavior !== undefined && image.inherits(behavior, "Collection") && !image.inherits(behavior, "String"))
      return { items: (image.send(value, "asArray") as unknown[]).map(inner) };
    const plain = (value as { valueOf(): unknown }).valueOf();
    if (typeof plain === "string" || typeof plain === "boolean") return plain;
    if (typeof plain === "number") {
      if (!Number.isFinite(plain)) this.#fail(`JSON has no number for ${plain}`);
      return plain;
    }
    if (behavior !== undefined) {
      const { name = "class" } = behavior;
      this.#fail(`A ${name} cannot be sent to a tool; JSON has strings, numbers, booleans, arrays and dictionaries`);
    }
    return { table: Object.entries(value as object).flatMap(([key, member]) => [key, inner(member)]) };
  }
}

/** An Association. */
interface Pair {
  readonly key: unknown;
  readonly value: unknown;
}

function isReference(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
