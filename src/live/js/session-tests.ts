// Tests that the code of a session defines with node:test: they are kept by name, and run-tests runs them in the main
// thread, with the session's state. Node's own runner would run a test once, when it is defined, and then catch the
// errors of all that runs later. Modules in files still get Node's runner, without its listeners for errors.

import { Buffer } from "node:buffer";
import { createRequire } from "node:module";
import process from "node:process";
import { types } from "node:util";
import { lastChars } from "../../core/text.ts";
import type { Thrown } from "./messages.ts";
import { describeThrown } from "./print.ts";

// Saved because the user's code may declare these names.
const { defineProperties, defineProperty, entries, getOwnPropertyDescriptors } = Object;
const { isModuleNamespaceObject } = types;
const NativePromise = Promise;
const race = NativePromise.race.bind(NativePromise) as (promises: readonly Promise<void>[]) => Promise<void>;
const NativeError = Error;
const NativeRegExp = RegExp;
const NativeAbortController = AbortController;
const startTimer = setTimeout;
const stopTimer = clearTimeout;
const enqueueMicrotask = queueMicrotask;
const toText = String;

const MODULE = "node:test";
const RUNNER = "(node:internal/test_runner/";
const MAX_OUTPUT = 20_000;
const HOOKS = ["before", "after", "beforeEach", "afterEach"] as const;

type HookName = (typeof HOOKS)[number];
type Done = (error?: unknown) => void;
type Body = (context: unknown, done?: Done) => unknown;

interface Options {
  readonly skip?: unknown;
  readonly todo?: unknown;
  readonly timeout?: unknown;
  readonly plan?: unknown;
}

interface Definition {
  readonly name: string;
  readonly isSuite: boolean;
  readonly options: Options;
  readonly body: Body;
  /** The evaluation that has defined it. */
  readonly job: number | undefined;
}

interface Hook {
  readonly kind: HookName;
  readonly body: Body;
  readonly job: number | undefined;
}

/** Tests with common hooks: those of the session, of a suite, or the subtests of a test. */
class Group {
  members: Definition[] = [];
  hooks: Hook[] = [];
  /** Set when its `before` hooks have begun. */
  prepared: Promise<void> | undefined;

  of(kind: HookName): Body[] {
    return this.hooks.filter((hook) => hook.kind === kind).map(({ body }) => body);
  }
}

/** What a run has found. The controller makes the reasons, since it knows the columns that the user wrote. */
export interface SessionTestResults {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly { readonly name: string; readonly thrown: Thrown }[];
  readonly output: string;
}

type Define = (...args: unknown[]) => Promise<unknown>;

export class SessionTests {
  readonly #job: () => number | undefined;
  readonly #root = new Group();
  #module: (Define & Record<string, unknown>) | undefined;
  #run: Run | undefined;
  #defined = 0;

  /** `job` returns the id of the job that runs. */
  constructor(job: () => number | undefined) {
    this.#job = job;
  }

  /** The session's `require`. */
  wrapRequire(require: NodeJS.Require): NodeJS.Require {
    const requireForTests = (name: string): unknown =>
      name === MODULE ? this.#testModule() : (require(name) as unknown);
    return defineProperties(requireForTests, getOwnPropertyDescriptors(require)) as NodeJS.Require;
  }

  /** The session's own form of a module that was imported. */
  imported(value: unknown): unknown {
    if (!isModuleNamespaceObject(value)) return value;
    const { default: main, describe, mock } = value as Readonly<Record<string, unknown>>;
    const isLike = describe !== undefined && mock !== undefined;
    return isLike && main === nodeTest() ? this.#testModule() : value;
  }

  /** Whether a test runs, which then fails. */
  fail(error: unknown): boolean {
    return this.#run?.fail(error) === true;
  }

  /** How many tests and suites were defined since it was last called. */
  takeDefined(): number {
    const defined = this.#defined;
    this.#defined = 0;
    return defined;
  }

