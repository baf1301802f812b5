// Evaluates Smalltalk on Amber: expressions with variables that are kept, definitions in chunk format, and code in a
// frame of the last error. Turns errors into conditions with Smalltalk's frames and their variables.

import { performance } from "node:perf_hooks";
import process from "node:process";
import { firstChars } from "../../core/text.ts";
import type { Condition, Definition, Frame, GuestEvaluation } from "../runtime.ts";
import { behaviorName, type AmberImage, type Behavior, type Method, type StackContext } from "./amber-image.ts";
import { PharoDefinitions } from "./amber-pharo.ts";
import { SHORT, type AmberPrinter, type PrintOptions } from "./amber-printer.ts";
import { chunks, isChunked, positionText, scan } from "./scan.ts";

const CLASS = "LiveWorkspace";
const DO_IT = "xxxDoIt";
const MAX_FRAMES = 20;
const MAX_LOCALS = 20;
const MAX_MESSAGE = 5_000;
/** More variables than one piece of code could need. */
const MAX_NEW_VARIABLES = 1_000;

/** Frames that say nothing to the user: how errors are signaled and handlers are found, and how blocks are called. */
const INTERNAL =
  /^(?:signal|signal:|doesNotUnderstand:|selector:arguments:notUnderstoodBy:|value|value:|value:value:|value:value:value:|valueWithPossibleArguments:|on:do:|ensure:|tryCatch:|try:ifTrue:catch:|tryIfTrue:catch:|basicSignal|signalOn:|error:)$/;

/** An error that is the user's, with what is known about it. */
export interface LastError {
  readonly condition: Condition;
  readonly contexts: readonly StackContext[];
}

export class AmberWorkspace {
  lastError: LastError | undefined;
  readonly #image: AmberImage;
  readonly #printer: AmberPrinter;
  readonly #class: Behavior & { slots: string[] };
  /** The receiver of the code; its instance variables are the variables of the session. */
  readonly #receiver: Record<string, unknown>;
  /** What was defined in the session: classes and methods by name. */
  readonly #definitions = new Map<string, "class" | "method">();
  /** Warnings about the code of the current evaluation. */
  #warnings: GuestEvaluation["warnings"] = [];
  /** What the current evaluation has defined. */
  #defined: Definition[] = [];
  /** The values of the last evaluation, held until the next, so that large ones can be inspected. */
  #results: readonly unknown[] = [];
  readonly #pharo: PharoDefinitions;
  /** The bottom of the stack of an evaluation. */
  readonly #root: StackContext;

