// Loads Amber into this process, without a module loader of its own: its files are AMD modules, which call `define`.
// Replaces how Amber keeps track of its stack, so that the stack of an evaluation that failed or was terminated can be
// read, and does not stay behind. Also records what is defined, and shows it: classes, methods, completion.

import { createRequire } from "node:module";
import { dirname, join, posix } from "node:path";
import type { Definition, GuestCompletion } from "../runtime.ts";

/** A class, a metaclass or a trait. */
export interface Behavior {
  readonly name?: string;
  readonly superclass?: Behavior | null;
  readonly subclasses?: readonly Behavior[];
  /** The names of its own instance variables. */
  slots?: readonly string[];
  readonly comment?: string;
  readonly category?: string;
  /** The methods by selector, without inherited ones. */
  readonly localMethods: Readonly<Record<string, Method>>;
  readonly methods: Readonly<Record<string, Method>>;
  /** The metaclass. */
  readonly a$cls?: Behavior;
  /** The class of a metaclass. */
  readonly instanceClass?: Behavior;
}

export interface Method {
  readonly selector: string;
  readonly source: string;
  readonly protocol?: string;
  readonly messageSends: readonly string[];
  readonly referencedClasses: readonly string[];
  readonly owner?: Behavior;
}

/** The longest word that is completed: the pattern that finds it would take long for more. */
const MAX_WORD = 1_000;

/** A frame of the stack. `setup` fills the fields that follow it. */
export interface StackContext {
  readonly homeContext: StackContext | null;
  readonly setup: (context: StackContext) => void;
  readonly receiver: unknown;
  readonly selector: string | null;
  readonly locals: Readonly<Record<string, unknown>>;
  /** The context of the method or block in which a block stands. */
  readonly outerContext: StackContext | null;
}

interface Api {
  initialize(): Promise<void>;
  send2(receiver: unknown, selector: string, args: readonly unknown[]): unknown;
  withContext(worker: (context: StackContext) => unknown, setup: StackContext["setup"]): unknown;
  getThisContext(): StackContext | null;
  addMethod: (method: Method, behavior: Behavior) => void;
  removeMethod: (method: Method, behavior: Behavior) => void;
  addClass: (name: string, ...more: unknown[]) => Behavior;
  removeClass: (behavior: Behavior) => void;
  readonly traitsOrClasses: readonly Behavior[];
  allSelectors(): readonly string[];
}

interface Boot {
  readonly api: Api;
  readonly globals: Readonly<Record<string, Behavior>>;
  readonly asReceiver: (value: unknown) => unknown;
}

type AmdModule = (...dependencies: unknown[]) => unknown;
type AmdRequire = (names: readonly string[], resolve: AmdModule, reject?: (error: unknown) => void) => void;

export class AmberImage {
  readonly version: string;
  readonly api: Api;
  readonly globals: Boot["globals"];
  /** The innermost frame of the stack. */
  context: StackContext | null = null;
  /** Called with the name of a class, or of a method such as `Foo >> #bar`, when it is added or removed. */
  onChange: (type: "class" | "method", name: string, isAdded: boolean) => void = () => undefined;
  readonly #asReceiver: Boot["asReceiver"];

  private constructor({ api, globals, asReceiver }: Boot, version: string) {
    this.api = api;
    this.globals = globals;
    this.#asReceiver = asReceiver;
    this.version = version;
  }

  static async load(): Promise<AmberImage> {
    const require = createRequire(import.meta.url);
    const packageFile = require.resolve("@ambers/lang/package.json");
    const load = amdLoader(require, dirname(packageFile));
    const boot = load("amber/boot") as Boot;
    load("amber/lang");
    for (const name of ["Platform-Node", "SUnit"]) load(`amber/core/${name}`);
    await boot.api.initialize();
    const { version } = require(packageFile) as { readonly version: string };
    const image = new AmberImage(boot, version);
    image.#watchStack();
    image.#watchChanges();
    return image;
  }

