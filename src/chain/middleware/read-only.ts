// Shows and lets pass only the tools that declare themselves read-only. Any other tool is in no list, and a call of it
// fails as if it did not exist. A tool is judged by the list that the same caller gets: a tool that is in no list of the
// caller cannot be called, nor can any tool whose list cannot be read.

import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { strings, type OptionsOf } from "../../core/fields.ts";
import { LISTS } from "../../protocol/lists.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { CallerTools } from "../caller-tools.ts";
import { mapItems, notFound } from "../result-items.ts";
import { matchesGlob } from "./filter.ts";

const OPTIONS = {
  include: strings("Names of tools that pass whatever they declare; `*` matches any characters."),
};

/** Options of `readOnly()`. */
export type ReadOnlyOptions = OptionsOf<typeof OPTIONS>;

/**
 * Hides all tools that do not declare themselves read-only. A call of a hidden one fails as if it did not exist.
 *
 * @example
 * readOnly({ include: ["add_comment"] })
 */
export const readOnly: DefinedMiddleware<[options?: ReadOnlyOptions]> = define({
  name: "read-only",
  summary: "Hides all tools that do not declare themselves read-only.",
  options: OPTIONS,
  middleware: createReadOnly,
});

function createReadOnly({ include = [] }: ReadOnlyOptions): Middleware {
  const isAllowed = (name: string): boolean => include.some((glob) => matchesGlob(glob, name));
  const tools = new CallerTools();
  const list = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const result = await next(request, context);
    const facts = tools.learn(result, context.caller);
    return mapItems(result, LISTS.tools, (item, name) =>
      facts.get(name)?.isReadOnly === true || isAllowed(name) ? item : undefined,
    );
  };
  const find = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const name = request.params["name"] as string;
    if ((await tools.find(name, context, next))?.isReadOnly !== true) throw notFound("tools", name);
    return next(request, context);
  };
  return (request, context, next) => {
    const { method, params } = request;
    if (method === "tools/list") return list(request, context, next);
    if (method === "subscriptions/listen") return next(request, tools.watch(context));
    if (method !== "tools/call") return next(request, context);
    const isShown =
      isAllowed(params["name"] as string) || tools.get(params["name"], context.caller)?.isReadOnly === true;
    return isShown ? next(request, context) : find(request, context, next);
  };
}