  constructor(image: AmberImage, printer: AmberPrinter) {
    this.#image = image;
    this.#printer = printer;
    this.#pharo = new PharoDefinitions(image);
    const { globals } = image;
    image.send(globals["DoIt"], "subclass:slots:package:", CLASS, [], CLASS);
    this.#class = globals[CLASS] as Behavior & { slots: string[] };
    this.#receiver = image.send(this.#class, "new") as Record<string, unknown>;
    this.#root = {
      homeContext: null,
      setup: () => undefined,
      receiver: null,
      selector: null,
      locals: {},
      outerContext: null,
    };
    image.onChange = (type, name, isAdded) => {
      if (name.startsWith(CLASS) || name.includes(` #${DO_IT}`)) return;
      if (isAdded) {
        this.#definitions.set(name, type);
        this.#define({ type, name });
      } else this.#definitions.delete(name);
    };
  }

  get variables(): readonly { readonly name: string; readonly value: unknown }[] {
    return this.#class.slots.map((name) => ({ name, value: this.#receiver[name] }));
  }

  definitions(type: "class" | "method"): string[] {
    return [...this.#definitions].flatMap(([name, kind]) => (kind === type ? [name] : []));
  }

  evaluate(code: string, options: PrintOptions): GuestEvaluation {
    return this.#guarded(options, true, () => {
      if (code.trim() === "") return [];
      if (isChunked(code)) return this.#evaluateChunks(code);
      return [this.#evaluateCode(code)];
    });
  }

  /** Evaluates code with the receiver and the variables of a frame of the last error. */
  evaluateInFrame(number: number, code: string, options: PrintOptions): GuestEvaluation | string {
    const context = this.lastError?.contexts[number];
    if (this.lastError === undefined) return "There has been no error in this session, so there are no frames.";
    if (context === undefined) return `The last error has no frame ${number}; describe-last-error lists its frames.`;
    const { receiver, locals } = frameOf(context);
    const names = Object.keys(locals);
    const pattern = names.length === 0 ? DO_IT : names.map((name, index) => `${DO_IT}${index}: ${name}`).join(" ");
    const selector = names.length === 0 ? DO_IT : names.map((_, index) => `${DO_IT}${index}:`).join("");
    // The receiver of JavaScript code is not an object of Smalltalk.
    const target = this.#image.classOf(receiver) === undefined ? this.#receiver : receiver;
    const behavior = this.#image.classOf(target) ?? this.#class;
    return this.#guarded(options, false, () => {
      const method = this.#compile(code, behavior, pattern);
      try {
        return [this.#image.send(target, selector, ...names.map((name) => locals[name]))];
      } finally {
        this.#image.send(behavior, "removeCompiledMethod:", method);
      }
    });
  }

  /** Compiles a method and returns its selector. Throws a syntax error with its position in the source. */
  compileMethod(behavior: Behavior, source: string, protocol: string): string {
    const { problem } = scan(source);
    if (problem !== undefined) throw new SourceError(problem);
    const { globals } = this.#image;
    try {
      const compiler = this.#image.send(globals["Compiler"], "new");
      const method = this.#image.send(compiler, "install:forClass:protocol:", source, behavior, protocol);
      return this.#image.send(method, "selector") as string;
    } catch (error) {
      throw this.#sourceError(error, source, 0);
    }
  }

  /** The frames of the evaluation that was just terminated. */
  interruptedFrames(): Frame[] {
    const { context } = this.#image;
    this.#image.context = null;
    return this.#frames(this.#contexts(context));
  }

  /** Runs code of the user; what it throws is returned as a condition. */
  guard<T>(work: () => T): { readonly value: T } | { readonly error: LastError } {
    this.#image.context = this.#root;
    try {
      return { value: work() };
    } catch (thrown) {
      return { error: this.#errorOf(thrown) };
    } finally {
      this.#image.context = null;
    }
  }

  #guarded(options: PrintOptions, isRemembered: boolean, work: () => unknown[]): GuestEvaluation {
    const startedAt = performance.now();
    const usedBefore = process.cpuUsage();
    this.#defined = [];
    this.#warnings = [];
    this.#results = [];
    const outcome = this.guard(() => {
      this.#results = work();
      return this.#results.map((value) => this.#printer.print(value, options));
    });
    const used = process.cpuUsage(usedBefore);
    const common = {
      warnings: this.#warnings,
      timing: { realMs: performance.now() - startedAt, runMs: (used.user + used.system) / 1000 },
      defined: this.#defined,
    };
    if ("error" in outcome) {
      if (isRemembered) this.lastError = outcome.error;
      return { ...common, status: "error", values: [], condition: outcome.error.condition };
    }
    const values = outcome.value.map(({ text }) => text);
    const handles = outcome.value.map(({ handle }) => handle ?? null);
    return {
      ...common,
      status: "ok",
      values,
      ...(handles.some((handle) => handle !== null) && { handles }),
    };
  }

  #define(definition: Definition): void {
    const { type, name } = definition;
    if (!this.#defined.some((known) => known.type === type && known.name === name)) this.#defined.push(definition);
  }

  #evaluateCode(code: string): unknown {
    this.#pharo.prepare(code);
    const { problem, assigned } = scan(code);
    if (problem !== undefined) throw new SourceError(problem);
    for (let tries = 0; ; tries += 1) {
      try {
        this.#compile(code, this.#class, DO_IT);
        break;
      } catch (error) {
        const name = error instanceof SourceError ? error.unknownVariable : undefined;
        if (name === undefined || !assigned.has(name) || tries === MAX_NEW_VARIABLES) throw error;
        this.#class.slots.push(name);
        this.#define({ type: "variable", name });
      }
    }
    return this.#image.send(this.#receiver, DO_IT);
  }

  #compile(code: string, behavior: Behavior, pattern: string): Method {
    const source = `${pattern} ^ [\n${code}\n] value`;
    const { globals } = this.#image;
    const compiler = this.#image.send(globals["Compiler"], "new");
    try {
      const method = this.#image.send(compiler, "install:forClass:protocol:", source, behavior, "**xxxDoIt") as Method;
      const unknown = method.referencedClasses.filter((name) => !(name in this.#image.globals));
      const warnings = unknown.map((name) => ({
        type: "UnknownName",
        message: `${name} is not defined, so it is nil`,
      }));
      this.#warnings = [...this.#warnings, ...warnings];
      return method;
    } catch (error) {
      // What the compiler threw has left its stack behind.
      this.#image.context = this.#root;
      throw this.#sourceError(error, code, 1);
    }
  }

  /** Returns the values of the chunks that are expressions; only the last is the result. */
  #evaluateChunks(code: string): unknown[] {
    const all = chunks(code);
    let value: unknown[] = [];
    for (let at = 0; at < all.length; at += 1) {
      const chunk = all[at] ?? "";
      const [, className, isClassSide, protocol] = /^(\w+)( class)? methodsFor: '((?:[^']|'')*)'/.exec(chunk) ?? [];
      const [, commented] = /^(\w+) commentStamp/.exec(chunk) ?? [];
      if (className !== undefined) {
        const behavior = this.#behavior(`${className}${isClassSide ?? ""}`);
        while (all[++at] !== undefined && all[at] !== "") this.compileMethod(behavior, all[at] ?? "", protocol ?? "");
      } else if (commented !== undefined) {
        at += 1;
        this.#image.send(this.#behavior(commented), "comment:", all[at] ?? "");
      } else if (chunk !== "") value = [this.#evaluateCode(chunk)];
    }
    return value;
  }

  #behavior(name: string): Behavior {
    const [, className = "", isClassSide] = /^(\S+)( class)?$/.exec(name) ?? [];
    const behavior = Object.hasOwn(this.#image.globals, className) ? this.#image.globals[className] : undefined;
    const target = isClassSide === undefined ? behavior : behavior?.a$cls;
    if (target === undefined) throw new SourceError(`There is no class ${name}`);
    return target;
  }

  /** An error of the compiler, with the position in the user's source. Other errors are returned as they are. */
  #sourceError(error: unknown, source: string, addedLines: number): unknown {
    const type = this.#image.classOf(error)?.name;
    if (type === "UnknownVariableError") {
      const name = this.#image.send(error, "variableName") as string;
      return new SourceError(`The variable ${name} is not defined`, type, name);
    }
    const message = String(this.#image.send(error, "messageText"));
    const [, atLine, atColumn, what = ""] = /^Parse error on line (\d+) column (\d+) : (.*)/s.exec(message) ?? [];
    // What Amber's parser says if the source ends too early.
    const isCutOff = message === "Cannot add self to a string.";
    if (atLine === undefined && !isCutOff) return type === undefined ? error : new SourceError(message, type);
    const line = Number(atLine) - addedLines;
    if (isCutOff || line > source.split("\n").length) return new SourceError("Unexpected end of the code");
    const isToolName = what.startsWith("Unexpected character _") && Object.hasOwn(this.#image.globals, "Tools");
    const advice = isToolName
      ? "; call a tool with such a name by Tools call: 'server.tool_name' with: aDictionary"
      : "";
    return new SourceError(`${what} (${positionText({ line, column: Number(atColumn) })})${advice}`);
  }

  #errorOf(thrown: unknown): LastError {
    const image = this.#image;
    if (thrown instanceof SourceError) {
      const { type, message } = thrown;
      return { condition: { type, message, restarts: [], frames: [] }, contexts: [] };
    }
    const behavior = image.classOf(thrown);
    const isSmalltalk = image.inherits(behavior, "Error") && !(thrown instanceof RangeError);
    const isNative = thrown instanceof Error && behavior?.name === "Error" && thrown.constructor !== Error;
    const context = isSmalltalk ? (thrown as { readonly context?: StackContext }).context : undefined;
    const contexts = this.#contexts(image.isNil(context) ? image.context : (context ?? null));
    const type = isNative ? thrown.name : (behavior?.name ?? "Error");
    const message = firstChars(this.#messageOf(thrown, isSmalltalk && !isNative), MAX_MESSAGE);
    return { condition: { type, message, restarts: [], frames: this.#frames(contexts) }, contexts };
  }

  #messageOf(thrown: unknown, isSmalltalk: boolean): string {
    try {
      if (isSmalltalk) return String(this.#image.send(thrown, "messageText"));
      if (thrown instanceof RangeError && /call stack/.test(thrown.message))
        return "The recursion is too deep: the stack of the session is full";
      return thrown instanceof Error ? thrown.message : this.#printer.print(thrown, SHORT).text;
    } catch {
      return "The error's messageText fails";
    }
  }

  /** The frames of the user's code and of what it called, innermost first. */
  #contexts(innermost: StackContext | null): StackContext[] {
    const contexts: StackContext[] = [];
    for (let at = innermost; at !== null && at !== this.#root && contexts.length < MAX_FRAMES; at = at.homeContext) {
      at.setup(at);
      const { selector, receiver } = at;
      const isCompiler = this.#image.classOf(receiver)?.name === "Compiler" && /^(?:install|eval)/.test(selector ?? "");
      if (isCompiler || (selector !== null && INTERNAL.test(selector))) continue;
      // The method around the code; the code itself is the block in it.
      if (selector?.startsWith(DO_IT) === true) continue;
      contexts.push(at);
    }
    return contexts;
  }

  #frames(contexts: readonly StackContext[]): Frame[] {
    return contexts.map((context, number) => {
      const locals = Object.entries(context.locals)
        .slice(0, MAX_LOCALS)
        .map(([name, value]) => {
          const { text, handle } = this.#printer.printSafely(value);
          return { name, value: text, ...(handle !== undefined && { handle }) };
        });
      return { number, text: this.#frameText(context), ...(locals.length > 0 && { locals }) };
    });
  }

  #frameText(context: StackContext): string {
    const { method, isBlock, isNested } = frameOf(context);
    const { selector, receiver } = method;
    if (selector?.startsWith(DO_IT) === true)
      return isNested ? "a block (in the evaluated code)" : "the evaluated code";
    const behavior = this.#image.classOf(receiver);
    const owner = behavior === undefined ? undefined : ownerOf(behavior, selector ?? "");
    const name = behavior === undefined ? "JavaScript" : behaviorName(behavior);
    const inherited = owner === undefined || owner === behavior ? "" : ` (${behaviorName(owner)})`;
    const text = `${name}${inherited} >> #${selector ?? "?"}`;
    return isBlock ? `a block (in ${text})` : text;
  }
}

