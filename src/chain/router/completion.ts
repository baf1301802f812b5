// Completions, asked of the end whose prompt, template or resource they are for.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { invalidParams } from "../../protocol/errors.ts";
import type { CompleteParams } from "../../protocol/model/index.ts";
import { ask, targetOf } from "./calls.ts";
import type { Target } from "./names.ts";
import { placesOf } from "./reading.ts";
import type { View } from "./view.ts";

export async function complete(request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const { ref } = params as unknown as CompleteParams;
  if (ref.type === "ref/prompt") {
    const target = await targetOf("prompts", ref.name, context, view);
    return ask(view.at(target).end, { method, params: { ...params, ref: { ...ref, name: target.name } } }, context);
  }
  const target = await templateOf(ref.uri, context, view);
  return ask(view.at(target).end, { method, params: { ...params, ref: { ...ref, uri: target.name } } }, context);
}

/** What is completed is mostly a template, by its text; but it may be an address too. */
async function templateOf(uri: string, context: Context, view: View): Promise<Target> {
  const { templates } = view.directories;
  const found = await view.find("templates", uri, context);
  if (found !== undefined) return found;
  const candidates = templates.names.owners(uri).map((end) => templates.names.shown(end, uri));
  if (candidates.length > 0) {
    const message = `Several ends have a template ${uri}; say which one: ${candidates.join(", ")}`;
    throw invalidParams(message, { uri, candidates });
  }
  const [place] = (await placesOf(uri, context, view)).targets;
  if (place === undefined) throw invalidParams(`There is no resource and no template at ${uri} to complete`, { uri });
  return place;
}
