// Completions: what could stand in an argument of a prompt or in a variable of a template. Whoever registers
// a prompt or a template says how its arguments are completed; this finds the right one and trims its answer.

import type { Context } from "../core/handler.ts";
import type { Request, Result } from "../core/handler.ts";
import { invalidParams } from "../protocol/errors.ts";
import type { CompleteParams } from "../protocol/model/index.ts";
import type { Frame } from "./result-builder.ts";
import { orError } from "./tool-errors.ts";

/** Values that begin with, or otherwise fit, what was typed so far; best first. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>> },
) => readonly string[] | Promise<readonly string[]>;

/** The arguments of one prompt or template; undefined for one that is there and cannot be completed. */
export type Completers = ReadonlyMap<string, Completer | undefined>;

/** The specification allows no more in one answer. */
const MOST_VALUES = 100;

/** `find` gives the arguments of what `ref` names; undefined where there is no such thing. */
export async function complete(
  { params }: Request,
  context: Context,
  frame: Frame,
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
  const all = await orError(context, () => completer(argument.value, { arguments: chosen?.arguments ?? {} }));
  const values = all.slice(0, MOST_VALUES);
  return frame.complete({ completion: { values, total: all.length, hasMore: all.length > values.length } });
}
