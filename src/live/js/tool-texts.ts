// The texts of the JavaScript tools, made from what the main thread found: profiles, heap, variables, sources. Also the
// text of check-syntax, which does not need the main thread.

import type { Condition, GuestText } from "../runtime.ts";
import type { SourceInfo, VariableList } from "./globals.ts";
import type { HeapProfile } from "./profiles.ts";
import type { Thrown } from "./messages.ts";
import { CodeSyntaxError, parse } from "./parse.ts";
import type { ReloadReport } from "./reload.ts";
import { rewrite } from "./rewrite.ts";
import { type ConditionBuilder, parseCondition } from "./conditions.ts";

export interface ToolOutcome {
  readonly value?: string;
  readonly realMs: number;
  readonly found?: unknown;
}

/** The maximum number of rows of a table. */
const MAX_ROWS = 20;

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

interface ProfileRow {
  readonly function: string;
  readonly place: string;
  readonly self: number;
}

export function toolReport(op: string, outcome: ToolOutcome, conditions: ConditionBuilder): GuestText {
  const { found } = outcome;
  const isGuestFile = (url: string): boolean => conditions.isGuestFile(url);
  switch (op) {
    case "profile-code":
      return timeReport(outcome, isGuestFile);
    case "heap-report":
      return heapReport(outcome, found as HeapProfile, isGuestFile);
    case "inspect":
    case "read-resource":
      return found as GuestText;
    case "reload":
      return reloadReport(found as ReloadReport, (thrown) => conditions.fromThrown(thrown));
    case "list-definitions":
    case "list-variables":
      return variableReport(found as VariableList);
    default:
      return sourceReport(found as SourceInfo | string);
  }
}

export function syntaxReport(code: string): GuestText {
  try {
    const parsed = parse(code);
    const { declared, awaits } = rewrite(parsed);
    const language = parsed.typedColumn !== undefined ? "TypeScript" : "JavaScript";
    const names = declared.map(({ name, type }) => `${name} (${type})`).join(", ");
    const text = [
      `The syntax is valid: ${language}, ${parsed.program.body.length} statement(s).`,
      ...(names === "" ? [] : [`It declares ${names}.`]),
      ...(awaits ? ["It has a top-level await."] : []),
    ].join("\n");
    return { text, data: { valid: true, language, declared: declared.map(({ name, type }) => ({ name, type })) } };
  } catch (error) {
    const { message } = parseCondition(error, code, "");
    if (!(error instanceof CodeSyntaxError)) return { text: message, isError: true };
    return {
      text: `The syntax is invalid: ${message}`,
      data: { valid: false, message: error.message, ...error.position },
    };
  }
}

/** One row for each function, the largest first. */
function sumByFunction(
  samples: Iterable<readonly [CallFrame, number]>,
  isGuestFile: (url: string) => boolean,
): ProfileRow[] {
  const sums = new Map<string, ProfileRow>();
  for (const [{ functionName, url, lineNumber }, amount] of samples) {
    // "dispatch" is the profiler itself.
    if (amount === 0 || isGuestFile(url) || (url === "" && functionName === "dispatch")) continue;
    const name = functionName === "" ? "(anonymous)" : functionName;
    const place = url === "" ? "" : `${url}:${lineNumber + 1}`;
    const key = `${name} ${place}`;
    sums.set(key, { function: name, place, self: (sums.get(key)?.self ?? 0) + amount });
  }
  return [...sums.values()].toSorted((one, other) => other.self - one.self);
}

interface TimeProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples?: readonly number[];
  readonly timeDeltas?: readonly number[];
}

function timeReport({ value, realMs, found }: ToolOutcome, isGuestFile: (url: string) => boolean): GuestText {
  const { nodes = [], samples = [], timeDeltas = [] } = (found ?? {}) as Partial<TimeProfile>;
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const spent = samples.map((id, at) => [frames.get(id) as CallFrame, (timeDeltas[at] ?? 0) / 1000] as const);
  const all = sumByFunction(spent, isGuestFile).filter((row) => !/^\((?:root|program|idle)\)$/.test(row.function));
  const total = all.reduce((sum, { self }) => sum + self, 0);
  const rows = all.slice(0, MAX_ROWS);
  const lines = rows.map((row) => {
    const share = `${((100 * row.self) / total).toFixed(1)}%`.padStart(6);
    return `${row.self.toFixed(1).padStart(9)} ms ${share}  ${row.function}${row.place === "" ? "" : `  ${row.place}`}`;
  });
  const head = `${realMs.toFixed(1)} ms real, ${samples.length} samples, ${total.toFixed(1)} ms in code`;
  const text = [
    head,
    "",
    ...(lines.length > 0 ? ["Self time by function:", ...lines] : ["The code was too short to be sampled."]),
  ];
  if (value !== undefined) text.push("", `=> ${value}`);
  const functions = rows.map((row) => ({ ...row, self: hundredths(row.self) }));
  return { text: text.join("\n"), data: { realMs: hundredths(realMs), samples: samples.length, functions } };
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}

