// `completion/complete`: suggests values for an argument of a prompt or a variable of a template. Loaded on first use,
// since few servers have completers.

import type { Context } from "../core/handler.ts";
import { invalidParams } from "../protocol/errors.ts";
import type { RequestOf } from "../protocol/methods.ts";
import type { CompleteResult } from "../protocol/model/index.ts";
import { type HandlerErrors, InvalidResult } from "./handler-errors.ts";
import type { Completers } from "./prompts.ts";

const MAX_COMPLETIONS = 100;

/** `completers` are those of the prompt or template, or undefined if it does not exist. */
export async function complete(
  request: RequestOf<"completion/complete">,
  context: Context,
  completers: Completers | undefined,
  errors: HandlerErrors,
): Promise<CompleteResult["completion"]> {
  const { ref, argument, context: chosen } = request.params;
  const what = ref.type === "ref/prompt" ? `prompt ${ref.name}` : `resource ${ref.uri}`;
  if (completers === undefined) throw invalidParams(`There is no ${what} to complete`, { ref });
  if (!completers.has(argument.name)) {
    throw invalidParams(`The ${what} has no argument ${argument.name}`, { ref, argument: argument.name });
  }
  const completer = completers.get(argument.name) ?? (() => []);
  const all = await errors.run(request, context, async () => {
    const values: unknown = await completer(argument.value, {
      arguments: chosen?.arguments ?? {},
      caller: context.caller,
    });
    if (Array.isArray(values) && values.every((value) => typeof value === "string")) return values;
    throw new InvalidResult(`The completer of ${argument.name} (${what}) must return an array of strings`);
  });
  const values = all.slice(0, MAX_COMPLETIONS);
  return { values, total: all.length, hasMore: all.length > values.length };
}
