// Amber as the evaluator of a JavaScript session's process: answers the requests of Smalltalk's tools. The process loads
// this module by its path.

import process from "node:process";
import { conditionText, type GuestEvaluation, type GuestText } from "../runtime.ts";
import type { Evaluator, PrintLimits } from "../js/messages.ts";
import { AmberTools } from "./amber-tools.ts";
import { AmberImage, type Behavior } from "./amber-image.ts";
import { AmberBrowser, countText, RequestError } from "./amber-classes.ts";
import { AmberPrinter } from "./amber-printer.ts";
import { AmberWorkspace, SourceError } from "./amber-workspace.ts";

/** The arguments of all requests; the host has checked them. */
interface Params {
  readonly code?: string;
  readonly position?: number;
  readonly frame?: number;
  readonly handle?: number;
  readonly start?: number;
  readonly count?: number;
  readonly parts?: boolean;
  readonly class?: string;
  readonly selector?: string;
  readonly source?: string;
  readonly protocol?: string;
  readonly pattern?: string;
  readonly max?: number;
  readonly name?: string;
  readonly superclass?: string;
  readonly instanceVariables?: string;
  readonly classVariables?: string;
  readonly package?: string;
  readonly comment?: string;
  readonly template?: string;
  readonly argument?: string;
  readonly value?: string;
  readonly others?: Readonly<Record<string, string>>;
  readonly arguments?: Readonly<Record<string, string>>;
}

interface TestReport {
  passed: number;
  failed: number;
  skipped: number;
  readonly failures: { readonly name: string; readonly reason: string }[];
}

const NO_RESTARTS =
  "Amber has no restarts: an error unwinds the stack, and resume:, return: and retry do not exist. Change the code and evaluate it again; evaluate-in-frame shows the variables of the error's frames.";
const NO_IMAGE =
  "Amber has no image to save. save-session keeps the sources that were evaluated and restores the session by evaluating them again.";
const NO_CLASS_VARIABLES =
  "Amber has no class variables. Leave out class-variables and use instance variables of the class side: Foo class slots: #(count)";

export async function createEvaluator(): Promise<Evaluator> {
  const image = await AmberImage.load();
  writeTranscriptToStdout(image);
  const guest = new AmberGuest(image);
  let tools: AmberTools | undefined;
  return {
    version: `Amber ${image.version}`,
    perform: (op, params, limits) => guest.perform(op, params, limits),
    interruptedFrames: () => guest.interruptedFrames(),
    setTools: (callable, calls) => {
      guest.turnOffHandles();
      (tools ??= new AmberTools(image, calls)).set(callable);
    },
  };
}

/** Amber's transcript writes lines to the console; this one writes what it is given. A line ends with CR in Smalltalk. */
function writeTranscriptToStdout(image: AmberImage): void {
  const { fn } = image.globals["ConsoleTranscript"] as unknown as { readonly fn: { readonly prototype: object } };
  const show = (value: unknown): void => {
    process.stdout.write(String(image.send(value, "asString")).replaceAll(/\r\n?/g, "\n"));
  };
  Object.defineProperty(fn.prototype, "_show_", { value: show, configurable: true });
}

class AmberGuest {
  readonly #image: AmberImage;
  readonly #printer: AmberPrinter;
  readonly #workspace: AmberWorkspace;
  readonly #browser: AmberBrowser;

  constructor(image: AmberImage) {
    this.#image = image;
    this.#printer = new AmberPrinter(image);
    this.#workspace = new AmberWorkspace(image, this.#printer);
    this.#browser = new AmberBrowser(image);
  }

  turnOffHandles(): void {
    this.#printer.turnOffHandles();
  }

  interruptedFrames(): ReturnType<Evaluator["interruptedFrames"]> {
    return this.#workspace.interruptedFrames();
  }

  perform(op: string, params: Params, limits: PrintLimits): object {
    try {
      const reply = this.#answer(op, params, limits);
      return typeof reply === "string" ? ({ text: reply } satisfies GuestText) : reply;
    } catch (error) {
      if (error instanceof RequestError) return { ...failure(error.message), hint: error.hint };
      if (error instanceof SourceError) return failure(error.message);
      throw error;
    }
  }