interface HeapNode {
  readonly callFrame: CallFrame;
  readonly selfSize: number;
  readonly children?: readonly HeapNode[];
}

function heapReport(
  { value }: ToolOutcome,
  { heap, memory, spaces, grown, profile }: HeapProfile,
  isGuestFile: (url: string) => boolean,
): GuestText {
  const lines = [
    `Heap: ${bytes(heap.used_heap_size)} used of ${bytes(heap.heap_size_limit)} allowed`,
    `Process: ${bytes(memory.rss)} resident, ${bytes(memory.external)} external, ${bytes(memory.arrayBuffers)} in buffers`,
    `Spaces: ${spaces
      .filter(({ space_used_size: used }) => used > 0)
      .map(({ space_name: name, space_used_size: used }) => `${name.replace(/_space$/, "")} ${bytes(used)}`)
      .join(", ")}`,
  ];
  const { head } = (profile ?? {}) as { readonly head?: HeapNode };
  const rows = head === undefined ? [] : sumByFunction(allocations(head), isGuestFile).slice(0, MAX_ROWS);
  if (grown !== undefined) {
    lines.push(
      "",
      `Heap growth after the code and a full garbage collection: ${grown < 0 ? "-" : "+"}${bytes(Math.abs(grown))}`,
    );
    lines.push(...(rows.length > 0 ? ["Still in use, by allocating function (sampled):"] : []));
    for (const row of rows) lines.push(`${bytes(row.self).padStart(12)}  ${row.function}  ${row.place}`.trimEnd());
  }
  if (value !== undefined) lines.push("", `=> ${value}`);
  const usage = { used: heap.used_heap_size, limit: heap.heap_size_limit, resident: memory.rss };
  return { text: lines.join("\n"), data: { ...usage, ...(grown === undefined ? {} : { grown, allocations: rows }) } };
}

function* allocations(node: HeapNode): Generator<readonly [CallFrame, number]> {
  yield [node.callFrame, node.selfSize];
  for (const child of node.children ?? []) yield* allocations(child);
}

function bytes(count: number): string {
  if (count < 10_000) return `${count} bytes`;
  return count < 10_000_000 ? `${(count / 1024).toFixed(0)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

function variableReport({ variables, total }: VariableList): GuestText {
  if (total === 0) return { text: "There are no matching variables.", data: { variables, total } };
  const lines = variables.map(({ name, type, preview }) => `${name}: ${type} = ${preview}`);
  if (total > variables.length) lines.push(`... ${total - variables.length} more`);
  return { text: lines.join("\n"), data: { variables, total } };
}

function reloadReport(report: ReloadReport, toCondition: (thrown: Thrown) => Condition): GuestText {
  const { checked, reloaded, names, missing } = report;
  const failed = report.failed.map(({ file, thrown }) => {
    const { type, message } = toCondition(thrown);
    return { file, error: `${type}: ${message}` };
  });
  const lines: string[] = [];
  if (reloaded.length > 0) lines.push("Reloaded:");
  for (const { file, isChanged } of reloaded) lines.push(`  ${file}${isChanged ? "" : " (imports a reloaded module)"}`);
  if (names.length > 0) lines.push(`Names that have the new values: ${names.join(", ")}`);
  if (missing.length > 0)
    lines.push(`Names that have no value in the new modules, so that they keep the old one: ${missing.join(", ")}`);
  if (failed.length > 0) lines.push("Failed, so that the old module stays:");
  for (const { file, error } of failed) lines.push(`  ${file}: ${error.replaceAll("\n", "\n    ")}`);
  if (lines.length === 0) lines.push(`No module has changed, of ${checked} loaded from files outside of packages.`);
  const data = { reloaded: reloaded.map(({ file }) => file), failed: failed.map(({ file }) => file), names, missing };
  return { text: lines.join("\n"), data, isError: failed.length > 0 };
}

function sourceReport(info: SourceInfo | string): GuestText {
  if (typeof info === "string") return { text: info, isError: true };
  const head = info.place === "" ? "" : `// ${info.place}\n`;
  return { text: head + info.source, data: { ...info } };
}
