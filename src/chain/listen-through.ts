// Passes a subscription through a transform. The URIs that callers subscribe to become those inside of it, hidden ones
// are left out, and acknowledgements and updates come back with the URIs that callers use.

import type { Context, Handler, Notification, Params, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { RESOURCE_UPDATED, SUBSCRIPTION_ACKNOWLEDGED } from "../protocol/lists.ts";
import { Item } from "./item.ts";
import type { Transform } from "./layer.ts";
import { mapResultUris } from "./result-items.ts";

/** `ask` gives the item outside of the transform. */
export async function listenThrough(
  transform: Transform,
  request: Request,
  context: Context,
  next: Handler,
  ask: (item: Item) => Item | undefined | Promise<Item | undefined>,
): Promise<Result> {
  const { outerUri } = transform;
  const wanted = request.params["notifications"];
  const uris: unknown = isObject(wanted) ? wanted["resourceSubscriptions"] : undefined;
  const hasUris = Array.isArray(uris) && transform.kinds.has("resources");
  if (!hasUris && outerUri === undefined) return next(request, context);
  /** The URI that callers see; undefined if they see none. */
  const shown = (uri: string): string | undefined | Promise<string | undefined> => {
    const item = ask(new Item({ kind: "resources", name: uri }));
    return item instanceof Promise ? item.then((found) => found?.name) : item?.name;
  };
  const inside = async (uri: string): Promise<string | undefined> => {
    const name = transform.innerName === undefined ? uri : transform.innerName("resources", uri);
    return name !== undefined && (await shown(name)) === uri ? name : undefined;
  };
  const params = hasUris ? await mapSubscribed(request.params, inside) : request.params;
  const notify = (notification: Notification): void | Promise<void> => {
    const { method, params: given = {} } = notification;
    const { uri } = given;
    if (method === RESOURCE_UPDATED && typeof uri === "string") {
      const pass = (name: string | undefined): void => {
        if (name !== undefined)
          context.notify(name === uri ? notification : { method, params: { ...given, uri: name } });
      };
      const name = shown(uri);
      return name instanceof Promise ? name.then(pass) : pass(name);
    }
    if (outerUri === undefined) context.notify(notification);
    else if (method === "notifications/tasks") context.notify({ method, params: mapResultUris(given, outerUri) });
    else if (method === SUBSCRIPTION_ACKNOWLEDGED) context.notify({ method, params: mapAcknowledged(given, outerUri) });
    else context.notify(notification);
  };
  // An answer that must be waited for makes a promise, whose rejection the guard of the middleware catches.
  return next({ ...request, params }, { ...context, notify: (notification) => notify(notification) as void });
}

/** Changes the URIs in a filter. A URI for which `change` gives undefined is removed. */
async function mapSubscribed(params: Params, change: (uri: string) => Promise<string | undefined>): Promise<Params> {
  const wanted = params["notifications"] as Params;
  const uris = wanted["resourceSubscriptions"] as readonly unknown[];
  const changed = await Promise.all(uris.map(async (uri) => (typeof uri === "string" ? change(uri) : uri)));
  const resourceSubscriptions = changed.filter((uri) => uri !== undefined);
  return { ...params, notifications: { ...wanted, resourceSubscriptions } };
}

function mapAcknowledged(params: Params, change: (uri: string) => string): Params {
  const granted = params["notifications"];
  const uris: unknown = isObject(granted) ? granted["resourceSubscriptions"] : undefined;
  if (!isObject(granted) || !Array.isArray(uris)) return params;
  const changed = (uris as readonly unknown[]).map((uri) => (typeof uri === "string" ? change(uri) : uri));
  return { ...params, notifications: { ...granted, resourceSubscriptions: changed } };
}
