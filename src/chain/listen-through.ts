// Passes a subscription through a transform. The URIs that callers subscribe to become those inside of it, hidden ones
// are left out, and acknowledgements and updates come back with the URIs that callers use.

import type { Context, Handler, Notification, Request, Result } from "../core/handler.ts";
import { filterOf, grantedIn, namesIn, RESOURCE_UPDATED, TASK_CHANGED } from "../protocol/subscription.ts";
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
  const filter = filterOf(request);
  const hasUris = filter.resourceSubscriptions !== undefined && transform.kinds.has("resources");
  if (!hasUris && outerUri === undefined) return next(request, context);
  const outside = (uri: string): ReturnType<typeof ask> => ask(new Item({ kind: "resources", name: uri }));
  const inside = async (uri: string): Promise<readonly string[]> => {
    const name = transform.innerName === undefined ? uri : transform.innerName("resources", uri);
    return name !== undefined && (await outside(name))?.name === uri ? [name] : [];
  };
  const notify = (notification: Notification): void | Promise<void> => {
    const { method, params: fields = {} } = notification;
    const { uri } = fields;
    const granted = grantedIn(notification);
    if (method === RESOURCE_UPDATED && typeof uri === "string") {
      const pass = (item: Item | undefined): void => {
        if (item !== undefined)
          context.notify(item.name === uri ? notification : { method, params: { ...fields, uri: item.name } });
      };
      const item = outside(uri);
      return item instanceof Promise ? item.then(pass) : pass(item);
    }
    if (outerUri === undefined) context.notify(notification);
    else if (method === TASK_CHANGED) context.notify({ method, params: mapResultUris(fields, outerUri) });
    else if (granted?.resourceSubscriptions === undefined) context.notify(notification);
    else {
      const resourceSubscriptions = namesIn(granted, "resourceSubscriptions").map((name) => outerUri(name));
      context.notify({ method, params: { ...fields, notifications: { ...granted, resourceSubscriptions } } });
    }
  };
  let { params } = request;
  if (hasUris) {
    const uris = await Promise.all(namesIn(filter, "resourceSubscriptions").map(inside));
    params = { ...params, notifications: { ...filter, resourceSubscriptions: uris.flat() } };
  }
  // An answer that must be waited for makes a promise, whose rejection the guard of the middleware catches.
  return next({ ...request, params }, { ...context, notify: (notification) => notify(notification) as void });
}
