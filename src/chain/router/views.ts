// The views of all callers: callers to whom ends must answer alike share one. Whether a caller has declared tasks makes
// no difference here, because one and the same caller does so with some of its requests and not with others, and the
// names are the same for both.

import type { Caller, Context } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { hasTasks, TASKS } from "../../protocol/tasks.ts";
import { callerKey, styleOf } from "../upstream/caller-key.ts";
import type { RoutedUpstream } from "./member.ts";
import type { NamesOption } from "./names.ts";
import { Recent } from "./recent.ts";
import { View } from "./view.ts";

const MOST_VIEWS = 1_000;

export class Views {
  readonly #ends: readonly RoutedUpstream[];
  readonly #option: NamesOption;
  readonly #views = new Recent<string, View>(MOST_VIEWS);

  constructor(ends: readonly RoutedUpstream[], option: NamesOption) {
    this.#ends = ends;
    this.#option = option;
  }

  of(context: Context): View {
    const key = keyOf(context);
    let view = this.#views.get(key);
    if (view === undefined) {
      view = new View(this.#ends, this.#option);
      this.#views.set(key, view);
    }
    return view;
  }
}

/** By object, since a session's caller is often one object for all its calls; that of an exchange never is. */
const keys = new WeakMap<Caller, { readonly revision: string; readonly key: string }>();

function keyOf(context: Context): string {
  const { caller, revision } = context;
  const known = keys.get(caller);
  if (known?.revision === revision) return known.key;
  const key = callerKey(withoutTasks(context));
  if (styleOf(context) === "session") keys.set(caller, { revision, key });
  return key;
}

const stripped = new WeakMap<Caller["capabilities"], Caller["capabilities"]>();

function withoutTasks(context: Context): Context {
  const { capabilities } = context.caller;
  if (!hasTasks(capabilities)) return context;
  let others = stripped.get(capabilities);
  if (others === undefined) {
    const { extensions, ...rest } = capabilities;
    const { [TASKS]: _tasks, ...left } = isObject(extensions) ? extensions : {};
    others = Object.keys(left).length === 0 ? rest : { ...rest, extensions: left };
    stripped.set(capabilities, others);
  }
  return { ...context, caller: { ...context.caller, capabilities: others } };
}
