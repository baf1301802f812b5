// Hides tools, prompts and resources. A hidden item is in no list, and a call, read or completion of it gets the error
// for an item that does not exist. Subscriptions ignore hidden resources. A page that becomes empty keeps its cursor,
// since the next page may have items. All names that reach the same item are checked, also those at the upstreams of a
// gateway; in doubt, the item is hidden.

import { copyContext } from "../../core/cancel.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../../core/handler.ts";
import { matchesGlob } from "../../core/text.ts";
import { isObject } from "../../core/values.ts";
import { object, strings, type OptionsOf } from "../../core/fields.ts";
import { McpError } from "../../protocol/errors.ts";
import {
  LIST_CAPABILITIES,
  OWN_NAMES,
  RESOURCE_UPDATED,
  type List,
  type ListCapability,
  UPSTREAM,
} from "../../protocol/lists.ts";
import { MAX_URI_LENGTH, tryParseTemplate } from "../../protocol/uri-template.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import {
  LISTS_BY_METHOD,
  mapItems,
  NAMING_PARAMS,
  notFound,
  nothingToComplete,
  readRef,
  type CompletionRef,
} from "../result-items.ts";

export { matchesGlob };

const RULE = {
  include: strings("The names to show; `*` matches any characters. Default: all."),
  exclude: strings("The names to hide, even if `include` has them."),
};

/** Which names to show, or to hide. */
export type FilterRule = OptionsOf<typeof RULE>;

const OPTIONS = {
  tools: object("Tools by their names.", RULE),
  prompts: object("Prompts by their names.", RULE),
  resources: object("Resources by their URI, templates by their URI template.", RULE),
};

/** Options of `filter()`: a rule for each kind of item. A kind without a rule is shown whole. */
export type FilterOptions = OptionsOf<typeof OPTIONS>;

/** `own`: other names of the item, such as those at the upstreams. */
export type IsVisible = (capability: ListCapability, name: string, own?: readonly unknown[]) => boolean;

/** Options for a decision that is asynchronous, or that callers are told of. */
export interface HideOptions {
  /** A second condition, for which there are no other names. */
  readonly isAllowed?: ((capability: ListCapability, name: string) => boolean | Promise<boolean>) | undefined;
  /** The error for an item that is hidden. Default: as for one that does not exist. */
  readonly refuse?: ((capability: ListCapability, name: string) => McpError) | undefined;
  /** Whether the name that the caller uses is enough, without those at the upstreams. Default: false. */
  readonly knowsNames?: boolean | undefined;
}

/**
 * Hides tools, prompts and resources from callers. A call of a hidden one fails as if it did not exist.
 *
 * @example
 * filter({ tools: { exclude: ["delete*"] } })
 */
export const filter: DefinedMiddleware<[options: FilterOptions]> = define({
  name: "filter",
  summary: "Hides tools, prompts and resources. A call of a hidden one fails as if it did not exist.",
  options: OPTIONS,
  middleware: createFilter,
});

function createFilter(options: FilterOptions, { error }: DefinitionPlace): Middleware {
  if (LIST_CAPABILITIES.every((capability) => options[capability] === undefined)) {
    throw error("", "must have a rule for `tools`, `prompts` or `resources`");
  }
  const rules = Object.fromEntries(
    LIST_CAPABILITIES.map((capability) => {
      const { include, exclude = [] } = options[capability] ?? {};
      return [capability, nameMatcher(capability, include, exclude)];
    }),
  );
  const isVisible: IsVisible = (capability, name, own) => rules[capability]?.(name, own) !== false;
  const hasToolRule = options.tools !== undefined;
  return function filter(request, context, next) {
    return hasToolRule || request.method !== "tools/call"
      ? hideItems(request, context, next, isVisible)
      : next(request, context);
  };
}

/**
 * A handler with a filter for one upstream of a gateway. Its rules may name a tool or prompt as the upstream does, or
 * with the prefix of the upstream, whether or not it is shown with it.
 */
