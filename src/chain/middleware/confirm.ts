// Asks the caller for consent before a tool runs that may destroy something, with one elicitation. What the caller
// cannot be asked, or does not accept, does not run. A tool that declares nothing may destroy something: that is the
// default of the specification. Works for both styles: a stateless caller gets `input_required`, and its answer goes on
// with the same call.

import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { boolean, choice, count, either, ofTools, strings, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { globMatcher, sanitize } from "../../core/text.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { answerInputRequired } from "../../dialogue/calls/input-required.ts";
import { checkClientRequest } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import { withoutSecrets } from "../../core/redactor.ts";
import { define, type ActingMiddleware, type DefinedMiddleware } from "../define.ts";
import { calledTool } from "../item.ts";

const ARGUMENTS_LENGTH = 500;

const OPTIONS = {
  include: ofTools(strings("Tools that need consent; `*` matches any characters. Default: all.")),
  only: choice("Of these, only tools that may destroy something, or all.", ["destructive", "all"]).or("destructive"),
  arguments: either("Whether the question shows the arguments, and how many characters.", boolean(""), count("")).or(
    ARGUMENTS_LENGTH,
  ),
  unasked: choice("What happens if the caller cannot be asked.", ["refuse", "allow"]).or("refuse"),
};

/** Options of `confirm()`. */
export type ConfirmOptions = OptionsOf<typeof OPTIONS>;

const NAME = "confirm";
const NAME_LENGTH = 200;

/**
 * Asks the caller before a tool runs that may destroy something.
 *
 * @example
 * confirm({ include: ["delete_*"], only: "all" })
 */
export const confirm: DefinedMiddleware<[options?: ConfirmOptions]> = define({
  name: NAME,
  summary: "Asks the caller before a tool runs that may destroy something.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createConfirm,
});

function createConfirm({
  include,
  only,
  arguments: showsArguments,
  unasked,
}: ValuesOf<typeof OPTIONS>): ActingMiddleware {
  const concerns = include?.flatMap(matchersOf);
  const isAll = only === "all";
  const allowsUnasked = unasked === "allow";
  const maxLength = typeof showsArguments === "number" ? showsArguments : showsArguments ? ARGUMENTS_LENGTH : 0;
  const check = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const question = questionFor(request, maxLength);
    try {
      checkClientRequest(question, context.caller.capabilities);
    } catch (error) {
      if (allowsUnasked) return next(request, context);
      throw cannotAsk(error, request);
    }
    const refusal = await ask(question, request, context);
    return refusal ?? runOnce(request, context, next);
  };
  const isConcerned = (name: string): boolean => concerns?.some((matches) => matches(name)) !== false;
  const middleware: ActingMiddleware = (request, context, next) => {
    if (request.method !== "tools/call" || !isConcerned(request.params["name"] as string))
      return next(request, context);
    // A tool that is in no list may destroy something too.
    return !isAll && calledTool(context)?.mayDestroy === false ? next(request, context) : check(request, context, next);
  };
  middleware.needs = (kind, name) => kind === "tools" && !isAll && isConcerned(name);
  return middleware;
}

/** Also with the prefix that a tool gets when another server has one of the same name. In doubt, the user is asked. */
function matchersOf(glob: string): ((name: string) => boolean)[] {
  return [glob, `*_${glob}`, `*-${glob}`].map(globMatcher);
}

function questionFor({ params }: Request, maxLength: number): Request {
  const { name, arguments: callArguments } = params;
  const isShown = maxLength > 0 && isObject(callArguments) && Object.keys(callArguments).length > 0;
  const args = isShown
    ? ` with the arguments ${sanitize(withoutSecrets(JSON.stringify(callArguments)), maxLength)}`
    : "";
  return {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: `May the tool ${sanitize(String(name), NAME_LENGTH)} run${args}?`,
      requestedSchema: { type: "object", properties: {} },
    },
  };
}

/** Undefined if the caller has agreed. Otherwise a result, so that the model can read it and do something else. */
async function ask(question: Request, { params }: Request, context: Context): Promise<Result | undefined> {
  const name = String(params["name"]);
  try {
    const { action } = await context.ask(question);
    if (action === "accept") return undefined;
    return notRun(
      action === "decline" ? `The user declined the call of ${name}` : `The user did not allow ${name} to run`,
    );
  } catch (error) {
    if (context.signal.aborted) throw error;
    return notRun(`${name} did not run: the client could not ask the user for consent: ${errorMessage(error)}`);
  }
}

/**
 * If the upstream asks for input, the answers would come with another request, for which the user would be asked again.
 * So they are collected here.
 */
async function runOnce(request: Request, context: Context, next: Handler): Promise<Result> {
  const first = await next(request, context);
  return first.resultType === "input_required" ? answerInputRequired(first, next, request, context) : first;
}

function notRun(text: string): Result {
  return { resultType: "complete", isError: true, content: [{ type: "text", text }] };
}

function cannotAsk(error: unknown, { params }: Request): McpError {
  const why = `the tool ${String(params["name"])} needs the consent of the user, but the client cannot ask the user`;
  const message = `The middleware ${NAME} refused tools/call: ${why} (it has not declared elicitation); use a client that can`;
  const data = error instanceof McpError ? (error.data as object) : {};
  return McpError.of("missing_capability", message, { ...data, middlewareName: NAME, toolName: params["name"] });
}
