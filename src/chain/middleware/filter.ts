// Hides tools, prompts and resources. What is hidden stands in no list, and whoever calls, reads, completes or
// subscribes to it is told what they would be told if it were not there. A page of a list that becomes empty keeps its
// cursor: the next one may have something to show.

import type { Context } from "../../core/handler.ts";
import type { Handler, Link, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { FAMILIES, type Family } from "../router/kinds.ts";
import { eachItem, LISTS, NAMED, referred, uncompletable, unknown } from "./listed.ts";
import { OptionReader } from "../../core/options.ts";
import { showing } from "./shown-names.ts";

/**
 * Names, with `*` for any letters: those that are shown (all, where it is left out), and those of them that are not.
 * What is not shown is not shown either as a name of one end among several: `delete` hides `notes.delete` too; nor in
 * another spelling of its address; nor, where it is a template, by the addresses that the template makes.
 */
export interface Shown {
  readonly only?: readonly string[];
  readonly not?: readonly string[];
}

export interface FilterOptions {
  readonly tools?: Shown;
  readonly prompts?: Shown;
  /** By address; templates by theirs. */
  readonly resources?: Shown;
}

type IsShown = (family: Family, name: string) => boolean;

export function filter(options: FilterOptions): Link {
  const read = new OptionReader("filter", options, FAMILIES);
  if (options === undefined || FAMILIES.every((family) => read.any(family) === undefined)) {
    throw read.error("", "must say what is hidden, in `tools`, `prompts` or `resources`");
  }
  const rules = Object.fromEntries(
    FAMILIES.map((family) => [family, ruleOf(family, read.inner(family, ["only", "not"]))]),
  );
  const isShown: IsShown = (family, name) => rules[family]?.(name) !== false;
  return { name: "filter", run: (request, context, next) => pass(request, context, next, isShown) };
}

function ruleOf(family: Family, shown: OptionReader): (name: string) => boolean {
  return showing(family, shown.strings("only"), shown.strings("not") ?? []);
}

async function pass(request: Request, context: Context, next: Handler, isShown: IsShown): Promise<Result> {
  const { method, params } = request;
  const list = LISTS.get(method);
  if (list !== undefined) {
    const result = await next(request, context);
    return eachItem(result, list, (item, name) => (isShown(list.family, name) ? item : undefined));
  }
  const named = NAMED.get(method);
  if (named !== undefined) {
    const name = params[named.param];
    if (typeof name === "string" && !isShown(named.family, name)) throw unknown(named.family, name);
  }
  if (method === "completion/complete") {
    const { ref } = params;
    const about = referred(ref);
    if (about !== undefined && !isShown(about.family, about.name)) throw uncompletable(about.family, about.name, ref);
  }
  return method === "subscriptions/listen" ? listen(request, context, next, isShown) : next(request, context);
}

/** Addresses that are hidden are not asked for, and so not granted; nor is anything heard of what stands below others. */
function listen(request: Request, context: Context, next: Handler, isShown: IsShown): Promise<Result> {
  const isVisible = (uri: unknown): boolean => typeof uri !== "string" || isShown("resources", uri);
  const { params } = request;
  const wanted = params["notifications"];
  const uris = isObject(wanted) ? wanted["resourceSubscriptions"] : undefined;
  if (!isObject(wanted) || !Array.isArray(uris)) return next(request, context);
  const notifications = { ...wanted, resourceSubscriptions: (uris as readonly unknown[]).filter(isVisible) };
  return next(
    { ...request, params: { ...params, notifications } },
    {
      ...context,
      notify: (notification) => {
        const isUpdate = notification.method === "notifications/resources/updated";
        if (!isUpdate || isVisible(notification.params?.["uri"])) context.notify(notification);
      },
    },
  );
}