  /** Sends a message. */
  send(receiver: unknown, selector: string, ...args: readonly unknown[]): unknown {
    return this.api.send2(this.#asReceiver(receiver), selector, args);
  }

  /** Whether the value is nil, which has several forms in JavaScript. */
  isNil(value: unknown): boolean {
    return value === null || value === undefined || (value as { readonly a$nil?: boolean }).a$nil === true;
  }

  /** The class of the value; undefined for an object of JavaScript. */
  classOf(value: unknown): Behavior | undefined {
    return this.isNil(value) ? this.globals["UndefinedObject"] : (value as { readonly a$cls?: Behavior }).a$cls;
  }

  /** Whether the class is, or inherits from, the class with this name. */
  inherits(behavior: Behavior | undefined, name: string): boolean {
    for (let at: Behavior | null | undefined = behavior; at; at = at.superclass) if (at.name === name) return true;
    return false;
  }

  #watchStack(): void {
    const { api } = this;
    const { fn: Context } = this.globals["MethodContext"] as unknown as {
      readonly fn: new (home: StackContext | null, setup: StackContext["setup"]) => StackContext;
    };
    api.withContext = (worker, setup) => {
      const home = this.context;
      const context = new Context(home, setup);
      this.context = context;
      if (home === null) {
        // A callback of the event loop: what it throws must not leave its stack behind.
        try {
          return worker(context);
        } finally {
          this.context = null;
        }
      }
      const result = worker(context);
      this.context = home;
      return result;
    };
    api.getThisContext = () => {
      this.context?.setup(this.context);
      return this.context;
    };
  }

  #watchChanges(): void {
    const { api } = this;
    const { addMethod, removeMethod, addClass, removeClass } = api;
    api.addMethod = (method, behavior) => {
      addMethod(method, behavior);
      this.onChange("method", methodName(behavior, method.selector), true);
    };
    api.removeMethod = (method, behavior) => {
      removeMethod(method, behavior);
      this.onChange("method", methodName(behavior, method.selector), false);
    };
    api.addClass = (name, ...more) => {
      const added = addClass(name, ...more);
      this.onChange("class", name, true);
      return added;
    };
    api.removeClass = (behavior) => {
      removeClass(behavior);
      this.onChange("class", behaviorName(behavior), false);
    };
  }
}

/** "Foo" or "Foo class". */
export function behaviorName({ name, instanceClass }: Behavior): string {
  return name ?? `${instanceClass?.name ?? "?"} class`;
}

function methodName(behavior: Behavior, selector: string): string {
  return `${behaviorName(behavior)} >> #${selector}`;
}

/** Loads AMD modules of Amber, each once, at once. */
function amdLoader(require: NodeJS.Require, folder: string): (name: string) => unknown {
  const loaded = new Map<string, unknown>();
  const scope = globalThis as { define?: (...args: unknown[]) => void };
  const load = (name: string): unknown => {
    if (loaded.has(name)) return loaded.get(name);
    const subfolder = name.startsWith("amber/core/") ? "src" : "base";
    let defined: unknown[] = [];
    const previous = scope.define;
    scope.define = (...args) => void (defined = args);
    require(join(folder, subfolder, `${posix.basename(name)}.js`));
    if (previous === undefined) delete scope.define;
    else scope.define = previous;
    const factory = defined.pop() as AmdModule;
    const [dependencies = []] = defined as [string[]?];
    const resolve = (dependency: string): string =>
      dependency.startsWith(".") ? posix.join(posix.dirname(name), dependency) : dependency;
    const requireOthers: AmdRequire = (names, onLoaded, onError) => {
      try {
        onLoaded(...names.map((one) => load(resolve(one))));
      } catch (error) {
        onError?.(error);
      }
    };
    const values = dependencies.map((one) => (one === "require" ? requireOthers : load(resolve(one))));
    loaded.set(name, factory(...values));
    return loaded.get(name);
  };
  return load;
}

// What the tools show of Amber's classes and methods, which need no evaluation: browsing, searching, completion and the
// contents of resources. A problem is thrown as a RequestError, whose message is the result.

/** A request that cannot be answered, such as one about a class that does not exist. */
export class RequestError extends Error {
  /** The end of the message that names tools. */
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(hint === undefined ? message : `${message}; ${hint}`);
    this.hint = hint;
  }
}

const MAX_VALUES = 100;
const MAX_METHODS = 500;

export class AmberBrowser {
  readonly #image: AmberImage;

