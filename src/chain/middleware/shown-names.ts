// Which names a filter shows. One thing may be said in many ways: with the labels of ends before it, cut because it was
// too long, an address with dots, escapes or a query in it, or an address that a template makes. What is hidden must be
// hidden in each of them, and what is shown must still be so when the dots and escapes are read; in doubt it is hidden.

import { parseTemplate, type UriTemplate } from "../../protocol/uri-template.ts";
import type { Family } from "../router/kinds.ts";
import { matches } from "./glob.ts";

/** Whether a name is shown. */
export function showing(
  family: Family,
  only: readonly string[] | undefined,
  not: readonly string[],
): (name: string) => boolean {
  if (family !== "resources") {
    return (name) => {
      if (only?.some((glob) => matches(glob, name)) === false) return false;
      const mayBe = name.length < LEAST_CUT ? matches : mayBeCutFrom;
      return !spoken(name, NAME_LABEL).some((form) => not.some((glob) => mayBe(glob, form)));
    };
  }
  const shown = only?.map(patternOf);
  const hidden = not.map(patternOf);
  return (name) => {
    if (shown?.some((pattern) => pattern.isFor(name)) === false) return false;
    const forms = spoken(name, SCHEME_LABEL).flatMap((one) => [one, canonical(one), canonical(one.replace(QUERY, ""))]);
    return !forms.some((form) => hidden.some((pattern) => pattern.mayMean(form)));
  };
}

const NAME_LABEL = /^[\w-]+\./;
const SCHEME_LABEL = /^[a-z][a-z0-9+-]*\./;

/** The name, and what is left of it without one label, two, and so on: merged ends may be merged again. */
function spoken(name: string, label: RegExp): string[] {
  const forms = [name];
  for (let rest = name; label.test(rest); forms.push(rest)) rest = rest.replace(label, "");
  return forms;
}

/** Names that were too long are shown with this at their end, and are never shorter. */
const CUT = /-[0-9a-z]{7}$/;
const LEAST_CUT = 63;

/** Whether the glob hides this, or may hide what was cut to it. */
function mayBeCutFrom(glob: string, name: string): boolean {
  if (matches(glob, name)) return true;
  if (!CUT.test(name)) return false;
  const first = name.replace(CUT, "");
  const [begins = "", ...rest] = glob.split("*");
  return begins.startsWith(first) || (rest.length > 0 && first.startsWith(begins));
}

const QUERY = /[?#].*$/s;

interface Pattern {
  /** It means this, however it is read. */
  isFor(uri: string): boolean;
  mayMean(form: string): boolean;
}

function patternOf(glob: string): Pattern {
  const read = canonical(glob);
  const template = glob.includes("{") ? templateOf(glob) : undefined;
  const fits = (form: string): boolean => template?.match(form) !== undefined;
  return {
    isFor: (uri) => [[glob, uri] as const, [read, canonical(uri)] as const].every(([a, b]) => matches(a, b) || fits(b)),
    mayMean: (form) => matches(glob, form) || matches(read, form) || fits(form),
  };
}

function templateOf(text: string): UriTemplate | undefined {
  try {
    return parseTemplate(text);
  } catch {
    return undefined;
  }
}

/** The one spelling of an address: escapes read, dots followed, doubled slashes one; what its end does may be no more. */
function canonical(uri: string): string {
  const [, scheme = "", authority = "", path = "", query = ""] =
    /^([a-z][a-z0-9+.-]*:)?(\/\/[^/?#]*)?([^?#]*)(.*)$/is.exec(uri) ?? [];
  const host = authority.toLowerCase();
  const segments: string[] = [];
  for (const [at, segment] of unescaped(path).split(/\/+/).entries()) {
    if (segment === "..") segments.splice(Math.max(1, segments.length - 1));
    else if (segment !== "." || at === 0) segments.push(segment);
  }
  return scheme.toLowerCase() + (host === "//localhost" ? "//" : host) + segments.join("/") + query;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
