// What the tools show of Amber's classes and methods, which need no evaluation: browsing, searching, completion and the
// contents of resources. A problem is thrown as a RequestError, whose message is the result.

import type { Definition, GuestCompletion } from "../runtime.ts";
import { type Behavior, type Method, MAX_WORD, type AmberImage, behaviorName, methodName } from "./amber-image.ts";

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
  find(text: string): Behavior {
    const name = text.trim();
    const [, className = "", side] = /^(\S+)(\s+class)?$/.exec(name) ?? [];
    const { globals } = this.#image;
    const global = Object.hasOwn(globals, className) ? globals[className] : undefined;
    const behavior = side === undefined ? global : global?.a$cls;
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

  findMethod(behavior: Behavior, text: string): Method {
    const selector = text.trim().replace(/^#/, "");
    for (const at of [behavior, ...superclasses(behavior)]) {
      const method = Object.hasOwn(at.methods, selector) ? at.methods[selector] : undefined;
      if (method !== undefined) return method;
    }
    const name = behaviorName(behavior);
    throw new RequestError(`${name} has no method #${selector}, and inherits none; browse-class lists its methods`);
  }

  searchClasses(pattern: string, max: number): string {
    const behaviors = this.#behaviors().filter(({ name = "" }) => name.toLowerCase().includes(pattern.toLowerCase()));
    if (behaviors.length === 0) return `No class has a name that contains ${pattern}.`;
    const lines = behaviors.slice(0, max).map((behavior) => {
      const { superclass, category = "" } = behavior;
      const kind = superclass === undefined ? "trait" : `subclass of ${superclass?.name ?? "nil"}`;
      return `  ${behaviorName(behavior)} (${kind}, package ${category})`;
    });
    const rest = behaviors.length > max ? [`  ... ${behaviors.length - max} more`] : [];
    return [`${countText(behaviors.length, "class", "classes")}:`, ...lines, ...rest].join("\n");
  }

  /** The methods for which the condition holds, in all classes. */
  methods(title: string, holds: (method: Method) => boolean): string {
    const names = this.#behaviors()
      .flatMap((behavior) => [behavior, behavior.a$cls])
      .flatMap((behavior) => {
        if (behavior?.localMethods === undefined) return [];
        return Object.values(behavior.localMethods)
          .filter(holds)
          .map(({ selector }) => methodName(behavior, selector));
      })
      .toSorted();
    if (names.length === 0) return `There are no ${title}.`;
    const lines = names.slice(0, MAX_METHODS).map((name) => `  ${name}`);
    const rest = names.length > lines.length ? [`  ... ${names.length - lines.length} more`] : [];
    return [`${countText(names.length, "method", "methods")} (${title}):`, ...lines, ...rest].join("\n");
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
    const fitting = (all: readonly string[]): string[] => all.filter((name) => name.startsWith(word) && name !== word);
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
    const matches = all.filter((name) => name.toLowerCase().startsWith(lower)).toSorted();
    return { values: matches.slice(0, MAX_VALUES), total: matches.length };
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
    const near = this.#behaviors().find((behavior) => behavior.name?.toLowerCase() === name.toLowerCase())?.name;
    return near === undefined
      ? new RequestError(`There is no class ${name}`, "search-classes finds classes by a part of their names")
      : new RequestError(`There is no class ${name}; did you mean ${near}?`);
  }
}

function superclasses(behavior: Behavior): Behavior[] {
  const superclasses: Behavior[] = [];
  for (let at = behavior.superclass; at; at = at.superclass) superclasses.push(at);
  return superclasses;
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

export function countText(count: number, singular: string, many: string): string {
  return `${count} ${count === 1 ? singular : many}`;
}
