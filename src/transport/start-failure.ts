// Finds out why a program did not start: chooses the line of its stderr that says so. Programs write more after it
// (stack traces, usage, "exiting") and before it (progress, warnings), so neither the first nor the last line will do.

import { hiderOf, withWords } from "../core/secrets.ts";

/** How much is shown of the beginning of a long reason, and of its end, which often says what to do. */
const REASON_START = 200;
const REASON_END = 300;

/** What surrounds a reason, and can look like one. */
const SURROUNDINGS: readonly RegExp[] = [
  // Colours.
  // oxlint-disable-next-line no-control-regex
  /\u001b\[[0-9;]*m/g,
  // The frame that Python draws around the exceptions of a group.
  /^[ \t]*(?:\| |\+[-+ ].*)/gm,
  // A stack frame of Python, with the code below it.
  /^[ \t]*File ".*", line \d+.*(?:\n[ \t]{4,}.*)*/gm,
  // The place in a source file, the code there and a mark below it, as Node begins an error.
  /^\S.*:\d+\n(?:.*\n){1,5}?[ \t]*[\^~]+[ \t]*$/gm,
  // The number and the log file of an error of npm.
  /^npm (?:error|ERR!) (?:(?:code|errno|syscall|path|dest|network)\b.*|\d+\s*|A complete log .*)?$/gim,
];

const NEVER_A_REASON =
  /^(?:at |throw |goroutine \d|exit status|Traceback |During handling |The above exception |Require stack|- |npm (?:warn|notice)|Node\.js v|note: run with|For further information|(?:usage|options|flags|commands|examples?|arguments)\b|--?\w)|\bwarn(?:ing)?\b|deprecat/i;
const SAYS_WHY =
  /\b(?:missing|required?|requires|not set|unset|undefined|must|provide|specify|please|invalid|cannot|can't|could not|unable|not found|no such|not exist|denied|refused|unauthorized|expired|unknown|unsupported|already in use)\b/i;
const IS_ERROR = /\b(?:[\w.]*error|[\w.]*exception|fatal|panic(?:ked)?)\b/i;
const IS_VAGUE = /\b(?:failed|failure|exiting|aborted)\b/i;
/** A variable, or an option of the command line. */
const NAMES_SETTING = /\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\s--[a-z][\w-]+/;
/** A line whose reason is in the lines below. */
const GOES_ON = /[:[{(]$|\b\d+ validation errors? for \S+$/;
const MAX_LINES = 12;

/**
 * The reason on one line, without what may be a key, and without the values of the variables that were set for the
 * program. Empty if the program wrote nothing.
 */
export function startFailure(stderr: string, env: Readonly<Record<string, string>> = {}): string {
  const text = SURROUNDINGS.reduce((rest, part) => rest.replaceAll(part, ""), stderr.replaceAll("\r", ""));
  const lines = text.split("\n").map((line) => line.trim());
  const reason = chooseReason(lines.map((_, at) => withLinesBelow(lines, at)));
  const isKey = (word: string): boolean => /\d/.test(word) && /[A-Za-z]/.test(word);
  const hidden = hiderOf(Object.values(env).flatMap(withWords))(reason)
    .replace(/:\/\/[^\s/@]{1,500}@/g, "://...@")
    .replace(/\b(Bearer|Basic)\s+[^\s"',;]+/gi, "$1 ...");
  return shorten(hidden.replace(/[A-Za-z0-9_+=-]{24,}/g, (word) => (isKey(word) ? "..." : word)));
}

function chooseReason(reasons: readonly string[]): string {
  const npm = reasons.find((reason) => /^npm (?:error|ERR!) ./i.test(reason));
  // The first line of an error of ours says what is wrong, the others what to do.
  const ours = reasons.findLast((reason) => reason.startsWith("catenary: "));
  if (npm !== undefined || ours !== undefined) return npm ?? ours ?? "";
  const weights = reasons.map(weightOf);
  const best = weights.reduce((most, weight) => Math.max(most, weight), 0);
  // What follows the first such line is usually its consequence. Of a chain of exceptions in Python, the last counts.
  const isLast = best <= PLAIN || reasons.some((reason) => reason.startsWith("Traceback "));
  return reasons[isLast ? weights.lastIndexOf(best) : weights.indexOf(best)] ?? "";
}

/** The weight of a line that is neither an error nor a reason. */
const PLAIN = 2;

function weightOf(line: string): number {
  if (line === "") return 0;
  if (NEVER_A_REASON.test(line)) return 1;
  const weight = PLAIN + (SAYS_WHY.test(line) ? 4 : IS_VAGUE.test(line) ? 1 : 0) + (IS_ERROR.test(line) ? 3 : 0);
  return weight > PLAIN + 1 && NAMES_SETTING.test(line) ? weight + 2 : weight;
}

/** A line, with those below it if they say why. */
function withLinesBelow(lines: readonly string[], at: number): string {
  const [first = "", ...rest] = lines.slice(at, at + MAX_LINES);
  const isWhole = !GOES_ON.test(first) && !/^Caused by:/i.test(rest[0] ?? "");
  // An error of ours has its reason in its first line.
  if (isWhole || first.startsWith("catenary: ")) return first;
  const end = rest.findIndex((line) => line === "" || NEVER_A_REASON.test(line));
  return [first, ...(end < 0 ? rest : rest.slice(0, end))].join(" ");
}

function shorten(text: string): string {
  if (text.length <= REASON_START + REASON_END) return text;
  return `${text.slice(0, REASON_START)} ... ${text.slice(-REASON_END)}`;
}