  #answer(op: string, params: Params, limits: PrintLimits): string | GuestText | GuestEvaluation | object {
    const browser = this.#browser;
    const { class: className = "", code = "" } = params;
    const selector = selectorOf(params.selector);
    switch (op) {
      case "eval":
        return this.#workspace.evaluate(code, limits);
      case "evaluate-in-frame": {
        const reply = this.#workspace.evaluateInFrame(params.frame ?? 0, code, limits);
        return typeof reply === "string" ? failure(reply) : reply;
      }
      case "list-restarts":
      case "take-restart":
        return failure(NO_RESTARTS);
      case "close-error":
        return "";
      case "inspect":
        return this.#inspect(params);
      case "browse-class":
        return browser.browse(className);
      case "method-source":
        return browser.methodSource(className, selector);
      case "define-class":
        return this.#defineClass(params);
      case "compile-method":
        return this.#compileMethod(className, params.source ?? "", params.protocol ?? "");
      case "search-classes":
        return browser.searchClasses(params.pattern ?? "", params.max ?? 100);
      case "implementors":
        return browser.methods(`implementors of #${selector}`, (method) => method.selector === selector);
      case "senders":
        return browser.methods(`senders of #${selector}`, ({ messageSends }) => messageSends.includes(selector));
      case "class-references": {
        const { name = "" } = browser.find(className);
        return browser.methods(`references to ${name}`, ({ referencedClasses }) => referencedClasses.includes(name));
      }
      case "run-tests":
        return { tests: this.#runTests(params) };
      case "list-definitions":
        return this.#listDefinitions();
      case "describe-last-error":
        return this.#describeLastError();
      case "save-image":
        return failure(NO_IMAGE);
      case "complete": {
        const variables = this.#workspace.variables.map(({ name }) => name);
        return browser.complete(code, params.position ?? code.length, variables);
      }
      case "complete-argument":
        return browser.completeArgument(params.argument ?? "", params.value ?? "", params.others?.["className"]);
      case "read-resource":
        return this.#readResource(params.template ?? "", params.arguments ?? {});
      default:
        return failure(`A Smalltalk session on Amber has no tool ${op}`);
    }
  }

