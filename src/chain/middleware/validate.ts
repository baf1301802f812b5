// Checks the arguments and the structured results of tools against the schemas that the tools declare. The list of a
// caller is read when a tool is unknown. A schema is compiled once, as long as it stays the same. Regular expressions in
// schemas are not checked, since those of an upstream could keep the gateway busy for minutes.

import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { boolean, choice, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { digest } from "../../core/seal.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { invalidArguments, invalidArgumentsError, McpError } from "../../protocol/errors.ts";
import type { JsonSchema } from "../../protocol/model/index.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { SchemaCheck } from "../../tools/schema-kind.ts";
import type { ToolFact } from "../../tools/facts.ts";
import { define, type ActingMiddleware, type DefinedMiddleware } from "../define.ts";
import { calledTool } from "../item.ts";

const OPTIONS = {
  arguments: boolean("Whether calls with invalid arguments are refused.").or(true),
  results: choice("What happens to an invalid result: an error, one warning, or nothing.", [
    "refuse",
    "warn",
    "off",
  ]).or("refuse"),
};

/** Options of `validate()`. */
export type ValidateOptions = OptionsOf<typeof OPTIONS>;

const MAX_SCHEMAS = 2_000;
const MAX_TASKS = 1_000;

/** The tool that made a task, for the result of the task. */
interface Tool {
  readonly name: string;
  readonly outputSchema: JsonSchema;
}

/**
 * Refuses calls whose arguments do not match the schema of the tool, and results that do not match its output schema.
 *
 * @example
 * validate({ results: "warn" })
 */
export const validate: DefinedMiddleware<[options?: ValidateOptions]> = define({
  name: "validate",
  summary: "Checks arguments and results of tools against the schemas that the tools declare.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createValidate,
});

function createValidate({ arguments: checksArguments, results }: ValuesOf<typeof OPTIONS>): ActingMiddleware {
  const checks = new SchemaChecks();
  const tasks = new ExpiringMap<string, Tool>({ maxEntries: MAX_TASKS });
  const checkResult = async ({ name, outputSchema }: Tool, result: Result): Promise<void> => {
    const { structuredContent, isError, resultType = "complete" } = result;
    if (isError === true || resultType !== "complete") return;
    const issues =
      structuredContent === undefined
        ? ["structuredContent: is required"]
        : await checks.issues(outputSchema, structuredContent, "output", name);
    if (issues === undefined) return;
    const message = `The result of the tool ${name} does not match its output schema: ${issues.join("; ")}`;
    if (results === "warn") warnOnce(message);
    else throw McpError.of("execution_failed", message, { toolName: name, middlewareName: "validate" });
  };
  const run = (issues: Issues, { outputSchema }: ToolFact, request: Request, context: Context, next: Handler) => {
    const name = request.params["name"] as string;
    if (issues !== undefined) return refuse(name, issues, context);
    const outcome = next(request, context);
    if (results === "off" || !isObject(outputSchema)) return outcome;
    return outcome.then(async (result) => {
      if (result.resultType === "task") tasks.set(String(result["taskId"]), { name, outputSchema });
      else await checkResult({ name, outputSchema }, result);
      return result;
    });
  };
  const call = (tool: ToolFact, request: Request, context: Context, next: Handler): Promise<Result> => {
    const { name, arguments: args } = request.params;
    if (!checksArguments || !isObject(tool.inputSchema)) return run(undefined, tool, request, context, next);
    const issues = checks.issues(tool.inputSchema, args ?? {}, "input", name as string);
    return issues instanceof Promise
      ? issues.then((problems) => run(problems, tool, request, context, next))
      : run(issues, tool, request, context, next);
  };
  const taskResult = async (tool: Tool, request: Request, context: Context, next: Handler): Promise<Result> => {
    const result = await next(request, context);
    const ofTask = request.method === "tasks/get" ? result["result"] : result;
    if (isObject(ofTask)) await checkResult(tool, ofTask);
    return result;
  };
  const middleware: ActingMiddleware = (request, context, next) => {
    const { method, params } = request;
    if (method === "tools/call") {
      // The upstream answers for a tool that it does not list.
      const tool = calledTool(context);
      return tool === undefined ? next(request, context) : call(tool, request, context, next);
    }
    const task = method.startsWith("tasks/") ? tasks.get(String(params["taskId"])) : undefined;
    return task === undefined ? next(request, context) : taskResult(task, request, context, next);
  };
  middleware.needs = (kind) => kind === "tools";
  return middleware;
}

/** In older revisions, invalid arguments are a protocol error. */
async function refuse(name: string, issues: readonly string[], { revision }: Context): Promise<Result> {
  if (revisionNamed(revision)?.argumentErrors === true) throw invalidArgumentsError(name, issues);
  return { resultType: "complete", ...invalidArguments(name, issues) };
}

/** Undefined if the value is valid, or the schema cannot be used. */
type Issues = readonly string[] | undefined;

/** Checks by schema. Lists are read again and again, so a schema is recognized by its content. */
class SchemaChecks {
  readonly #bySchema = new WeakMap<object, SchemaCheck>();
  readonly #byContent = new ExpiringMap<string, SchemaCheck>({ maxEntries: MAX_SCHEMAS });

  /** Without a promise if the value is valid, and the schema was used before. */
  issues(schema: JsonSchema, value: unknown, side: "input" | "output", tool: string): Issues | Promise<Issues> {
    try {
      const checked = this.#bySchema.get(schema)?.(value);
      if (checked !== undefined && !(checked instanceof Promise)) return checked.issues;
    } catch {
      // It is reported below.
    }
    return this.#issuesOf(schema, value, `The ${side} schema of the tool ${tool}`);
  }

  async #issuesOf(schema: JsonSchema, value: unknown, owner: string): Promise<Issues> {
    try {
      const check = this.#bySchema.get(schema) ?? (await this.#create(schema, owner));
      return (await check(value)).issues;
    } catch (error) {
      warnOnce(`${owner} cannot be used, so nothing is checked against it: ${errorMessage(error)}`);
      return undefined;
    }
  }

  async #create(schema: JsonSchema, owner: string): Promise<SchemaCheck> {
    // Loaded late, since it needs packages.
    const { createUntrustedCheck } = await import("../../tools/json-schema.ts");
    const key = digest(schema);
    const check = this.#byContent.get(key) ?? createUntrustedCheck(schema, owner);
    this.#byContent.set(key, check);
    this.#bySchema.set(schema, check);
    return check;
  }
}

const warned = new ExpiringMap<string, true>({ maxEntries: MAX_SCHEMAS });

function warnOnce(message: string): void {
  if (warned.get(message) !== undefined) return;
  warned.set(message, true);
  process.emitWarning(message);
}
