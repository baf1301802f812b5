// Many ends as one server: a pure function of handlers. Each request goes to the end that it belongs to, lists are those
// of all, and what one end fails to do is shown and never fatal to the rest. Nothing is started here and nothing
// closed: whoever gave the ends keeps them.

import { ourselves } from "../../client/connect.ts";
import type { Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { checkParams } from "../../protocol/check.ts";
import { isObject } from "../../core/objects.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import type { Implementation } from "../../protocol/model/index.ts";
import { ask, type Named, targetOf } from "./calls.ts";
import { complete } from "./completion.ts";
import { discover } from "./discover.ts";
import { isMethodNotFound, isSilence } from "./failures.ts";
import { labelsOf } from "./labels.ts";
import { listen } from "./listen.ts";
import { Lists } from "./lists.ts";
import type { RoutedUpstream } from "./member.ts";
import type { NamesOption } from "./names.ts";
import { read } from "./reading.ts";
import { aboutTask, listTasks } from "./tasks.ts";
import type { View } from "./view.ts";
import { Views } from "./views.ts";

export interface MergeOptions {
  /** Whether names get their end's label only where ends share one, or all of them do; "when-needed". */
  readonly names?: NamesOption;
  /** What the merged server says that it is. */
  readonly info?: Implementation;
  /** For the model, before what the ends say. */
  readonly instructions?: string;
}

type Answer = (request: Request, context: Context, view: View) => Promise<Result>;

export function merge(ends: Readonly<Record<string, Handler>>, options: MergeOptions = {}): Handler {
  const names = Object.keys(ends);
  const labels = labelsOf(names);
  const merged = names.map((name, index): RoutedUpstream => {
    const [label, handler] = [labels[index], ends[name]];
    if (label === undefined || typeof handler !== "function") throw new TypeError(`The end ${name} is no handler`);
    return { index, name, label, handler };
  });
  const views = new Views(merged, options.names ?? "when-needed");
  const answers = answersOf(merged, options);
  return async (request, context) => {
    checkParams(request.method, request.params);
    const answer = answers.get(request.method) ?? whoeverKnows;
    return answer(request, context, views.of(context));
  };
}

function answersOf(ends: readonly RoutedUpstream[], options: MergeOptions): ReadonlyMap<string, Answer> {
  const introduction = { info: options.info ?? ourselves(), instructions: options.instructions };
  const { info } = introduction;
  const lists = new Lists(ends, info);
  return new Map<string, Answer>([
    ["server/discover", (_request, context, { members }) => discover(members, context, introduction)],
    ["tools/list", (request, context, view) => lists.list("tools", request, context, view)],
    ["prompts/list", (request, context, view) => lists.list("prompts", request, context, view)],
    ["resources/list", (request, context, view) => lists.list("resources", request, context, view)],
    ["resources/templates/list", (request, context, view) => lists.list("templates", request, context, view)],
    ["tools/call", (request, context, view) => call("tools", request, context, view)],
    ["prompts/get", (request, context, view) => call("prompts", request, context, view)],
    ["resources/read", read],
    ["completion/complete", complete],
    ["subscriptions/listen", listen],
    ["tasks/get", aboutTask],
    ["tasks/update", aboutTask],
    ["tasks/cancel", aboutTask],
    ["tasks/result", aboutTask],
    ["tasks/list", (request, context, view) => listTasks(request, context, view, info)],
    ["logging/setLevel", setLevel],
  ]);
}

/** The hot path: a name that is known is one look away, and a result that needs no change is not copied. */
async function call(kind: Named, request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const asked = params["name"] as string;
  const directory = view.directories[kind];
  const known = directory.isStale ? undefined : directory.names.target(asked);
  const target = known ?? (await targetOf(kind, asked, context, view));
  const { name } = target;
  const { end, shown } = view.at(target);
  const result = await ask(end, name === asked ? request : { method, params: { ...params, name } }, context);
  return kind === "tools" ? shown.toolResult(result) : shown.promptResult(result);
}

/** Every end that logs; one that fails to hear of it says more than it was asked for, and no harm is done. */
async function setLevel(request: Request, context: Context, { members }: View): Promise<Result> {
  const isOffered = (capabilities: { readonly [key: string]: unknown }): boolean => isObject(capabilities["logging"]);
  const told = members.map(async (member) => {
    if (await member.offers(context, isOffered)) await ask(member.end, request, context);
  });
  await Promise.allSettled(told);
  context.signal.throwIfAborted();
  return { resultType: "complete" };
}

/** A method that is not known here: the first end that knows it answers. */
async function whoeverKnows(request: Request, context: Context, { members }: View): Promise<Result> {
  let silence: Error | undefined;
  for (const { end } of members) {
    try {
      return await ask(end, request, context);
    } catch (error) {
      if (context.signal.aborted || !(isMethodNotFound(error) || isSilence(error))) throw error;
      if (!isMethodNotFound(error)) silence ??= error as Error;
    }
  }
  throw silence ?? methodNotFound(request.method);
}