  constructor(image: AmberImage) {
    this.#image = image;
  }

  /** A class, a trait or a metaclass by name, such as `Foo` or `Foo class`. */
  find(given: string): Behavior {
    const name = given.trim();
    const [, className = "", side] = /^(\S+)(\s+class)?$/.exec(name) ?? [];
    const { globals } = this.#image;
    const found = Object.hasOwn(globals, className) ? globals[className] : undefined;
    const behavior = side === undefined ? found : found?.a$cls;
    if (behavior?.localMethods === undefined) throw this.#unknown(name);
    return behavior;
  }

  browse(name: string): string {
    const behavior = this.find(name);
    const lines = [this.#headline(behavior)];
    const add = (title: string, values: readonly string[]): void => {
      if (values.length > 0) lines.push(`${title}: ${values.join(", ")}`);
    };
    add("Superclasses", superclasses(behavior).map(behaviorName));
    add("Subclasses", (behavior.subclasses ?? []).map(behaviorName).toSorted());
    add("Instance variables", behavior.slots ?? []);
    const inherited = superclasses(behavior).flatMap(({ slots = [] }) => slots);
    add("Inherited instance variables", inherited);
    add("Package", behavior.category === undefined ? [] : [behavior.category]);
    if (behavior.comment !== undefined && behavior.comment !== "") lines.push("", behavior.comment.trim());
    lines.push("", ...protocolLines("Methods", behavior));
    if (behavior.instanceClass === undefined && behavior.a$cls?.localMethods !== undefined)
      lines.push("", ...protocolLines("Class methods", behavior.a$cls));
    return lines.join("\n");
  }

  methodSource(className: string, selector: string): string {
    const behavior = this.find(className);
    const method = this.findMethod(behavior, selector);
    const owner = method.owner ?? behavior;
    const title = owner === behavior ? "" : `, inherited from ${behaviorName(owner)}`;
    const protocol = method.protocol === undefined ? "" : ` (${method.protocol})`;
    return `${methodName(behavior, method.selector)}${protocol}${title}\n\n${method.source}`;
  }

  findMethod(behavior: Behavior, given: string): Method {
    const selector = given.trim().replace(/^#/, "");
    for (const at of [behavior, ...superclasses(behavior)]) {
      const method = Object.hasOwn(at.methods, selector) ? at.methods[selector] : undefined;
      if (method !== undefined) return method;
    }
    const name = behaviorName(behavior);
    throw new RequestError(`${name} has no method #${selector}, and inherits none; browse-class lists its methods`);
  }

  searchClasses(pattern: string, max: number): string {
    const found = this.#behaviors().filter(({ name = "" }) => name.toLowerCase().includes(pattern.toLowerCase()));
    if (found.length === 0) return `No class has a name that contains ${pattern}.`;
    const lines = found.slice(0, max).map((behavior) => {
      const { superclass, category = "" } = behavior;
      const kind = superclass === undefined ? "trait" : `subclass of ${superclass?.name ?? "nil"}`;
      return `  ${behaviorName(behavior)} (${kind}, package ${category})`;
    });
    const rest = found.length > max ? [`  ... ${found.length - max} more`] : [];
    return [`${countText(found.length, "class", "classes")}:`, ...lines, ...rest].join("\n");
  }

  /** The methods for which the condition holds, in all classes. */
  methods(title: string, holds: (method: Method) => boolean): string {
    const found = this.#behaviors()
      .flatMap((behavior) => [behavior, behavior.a$cls])
      .flatMap((behavior) => {
        if (behavior?.localMethods === undefined) return [];
        return Object.values(behavior.localMethods)
          .filter(holds)
          .map(({ selector }) => methodName(behavior, selector));
      })
      .toSorted();
    if (found.length === 0) return `There are no ${title}.`;
    const shown = found.slice(0, MAX_METHODS).map((name) => `  ${name}`);
    const rest = found.length > shown.length ? [`  ... ${found.length - shown.length} more`] : [];
    return [`${countText(found.length, "method", "methods")} (${title}):`, ...shown, ...rest].join("\n");
  }

  /** The test classes among the named ones, in a package, or below a class. */
  testClasses(isWanted: (behavior: Behavior) => boolean): Behavior[] {
    return this.#behaviors().filter(
      (behavior) => behavior.name !== "TestCase" && this.#image.inherits(behavior, "TestCase") && isWanted(behavior),
    );
  }

  /** The class as the JSON of its resource. */
  classRecord(name: string): object {
    const behavior = this.find(name);
    return {
      name: behaviorName(behavior),
      superclass: behavior.superclass ? behaviorName(behavior.superclass) : null,
      instanceVariables: behavior.slots ?? [],
      methods: Object.keys(behavior.localMethods).toSorted(),
      classMethods: Object.keys(behavior.a$cls?.localMethods ?? {}).toSorted(),
      comment: behavior.comment ?? "",
      package: behavior.category ?? "",
    };
  }

  /** Completes the word before the position: variables first, then classes, then selectors. */
  complete(code: string, position: number, variables: readonly string[]): GuestCompletion {
    const [word = ""] = /[A-Za-z_][\w:]*$/.exec(code.slice(Math.max(0, position - MAX_WORD), position)) ?? [];
    const start = position - word.length;
    if (word === "") return { start, values: [] };
    const classes = this.#behaviors().map(({ name = "" }) => name);
    const pseudo = ["self", "super", "true", "false", "nil", "thisContext"];
    const selectors = this.#image.api.allSelectors();
    const fitting = (all: readonly string[]): string[] => all.filter((one) => one.startsWith(word) && one !== word);
    const values = new Set([
      ...fitting([...variables, ...pseudo]),
      ...fitting(classes).toSorted(byLength),
      ...fitting(selectors).toSorted(byLength),
    ]);
    return { start, values: [...values].slice(0, MAX_VALUES) };
  }

  /** Values for the argument of a resource template. */
  completeArgument(argument: string, value: string, className: string | undefined): object {
    const lower = value.toLowerCase();
    const all =
      argument === "selector" && className !== undefined
        ? Object.keys(this.find(className).methods)
        : this.#behaviors().map(({ name = "" }) => name);
    const found = all.filter((one) => one.toLowerCase().startsWith(lower)).toSorted();
    return { values: found.slice(0, MAX_VALUES), total: found.length };
  }

  /** The line for each definition. */
  definitionLine({ type, name }: Definition): string {
    if (type !== "class") return `  ${name}`;
    const { superclass, slots = [] } = this.find(name);
    return `  ${name} (subclass of ${superclass?.name ?? "nil"})${slots.length === 0 ? "" : `: ${slots.join(" ")}`}`;
  }

  #behaviors(): Behavior[] {
    return this.#image.api.traitsOrClasses
      .filter(({ name }) => name !== undefined && name !== "LiveWorkspace")
      .toSorted((a, b) => ((a.name ?? "") < (b.name ?? "") ? -1 : 1));
  }

