// Loads Amber into this process, without a module loader of its own: its files are AMD modules, which call `define`.
// Replaces how Amber keeps track of its stack, so that the stack of an evaluation that failed or was terminated can be
// read, and does not stay behind. Also records what is defined.

import { createRequire } from "node:module";
import { dirname, join, posix } from "node:path";

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
export const MAX_WORD = 1_000;

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

export function methodName(behavior: Behavior, selector: string): string {
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
        onLoaded(...names.map((name) => load(resolve(name))));
      } catch (error) {
        onError?.(error);
      }
    };
    const values = dependencies.map((dependency) =>
      dependency === "require" ? requireOthers : load(resolve(dependency)),
    );
    loaded.set(name, factory(...values));
    return loaded.get(name);
  };
  return load;
}