interface FrameFacts {
  /** The context of the method, which is the frame itself unless the frame is a block. */
  readonly method: StackContext;
  readonly isBlock: boolean;
  /** Whether the block stands within another block. */
  readonly isNested: boolean;
  readonly receiver: unknown;
  /** The variables that the frame can see, the outer ones first. */
  readonly locals: Readonly<Record<string, unknown>>;
}

function frameOf(context: StackContext): FrameFacts {
  let at = context;
  let depth = 0;
  let locals = { ...context.locals };
  while (at.outerContext !== null && at.selector === null) {
    at = at.outerContext;
    at.setup(at);
    locals = { ...at.locals, ...locals };
    depth += 1;
  }
  return { method: at, isBlock: depth > 0, isNested: depth > 1, receiver: at.receiver, locals };
}

/** The class that defines the method. */
function ownerOf(behavior: Behavior, selector: string): Behavior | undefined {
  for (let at: Behavior | null | undefined = behavior; at; at = at.superclass) {
    if (Object.hasOwn(at.methods, selector)) return at;
  }
  return undefined;
}

/** The source could not be compiled. */
export class SourceError extends Error {
  readonly type: string;
  /** The variable that is not defined, if that is the error. */
  readonly unknownVariable: string | undefined;

  constructor(message: string, type = "ParseError", unknownVariable?: string) {
    super(message);
    this.type = type;
    this.unknownVariable = unknownVariable;
  }
}