  #headline(behavior: Behavior): string {
    const { superclass } = behavior;
    const name = behaviorName(behavior);
    if (superclass === undefined) return `Trait ${name}`;
    return superclass === null ? `${name}, without a superclass` : `${behaviorName(superclass)} subclass: ${name}`;
  }

  #unknown(name: string): RequestError {
    const near = this.#behaviors().find((one) => one.name?.toLowerCase() === name.toLowerCase())?.name;
    return near === undefined
      ? new RequestError(`There is no class ${name}`, "search-classes finds classes by a part of their names")
      : new RequestError(`There is no class ${name}; did you mean ${near}?`);
  }
}

function superclasses(behavior: Behavior): Behavior[] {
  const found: Behavior[] = [];
  for (let at = behavior.superclass; at; at = at.superclass) found.push(at);
  return found;
}

function protocolLines(title: string, { localMethods }: Behavior): string[] {
  const methods = Object.values(localMethods);
  if (methods.length === 0) return [`${title}: none`];
  const protocols = new Map<string, string[]>();
  for (const { selector, protocol = "" } of methods)
    protocols.set(protocol, [...(protocols.get(protocol) ?? []), selector]);
  const lines = [...protocols].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${title} (${methods.length}):`,
    ...lines.map(([protocol, selectors]) => `  ${protocol || "unclassified"}: ${selectors.toSorted().join(", ")}`),
  ];
}

function byLength(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

export function countText(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
