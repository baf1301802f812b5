// Requests that name an address, brought to the end where it is. An address in a list, or with a label, is at one end.
// Any other is looked for where templates say that it may be, then at every end that has resources, in their order,
// until one does not say that it is not there.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import type { Places } from "./addresses.ts";
import { ask } from "./calls.ts";
import { inCallersWords, isNotFound, isSilence } from "./failures.ts";
import type { Target } from "./names.ts";
import type { View } from "./view.ts";

/** Where the address may be, the likeliest first. Throws where several ends list the very same one. */
export async function placesOf(uri: string, context: Context, view: View): Promise<Places> {
  const { addresses, directories } = view;
  let known = addresses.places(uri);
  const isCold = !known.isSure && (directories.resources.isCold || directories.templates.isCold);
  if (isCold || known.targets.length === 0) {
    const isFound = (): boolean | "unless others have it" =>
      addresses.places(uri).targets.length > 0 && "unless others have it";
    await Promise.all([view.read("resources", context, isFound), view.read("templates", context, isFound)]);
    known = addresses.places(uri);
  }
  const candidates = known.isSure ? [] : addresses.candidates(uri);
  if (candidates.length > 0) {
    const message = `Several ends have a resource at ${uri}; say which one: ${candidates.join(", ")}`;
    throw invalidParams(message, { uri, candidates });
  }
  return known;
}

export async function read(request: Request, context: Context, view: View): Promise<Result> {
  const asked = request.params["uri"] as string;
  const { isSure, targets } = await placesOf(asked, context, view);
  const places = isSure ? targets : withOthers(targets, asked, view);
  let failure: Error | undefined;
  for (const place of places) {
    try {
      const result = await readAt(place, request, context, view);
      if (!isSure) view.addresses.remember(asked, place);
      return result;
    } catch (error) {
      if (isSure || context.signal.aborted) throw error;
      const isElsewhere = isNotFound(error);
      if (!isElsewhere && !isSilence(error)) throw error;
      // That an end is away says more than that another does not know it.
      if (failure === undefined || !isElsewhere) failure = error as Error;
    }
  }
  throw failure ?? McpError.of("resource_not_found", `Resource not found: ${asked}`, { uri: asked });
}

async function readAt(place: Target, request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const asked = params["uri"] as string;
  const uri = place.name;
  const { end, shown } = view.at(place);
  try {
    const result = await ask(end, uri === asked ? request : { method, params: { ...params, uri } }, context);
    return shown.readResult(result, uri, asked);
  } catch (error) {
    throw inCallersWords(error, "uri", uri, asked);
  }
}

/** The ends that have resources, and are not among those already. */
export function withOthers(targets: readonly Target[], uri: string, { members }: View): readonly Target[] {
  const first = new Map(targets.map((target) => [target.end, target]));
  const others = members.filter((member) => !first.has(member.end.index) && member.mayHave("resources"));
  return [...first.values(), ...others.map(({ end }) => ({ end: end.index, name: uri }))];
}