export function filterUpstream(options: FilterOptions, handler: Handler, labelled: (own: string) => string): Handler {
  const rules = Object.fromEntries(
    LIST_CAPABILITIES.map((capability) => {
      const { include, exclude = [] } = options[capability] ?? {};
      const matches = nameMatcher(capability, include, exclude);
      if (capability === "resources") return [capability, matches];
      const isOnly = (name: string): boolean =>
        include === undefined || [name, labelled(name)].some((form) => include.some((glob) => matchesGlob(glob, form)));
      const isAllowed = nameMatcher(capability, undefined, exclude);
      return [capability, (name: string): boolean => isOnly(name) && isAllowed(name, [labelled(name)])];
    }),
  ) as Record<ListCapability, (name: string) => boolean>;
  const isVisible: IsVisible = (capability, name) => rules[capability](name);
  return (request, context) => hideItems(request, context, handler, isVisible);
}

/** Answers a request as if there were only the visible items. */
export function hideItems(
  request: Request,
  context: Context,
  next: Handler,
  isVisible: IsVisible,
  options: HideOptions = {},
): Promise<Result> {
  const { method } = request;
  const list = LISTS_BY_METHOD.get(method);
  if (list !== undefined)
    return next(request, context).then((result) => visibleItems(result, list, isVisible, options));
  if (method === "subscriptions/listen") return listen(request, context, next, isVisible, options);
  const named = namedItem(request);
  return named === undefined ? next(request, context) : useItem(named, request, context, next, isVisible, options);
}

async function visibleItems(
  result: Result,
  list: List,
  isVisible: IsVisible,
  { isAllowed }: HideOptions,
): Promise<Result> {
  const { capability } = list;
  const shown = mapItems(result, list, (item, name) =>
    isVisible(capability, name, otherNames(item, name)) ? item : undefined,
  );
  if (isAllowed === undefined) return shown;
  const allowed = new Map<string, boolean | Promise<boolean>>();
  mapItems(shown, list, (item, name) => {
    if (!allowed.has(name)) allowed.set(name, isAllowed(capability, name));
    return item;
  });
  const names = new Map(await Promise.all([...allowed].map(async ([name, is]) => [name, await is] as const)));
  return mapItems(shown, list, (item, name) => (names.get(name) === true ? item : undefined));
}

function useItem(
  item: NamedItem,
  request: Request,
  context: Context,
  next: Handler,
  isVisible: IsVisible,
  options: HideOptions,
): Promise<Result> {
  const { capability, name } = item;
  if (!isVisible(capability, name)) return Promise.reject(refusal(item, request, options));
  const { isAllowed } = options;
  if (isAllowed === undefined) return routeItem(item, request, context, next, isVisible, options);
  return (async () => isAllowed(capability, name))().then((is) => {
    if (!is) throw refusal(item, request, options);
    return routeItem(item, request, context, next, isVisible, options);
  });
}

function refusal({ capability, name }: NamedItem, { method, params }: Request, { refuse }: HideOptions): McpError {
  if (refuse !== undefined) return refuse(capability, name);
  return method === "completion/complete"
    ? nothingToComplete(capability, name, params["ref"])
    : notFound(capability, name);
}

function routeItem(
  item: NamedItem,
  request: Request,
  context: Context,
  next: Handler,
  isVisible: IsVisible,
  options: HideOptions,
): Promise<Result> {
  if (item.capability === "resources") return next(request, context);
  const routed =
    options.knowsNames === true
      ? context
      : withRouteCheck(item, context, isVisible, () => refusal(item, request, options));
  return next(request, routed).then(undefined, (error: unknown) => {
    // The error of an ambiguous name lists other names, which may be hidden.
    const isAmbiguous = error instanceof McpError && isObject(error.data) && "candidates" in error.data;
    throw isAmbiguous ? refusal(item, request, options) : error;
  });
}

/** The name is known here, but only the gateway knows which item of which upstream it is. */
function withRouteCheck(
  { capability, name }: NamedItem,
  context: Context,
  isVisible: IsVisible,
  refuse: () => McpError,
): Context {
  const onRoute: Context["onRoute"] = (upstream, sent) => {
    const own = namedItem(sent);
    const forms = own === undefined ? [] : [own.name, ...(upstream === undefined ? [] : [`${upstream}_${own.name}`])];
    if (!isVisible(capability, name, forms)) throw refuse();
    context.onRoute?.(upstream, sent);
  };
  return copyContext(context, { onRoute });
}

type NamedItem = Pick<CompletionRef, "capability" | "name">;