  /** Runs the tests whose names match. Undefined if the session has none. */
  async run(pattern: unknown, isOver: () => boolean): Promise<SessionTestResults | undefined> {
    if (this.#root.members.length === 0) return undefined;
    const run = new Run(typeof pattern === "string" ? toRegExp(pattern) : undefined, isOver);
    this.#run = run;
    this.#root.prepared = undefined;
    try {
      await run.all([...this.#root.members], [this.#root], []);
      return run.results();
    } finally {
      if (this.#run === run) this.abort();
    }
  }

  /** Gives up a run. What its tests have printed is printed then. */
  abort(): void {
    const run = this.#run;
    this.#run = undefined;
    run?.close();
  }

  #testModule(): Define & Record<string, unknown> {
    if (this.#module !== undefined) return this.#module;
    const test = this.#definer(false);
    const suite = this.#definer(true);
    const hooks = HOOKS.map((kind) => [kind, (body: Body) => this.#hook(kind, body)] as const);
    const members = { test, it: test, describe: suite, suite, ...fromEntries(hooks), default: test };
    const { length: _length, name: _name, prototype: _prototype, ...others } = getOwnPropertyDescriptors(nodeTest());
    for (const [name, descriptor] of entries(others)) if (!(name in test)) defineProperty(test, name, descriptor);
    for (const [name, value] of entries(members))
      defineProperty(test, name, { value, enumerable: true, writable: true });
    this.#module = test;
    return test;
  }

  #definer(isSuite: boolean): Define & Record<string, unknown> {
    const define =
      (fixed: Options): Define =>
      async (...args) =>
        this.#define({ ...toDefinition(args, isSuite, fixed), job: this.#job() });
    const variants = { skip: define({ skip: true }), todo: define({ todo: true }), only: define({}) };
    return defineProperties(define({}), getOwnPropertyDescriptors(variants)) as Define & Record<string, unknown>;
  }

  #define(definition: Definition): Promise<void> | undefined {
    if (this.#run?.group !== undefined) return void this.#run.group.members.push(definition);
    // A test in a test is a part of it.
    if (this.#run?.context !== undefined) return this.#run.context.subtest(definition);
    const { name, job } = definition;
    this.#root.members = this.#root.members.filter((member) => member.name !== name || member.job === job);
    this.#root.members.push(definition);
    this.#defined += 1;
    return undefined;
  }

  #hook(kind: HookName, body: Body): void {
    const group = this.#run?.group ?? this.#run?.context?.group ?? this.#root;
    const job = this.#job();
    // The same code that is evaluated again replaces the hook.
    const isOther = (hook: Hook): boolean =>
      hook.kind !== kind || hook.job === job || toText(hook.body) !== toText(body);
    group.hooks = [...group.hooks.filter(isOther), { kind, body, job }];
  }
}

/** One run of the session's tests, one test after the other. */
class Run {
  /** The suite whose body runs. */
  group: Group | undefined;
  /** The test that runs. */
  context: TestContext | undefined;
  readonly #pattern: RegExp | undefined;
  readonly #isOver: () => boolean;
  readonly #counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #failures: { name: string; thrown: Thrown }[] = [];
  readonly #release: () => void;
  #output = "";
  #fail: ((error: unknown) => void) | undefined;

  constructor(pattern: RegExp | undefined, isOver: () => boolean) {
    this.#pattern = pattern;
    this.#isOver = isOver;
    const print = (text: string): void => void (this.#output = lastChars(this.#output + text, MAX_OUTPUT));
    const streams = [process.stdout, process.stderr].map((stream) => {
      // Unbound on purpose: it is put back.
      // oxlint-disable-next-line typescript/unbound-method
      const { write } = stream;
      stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
        print(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
        const callback = typeof encoding === "function" ? encoding : done;
        if (typeof callback === "function") process.nextTick(callback);
        return true;
      };
      return { stream, write };
    });
    this.#release = () => {
      for (const { stream, write } of streams) stream.write = write;
    };
  }

  fail(error: unknown): boolean {
    this.#fail?.(error);
    return this.#fail !== undefined;
  }

  results(): SessionTestResults {
    const output = this.#output;
    this.#output = "";
    return { ...this.#counts, failures: this.#failures, output };
  }

  close(): void {
    this.#fail = undefined;
    this.#release();
    if (this.#output !== "") process.stdout.write(this.#output);
  }

  /** Runs the members of the last group. `path` has the names of the suites and tests around them. */
  async all(members: readonly Definition[], groups: readonly Group[], path: readonly string[]): Promise<void> {
    for (const member of members) {
      if (this.#isOver()) return;
      await (member.isSuite ? this.#suite(member, groups, path) : this.test(member, groups, path));
    }
    await this.#finish(groups, path);
  }

  async #finish(groups: readonly Group[], path: readonly string[]): Promise<void> {
    const group = groups.at(-1);
    if (group?.prepared === undefined) return;
    for (const body of group.of("after")) {
      const outcome = await this.#attempt(body, {}, undefined);
      if (outcome !== undefined) this.#record([...path, "(after hook)"], outcome);
    }
  }

  async #suite(suite: Definition, groups: readonly Group[], path: readonly string[]): Promise<void> {
    const { name, options, body } = suite;
    const whole = [...path, name];
    if (isSet(options.skip)) {
      this.#counts.skipped += 1;
      return;
    }
    const group = new Group();
    const outer = this.group;
    this.group = group;
    const outcome = await this.#attempt(body, { name, fullName: whole.join(" > ") }, options.timeout);
    this.group = outer;
    if (outcome !== undefined) return this.#record(whole, outcome);
    const members = isSet(options.todo)
      ? group.members.map((member) => withOptions(member, { todo: true }))
      : group.members;
    await this.all(members, [...groups, group], whole);
  }

  async test(definition: Definition, groups: readonly Group[], path: readonly string[]): Promise<void> {
    const { name, options, body } = definition;
    const whole = [...path, name];
    if (this.#pattern?.test(whole.join(" ")) === false && !this.#pattern.test(name)) return;
    if (isSet(options.skip)) {
      this.#counts.skipped += 1;
      return;
    }
    const outer = this.context;
    const context = new TestContext(whole, options, (inner, group) => this.test(inner, [...groups, group], whole));
    this.context = context;
    let outcome = await this.#attempt(() => prepare(groups, context), context, undefined);
    outcome ??= await this.#attempt(body, context, options.timeout);
    outcome ??= await this.#attempt(() => context.complete(), context, undefined);
    for (const group of [context.group, ...groups.toReversed()]) {
      for (const hook of group.of(group === context.group ? "after" : "afterEach"))
        outcome = (await this.#attempt(hook, context, undefined)) ?? outcome;
    }
    context.end();
    this.context = outer;
    if (context.isSkipped) this.#counts.skipped += 1;
    else if (outcome !== undefined) this.#record(whole, outcome);
    else this.#counts.passed += 1;
  }

  #record(path: readonly string[], { error }: Failure): void {
    this.#counts.failed += 1;
    this.#failures.push({ name: path.join(" > "), thrown: describeThrown(error) });
  }

  /** Also fails at an error of a callback that nothing catches. */
  async #attempt(body: Body, context: unknown, timeout: unknown): Promise<Failure | undefined> {
    const outer = this.#fail;
    let timer: NodeJS.Timeout | undefined;
    try {
      const failed = new NativePromise<never>((_resolve, reject) => {
        this.#fail = reject;
        if (typeof timeout === "number" && timeout < 2 ** 31) {
          timer = startTimer(() => reject(new NativeError(`test timed out after ${timeout}ms`)), timeout);
        }
      });
      await race([failed, call(body, context)]);
      return undefined;
    } catch (error) {
      return { error };
    } finally {
      stopTimer(timer);
      this.#fail = outer;
    }
  }
}

interface Failure {
  readonly error: unknown;
}

/** The `before` hooks of all groups, once for each group, and the `beforeEach` hooks. */
async function prepare(groups: readonly Group[], context: TestContext): Promise<void> {
  for (const group of groups) await (group.prepared ??= callAll(group.of("before"), context));
  for (const group of groups) await callAll(group.of("beforeEach"), context);
}

async function callAll(bodies: readonly Body[], context: TestContext): Promise<void> {
  for (const body of bodies) await call(body, context);
}

/** A body with two parameters calls the second when it has ended. */
async function call(body: Body, context: unknown): Promise<void> {
  if (body.length < 2) return void (await body(context));
  await new NativePromise<void>((resolve, reject) => {
    void body(context, (error) => (isSet(error) ? reject(error) : resolve()));
  });
}

type Check = (...args: unknown[]) => unknown;

interface Mock {
  restoreAll(): void;
}

/** The argument of a test, with the methods of Node's TestContext that need no files. */
class TestContext {
  readonly name: string;
  readonly fullName: string;
  readonly group = new Group();
  isSkipped: boolean;
  readonly #subtest: (definition: Definition, group: Group) => Promise<void>;
  readonly #abort = new NativeAbortController();
  #subtests: Promise<void> = NativePromise.resolve();
  #mock: Mock | undefined;
  #assert: object | undefined;
  #planned: number | undefined;
  #checks = 0;

  constructor(
    path: readonly string[],
    options: Options,
    subtest: (definition: Definition, group: Group) => Promise<void>,
  ) {
    this.name = path.at(-1) ?? "";
    this.fullName = path.join(" > ");
    this.isSkipped = isSet(options.todo);
    this.#subtest = subtest;
    if (typeof options.plan === "number") this.#planned = options.plan;
    for (const kind of HOOKS) {
      const add = (body: Body): void => void this.group.hooks.push({ kind, body, job: undefined });
      defineProperty(this, kind, { value: add });
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get mock(): Mock {
    const { mock } = nodeTest() as unknown as { readonly mock: Mock };
    return (this.#mock ??= new (mock.constructor as new () => Mock)());
  }

  /** node:assert, with functions that are counted. */
  get assert(): object {
    if (this.#assert !== undefined) return this.#assert;
    const assert = createRequire(import.meta.url)("node:assert") as Check;
    const counted =
      (check: Check): Check =>
      (...args) => {
        this.#checks += 1;
        return check(...args);
      };
    const checks = entries(assert).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "function" && !/^[A-Z]/.test(name) ? counted(value as Check) : value,
    ]);
    return (this.#assert = defineProperties(
      counted(assert),
      getOwnPropertyDescriptors(fromEntries(checks as [string, unknown][])),
    ));
  }

  readonly test = async (...args: unknown[]): Promise<void> =>
    this.subtest({ ...toDefinition(args, false, {}), job: undefined });

  /** Subtests run one after the other, as far as the test does not wait for them. */
  subtest(definition: Definition): Promise<void> {
    this.#checks += 1;
    const before = this.#subtests;
    const after = async (): Promise<void> => {
      await before;
      await this.#subtest(definition, this.group);
    };
    return (this.#subtests = after());
  }

  /** Waits for the subtests, and checks the plan. */
  async complete(): Promise<void> {
    await this.#subtests;
    if (this.#planned === undefined || this.#planned === this.#checks) return;
    throw new NativeError(`plan expected ${this.#planned} assertions but received ${this.#checks}`);
  }

  end(): void {
    this.#mock?.restoreAll();
    this.#abort.abort();
  }

  plan(count: number): void {
    this.#planned = count;
  }

  skip(): void {
    this.isSkipped = true;
  }

  todo(): void {
    this.isSkipped = true;
  }

  diagnostic(message: unknown): void {
    process.stdout.write(`${toText(message)}\n`);
  }

  runOnly(): void {
    // Without Node's option for it, `only` has no effect in Node either.
  }
}

/** Reads the arguments `[name][, options][, body]`. */
function toDefinition(args: readonly unknown[], isSuite: boolean, fixed: Options): Omit<Definition, "job"> {
  const body = (args.find((arg) => typeof arg === "function") ?? (() => undefined)) as Body;
  const testOptions = args.find((arg) => typeof arg === "object" && arg !== null);
  const [first] = args;
  const name = typeof first === "string" ? first : body.name;
  return { name: name === "" ? "<anonymous>" : name, isSuite, options: { ...testOptions, ...fixed }, body };
}

function withOptions(definition: Definition, options: Options): Definition {
  return { ...definition, options: { ...definition.options, ...options } };
}

/** Whether an option such as `skip`, which may be a reason, is on. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== false && value !== null;
}

function fromEntries(pairs: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [name, value] of pairs) made[name] = value;
  return made;
}

/** The pattern of Node's option: a regular expression, also as a literal with flags. */
function toRegExp(pattern: string): RegExp {
  const [, source, flags] = /^\/(.*)\/([a-z]*)$/s.exec(pattern) ?? [];
  return source === undefined ? new NativeRegExp(pattern) : new NativeRegExp(source, flags?.replaceAll(/[gy]/g, ""));
}

function nodeTest(): object {
  return createRequire(import.meta.url)(MODULE) as object;
}

/** Node's runner would catch all later errors of the session. */
export function refuseRunnersListeners(): void {
  process.on("newListener", (event: string, listener: (...args: unknown[]) => void) => {
    if (event !== "uncaughtException" && event !== "unhandledRejection") return;
    // The listener is added after this event.
    if (new NativeError().stack?.includes(RUNNER) === true) enqueueMicrotask(() => process.off(event, listener));
  });
}
