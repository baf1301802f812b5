// Rules that match items by their names. For URIs, all spellings that may lead to the same resource count, and in doubt
// an item is hidden: servers differ in how they read a URI, and a rule must hold for each of them.

import { matchesGlob } from "../../core/text.ts";
import type { ListCapability } from "../../protocol/lists.ts";
import { MAX_URI_LENGTH, tryParseTemplate } from "../../protocol/uri-template.ts";

/** Returns whether an item is visible. `ownNames`: its names at the upstreams, of which only strings count. */
export type NameMatcher = (name: string, ownNames?: readonly unknown[]) => boolean;

export function nameMatcher(
  capability: ListCapability,
  include: readonly string[] | undefined,
  exclude: readonly string[],
): NameMatcher {
  if (capability !== "resources") {
    const isHidden = (form: unknown): boolean =>
      typeof form === "string" && exclude.some((glob) => matchesGlob(glob, form));
    return (name, ownNames) => {
      if (include?.some((glob) => matchesGlob(glob, name)) === false) return false;
      return exclude.length === 0 || (!isHidden(name) && ownNames?.some(isHidden) !== true);
    };
  }
  const included = include?.map(uriPattern);
  const hidden = exclude.map(uriPattern);
  return (name) => {
    if (included?.some((pattern) => pattern.matchesAllForms(name)) === false) return false;
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
  const fits = (form: string): boolean => normalized.some((glob) => matchesGlob(glob, form)) || fitsTemplate(form);
  const foldedGlobs = [...new Set([glob, ...normalized].map(foldCase))];
  const foldedTemplates = template === undefined ? [] : foldedGlobs.map(tryParseTemplate);
  const fitsFolded = (form: string): boolean =>
    foldedGlobs.some((glob) => matchesGlob(glob, form)) ||
    foldedTemplates.some((template) => template?.match(form) !== undefined);
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