/** The item that a request names. */
function namedItem({ method, params }: Request): NamedItem | undefined {
  if (method === "completion/complete") return readRef(params["ref"]);
  const naming = NAMING_PARAMS.get(method);
  const name = naming && params[naming.param];
  return naming === undefined || typeof name !== "string" ? undefined : { capability: naming.capability, name };
}

/** The names of an item at the upstreams, and its name with the upstream as a prefix, even if it is shown without. */
function otherNames({ _meta: meta }: { readonly [key: string]: unknown }, shown: string): readonly unknown[] {
  if (!isObject(meta)) return [];
  const { [OWN_NAMES]: listed, [UPSTREAM]: upstream } = meta;
  const names: readonly unknown[] = Array.isArray(listed) ? listed : [];
  const [own = shown] = names;
  return typeof upstream === "string" && typeof own === "string" ? [...names, `${upstream}_${own}`] : names;
}

/** Removes hidden URIs from the request. Updates are checked too, since they may be for URIs below a requested one. */
async function listen(
  request: Request,
  context: Context,
  next: Handler,
  isVisible: IsVisible,
  { isAllowed }: HideOptions,
): Promise<Result> {
  const { params } = request;
  const wanted = params["notifications"];
  const uris = isObject(wanted) ? wanted["resourceSubscriptions"] : undefined;
  if (!isObject(wanted) || !Array.isArray(uris)) return next(request, context);
  const isShown = (uri: unknown): boolean | Promise<boolean> =>
    typeof uri !== "string" || (isVisible("resources", uri) && (isAllowed?.("resources", uri) ?? true));
  const shown = await Promise.all((uris as readonly unknown[]).map(async (uri) => isShown(uri)));
  const resourceSubscriptions = (uris as readonly unknown[]).filter((_uri, index) => shown[index]);
  const notify = (notification: Notification): void | Promise<void> => {
    const answer = notification.method !== RESOURCE_UPDATED || isShown(notification.params?.["uri"]);
    const pass = (is: boolean): void => (is ? context.notify(notification) : undefined);
    return typeof answer === "boolean" ? pass(answer) : answer.then(pass);
  };
  return next(
    { ...request, params: { ...params, notifications: { ...wanted, resourceSubscriptions } } },
    { ...context, notify: (notification) => notify(notification) as void },
  );
}

/** Returns whether an item is visible. `own`: its names at the upstreams, of which only strings count. */
export type NameMatcher = (name: string, own?: readonly unknown[]) => boolean;

export function nameMatcher(
  capability: ListCapability,
  include: readonly string[] | undefined,
  exclude: readonly string[],
): NameMatcher {
  if (capability !== "resources") {
    const isHidden = (form: unknown): boolean =>
      typeof form === "string" && exclude.some((glob) => matchesGlob(glob, form));
    return (name, own) => {
      if (include?.some((glob) => matchesGlob(glob, name)) === false) return false;
      return exclude.length === 0 || (!isHidden(name) && own?.some(isHidden) !== true);
    };
  }
  const shown = include?.map(uriPattern);
  const hidden = exclude.map(uriPattern);
  return (name) => {
    if (shown?.some((pattern) => pattern.matchesAllForms(name)) === false) return false;
    if (hidden.length === 0) return true;
    const isHidden = (form: string): boolean => {
      const folded = form.startsWith("file:") ? foldCase(form) : undefined;
      return hidden.some((pattern) => pattern.matchesAnyForm(form, folded));
    };
    if (name.length > MAX_URI_LENGTH || isHidden(name)) return false;
    let rest = cleanUri(name);
    // A label may be the prefix of an upstream, and there are several if gateways are nested.
    for (let labels = 0; labels <= MAX_LABELS; labels += 1) {
      if (isHidden(rest) || normalForms(rest).some(isHidden) || normalForms(rest, false).some(isHidden)) return false;
      const label = LABEL.exec(rest);
      if (label === null) return true;
      rest = rest.slice(label[0].length);
    }
    return false;
  };
}

const LABEL = /^[a-z][a-z0-9+-]*\./;
/** A URI with more labels is hidden by any rule, since each label is one more URI to compare with the rules. */
const MAX_LABELS = 16;

interface UriPattern {
  /** Whether it matches the URI both as written and normalized. */
  matchesAllForms(uri: string): boolean;
  /** `folded`: a file URI without regard to case. */
  matchesAnyForm(form: string, folded: string | undefined): boolean;
}

