// `completion/complete`: suggests values for an argument of a prompt or a variable of a template.

import type { Context, Request, Result } from "../core/handler.ts";
import { invalidParams } from "../protocol/errors.ts";
import type { CompleteParams } from "../protocol/model/index.ts";
import { type ResultBuilder } from "./result-builder.ts";
import { runHandler } from "./tool-result.ts";

/** Returns values that fit what was typed so far, best first. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>> },
) => readonly string[] | Promise<readonly string[]>;

/** By argument name; undefined for an argument without completion. */
export type Completers = ReadonlyMap<string, Completer | undefined>;

/** The specification's limit. */
const MAX_VALUES = 100;

/** `find` returns the completers of the prompt or template, or undefined if it does not exist. */
export async function complete(
  { params }: Request,
  context: Context,
  results: ResultBuilder,
  find: (ref: CompleteParams["ref"]) => Completers | undefined,
): Promise<Result> {
  const { ref, argument, context: chosen } = params as unknown as CompleteParams;
  const completers = find(ref);
  const what = ref.type === "ref/prompt" ? `prompt ${ref.name}` : `resource ${ref.uri}`;
  if (completers === undefined) throw invalidParams(`There is no ${what} to complete`, { ref });
  if (!completers.has(argument.name)) {
    throw invalidParams(`The ${what} has no argument ${argument.name}`, { ref, argument: argument.name });
  }
  const completer = completers.get(argument.name) ?? (() => []);
  const all = await runHandler(context, () => completer(argument.value, { arguments: chosen?.arguments ?? {} }));
  const values = all.slice(0, MAX_VALUES);
  return results.complete({ completion: { values, total: all.length, hasMore: all.length > values.length } });
}