  #inspect({ handle = 0, start, count, parts }: Params): string | GuestText {
    const description = this.#printer.describe(handle, start, count, parts === true);
    return "problem" in description ? failure(description.problem) : description;
  }

  #defineClass(params: Params): string | GuestText {
    const { name = "", superclass = "Object", instanceVariables = "", classVariables = "", comment } = params;
    if (!/^[A-Z]\w*$/.test(name))
      return failure(`${name} is not a valid name of a class; it begins with a capital letter`);
    if (classVariables.trim() !== "") return failure(NO_CLASS_VARIABLES);
    const above = this.#browser.find(superclass);
    const slots = instanceVariables.split(/\s+/).filter(Boolean);
    const invalid = slots.find((slot) => !/^[a-z_]\w*$/i.test(slot));
    if (invalid !== undefined) return failure(`${invalid} is not a valid name of an instance variable`);
    const existing = Object.hasOwn(this.#image.globals, name) ? this.#browser.find(name) : undefined;
    const inPackage = params.package ?? existing?.category ?? "Live";
    const outcome = this.#workspace.guard(() => {
      const created = this.#image.send(above, "subclass:slots:package:", name, slots, inPackage);
      if (comment !== undefined) this.#image.send(created, "comment:", comment);
    });
    if ("error" in outcome) return failure(conditionText(outcome.error.condition));
    const definition = `${superclass} subclass: #${name} slots: #(${slots.join(" ")}) package: ${quoted(inPackage)}`;
    const code = comment === undefined ? definition : `${definition}. ${name} comment: ${quoted(comment)}`;
    const verb = existing === undefined ? "Defined" : "Redefined";
    const defined = [{ type: "class", name }];
    return { text: `${verb} ${name}.\n\n${this.#browser.browse(name)}`, code, defined };
  }

  #compileMethod(className: string, source: string, protocolText: string): string | GuestText {
    const protocol = protocolText === "" ? "as yet unclassified" : protocolText;
    const behavior = this.#browser.find(className);
    const outcome = this.#workspace.guard(() => this.#workspace.compileMethod(behavior, source, protocol));
    if ("error" in outcome) return failure(conditionText(outcome.error.condition));
    const code = `!${className.trim()} methodsFor: ${quoted(protocol)}!\n${source.replaceAll("!", "!!")}! !`;
    const name = `${className.trim()} >> #${outcome.value}`;
    return { text: `Compiled ${name}.`, code, defined: [{ type: "method", name }] };
  }

  #runTests(params: Params): TestReport {
    const selector = params.selector === undefined ? undefined : selectorOf(params.selector);
    const report: TestReport = { passed: 0, failed: 0, skipped: 0, failures: [] };
    for (const behavior of this.#testClasses(params)) {
      const all = this.#image.send(this.#image.send(behavior, "allTestSelectors"), "asArray") as string[];
      if (selector !== undefined && !all.includes(selector))
        throw new RequestError(`${behavior.name ?? ""} has no test ${selector}`);
      for (const test of selector === undefined ? all.toSorted() : [selector]) this.#runTest(behavior, test, report);
    }
    return report;
  }

  #testClasses({ class: className, package: packageName }: Params): Behavior[] {
    if (className !== undefined) {
      const behavior = this.#browser.find(className);
      if (this.#image.inherits(behavior, "TestCase")) return [behavior];
      throw new RequestError(`${className} is not a subclass of TestCase`);
    }
    if (packageName !== undefined) return this.#browser.testClasses(({ category }) => category === packageName);
    const defined = this.#workspace.definitions("class");
    return this.#browser.testClasses(({ name = "" }) => defined.includes(name));
  }

  #runTest(behavior: Behavior, selector: string, report: TestReport): void {
    const outcome = this.#workspace.guard(() => {
      const test = this.#image.send(behavior, "selector:", selector);
      this.#image.send(test, "runCase");
      return this.#image.send(test, "isAsync") as boolean;
    });
    if (!("error" in outcome)) {
      // A test that goes on later cannot be waited for here.
      if (outcome.value) report.skipped += 1;
      else report.passed += 1;
      return;
    }
    const { type, message, frames } = outcome.error.condition;
    const [first] = frames.filter(({ text }) => !/TestCase\) >>|TestContext/.test(text));
    const reason = `${type}: ${message}${first === undefined ? "" : ` (in ${first.text})`}`;
    report.failed += 1;
    report.failures.push({ name: `${behavior.name ?? ""} >> #${selector}`, reason });
  }

  #listDefinitions(): string {
    const { variables } = this.#workspace;
    const lines: string[] = [];
    if (variables.length > 0) {
      lines.push(`${countText(variables.length, "variable", "variables")}:`);
      for (const { name, value } of variables) lines.push(`  ${name} = ${this.#printer.printSafely(value).text}`);
    }
    for (const [type, many] of [
      ["class", "classes"],
      ["method", "methods"],
    ] as const) {
      const names = this.#workspace.definitions(type);
      if (names.length > 0) lines.push(`${countText(names.length, type, many)}:`);
      for (const name of names) lines.push(this.#browser.definitionLine({ type, name }));
    }
    return lines.length === 0 ? "Nothing has been defined in this session." : lines.join("\n");
  }

  #describeLastError(): GuestText {
    const { lastError } = this.#workspace;
    if (lastError === undefined) return { text: "There has been no error in this session." };
    return { text: conditionText(lastError.condition) };
  }

  #readResource(
    template: string,
    variables: Readonly<Record<string, string>>,
  ): GuestText & { readonly mimeType?: string } {
    if (template.endsWith("system/version")) return { text: `Amber ${this.#image.version}`, mimeType: "text/plain" };
    const { className = "", selector } = variables;
    if (selector === undefined) {
      return { text: JSON.stringify(this.#browser.classRecord(className)), mimeType: "application/json" };
    }
    const method = this.#browser.findMethod(this.#browser.find(className), selector);
    return { text: method.source, mimeType: "text/plain" };
  }
}

/** The text as a literal string. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The selector without spaces around it and without the # of a symbol. */
function selectorOf(text = ""): string {
  return text.trim().replace(/^#/, "");
}

function failure(text: string): GuestText {
  return { text, isError: true };
}