function uriPattern(glob: string): UriPattern {
  const normalized = normalForms(glob);
  const template = glob.includes("{") ? tryParseTemplate(glob) : undefined;
  const fitsTemplate = (form: string): boolean => template?.match(form) !== undefined;
  const fits = (form: string): boolean => normalized.some((one) => matchesGlob(one, form)) || fitsTemplate(form);
  const foldedGlobs = [...new Set([glob, ...normalized].map(foldCase))];
  const foldedTemplates = template === undefined ? [] : foldedGlobs.map(tryParseTemplate);
  const fitsFolded = (form: string): boolean =>
    foldedGlobs.some((one) => matchesGlob(one, form)) || foldedTemplates.some((one) => one?.match(form) !== undefined);
  return {
    matchesAllForms: (uri) => (matchesGlob(glob, uri) || fitsTemplate(uri)) && normalForms(uri).every(fits),
    matchesAnyForm: (form, folded) =>
      matchesGlob(glob, form) ||
      fits(form) ||
      (folded !== undefined && fitsFolded(folded)) ||
      // A URI this long is not matched, so whether the template fits is unknown.
      (template !== undefined && form.length > MAX_URI_LENGTH),
  };
}

/**
 * Makes names equal that are the same file on a disk which ignores case, as those of Windows and macOS do. The disk of an
 * upstream is not known, so what a rule hides on one of these is hidden everywhere.
 */
function foldCase(uri: string): string {
  return uri.normalize("NFC").toUpperCase().toLowerCase();
}

/**
 * The meanings that a URI may have: servers differ in whether they decode percent-escapes before or after they resolve
 * dot segments, and in whether they first join repeated slashes.
 */
function normalForms(uri: string, hasQuery = true): readonly string[] {
  const [, scheme = "", authority = "", path = "", query = ""] =
    /^([a-z][a-z0-9+.-]*:)?(\/\/[^/?#]*)?([^?#]*)(.*)$/is.exec(cleanUri(uri)) ?? [];
  const lower = scheme.toLowerCase();
  const host = unescape(authority).toLowerCase();
  const isFile = lower === "file:";
  const start = lower + ((isFile && host === "") || host === "//localhost" ? "//" : host);
  const rooted = isFile && !path.startsWith("/") ? `/${path}` : path;
  return pathForms(rooted).map((form) => start + form + (hasQuery ? query : ""));
}

/** The last path and its forms: a URI is compared with and without its labels and query, and its path stays the same. */
let last: { readonly path: string; readonly forms: readonly string[] } = { path: "", forms: [""] };

function pathForms(path: string): readonly string[] {
  if (last.path !== path) {
    const paths = [...resolved(unescape(path)), ...resolved(path.replaceAll(/%2e/gi, ".")).map(unescape)];
    last = { path, forms: [...new Set(paths.map((form) => form.replaceAll(/\/+/g, "/")))] };
  }
  return last.forms;
}

function resolved(path: string): readonly string[] {
  const slashed = path.replaceAll("\\", "/");
  return [resolveDots(slashed), resolveDots(slashed.replaceAll(/\/+/g, "/"))];
}

/** Without what the URL standard ignores, with slashes for backslashes, and with two slashes before a web server. */
function cleanUri(uri: string): string {
  return uri
    .replaceAll(/^[\p{Cc} ]+|(?<![\p{Cc} ])[\p{Cc} ]+$|[\t\n\r]/gu, "")
    .replaceAll("\\", "/")
    .replace(/^(https?|wss?|ftp):\/*/i, "$1://");
}

function resolveDots(path: string): string {
  const segments: string[] = [];
  for (const [at, segment] of path.split("/").entries()) {
    if (segment === "..") segments.splice(Math.max(1, segments.length - 1));
    else if (segment !== "." || at === 0) segments.push(segment);
  }
  // The last one leads to a folder.
  return segments.join("/") + (/\/\.{1,2}$/.test(path) ? "/" : "");
}

/** The escapes of one character in UTF-8. */
const ESCAPED =
  /%[0-7][\da-f]|%[cd][\da-f]%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-7](?:%[89ab][\da-f]){3}/gi;

/** Decodes percent-escapes. Those that are not valid UTF-8 stay. */
function unescape(text: string): string {
  return text.replaceAll(ESCAPED, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped;
    }
  });
}
