// Live sessions as a kind of entry under `mcpServers`, and code mode, whose sessions call the tools of the gateway: their
// settings, and what is created from them. What differs between languages comes from the registry in src/live; a language
// is loaded only when it is used.

import { dirname } from "node:path";
import type { Gateway } from "../chain/gateway.ts";
import { GatewayReaders, type CallReader, type ObservedCall } from "../chain/observe.ts";
import type { Handler } from "../core/handler.ts";
import type { Secret } from "../core/secrets.ts";
import { defined } from "../core/values.ts";
import type { CodeMode, CodeModeOptions } from "../live/code-mode.ts";
import { js } from "../live/js/entry.ts";
import {
  findLanguage,
  LANGUAGE_LIST,
  LANGUAGE_NAMES,
  LANGUAGES,
  languageSettings,
  suggestLanguage,
} from "../live/languages.ts";
import type { SandboxProblem } from "../live/grants.ts";
import { CODE, CODE_SESSIONS, GUEST, LIMITS, LIVE, type LiveOptions, type SandboxOptions } from "../live/options.ts";
import type { Limits } from "../live/runtime.ts";
import type { LanguageEntry, LanguageOptions } from "../live/tool.ts";
import type { Problem } from "./document.ts";
import {
  type ConfigPlace,
  cwd,
  defineKind,
  env,
  program,
  requiredProgram,
  type UpstreamKind,
  type UpstreamSource,
} from "./kinds.ts";
import { filesOf, middlewareFiles, type RunningEntry, type RunningPart } from "./local-files.ts";
import * as read from "./readers.ts";
import { createRedactor } from "./redaction.ts";

/**
 * The options of a live server, as a config names them: limits are not nested in `limits`, and `command` is called
 * `program`. A language may have further settings.
 */
export type LiveSettings = Partial<Limits> &
  Pick<LiveOptions, "maxSessions" | "idleMs" | "sandbox"> &
  Omit<LanguageOptions, "command"> & { readonly program?: string };

/** The settings of code mode: those of its sessions, and what their code may do. */
export type CodeSettings = LiveSettings & {
  /** The name of the language. */
  readonly language?: string;
} & Pick<CodeModeOptions, "include" | "confirm" | "maxCalls" | "maxParallel" | "maxResultBytes">;

/** Loads a language and creates its server. */
export async function createLiveServer(language: LanguageEntry, settings: LiveSettings): Promise<Handler> {
  const { createLiveServer: create } = await import("../live/server.ts");
  const options = optionsOf(settings);
  return create(await language.create(options), options);
}

/** Puts code mode in front of a gateway. */
export async function createCodeMode<G extends Handler>(gateway: G, settings: CodeSettings): Promise<CodeMode<G>> {
  const { createCodeMode: create } = await import("../live/code-mode.ts");
  const { language: _name, ...liveSettings } = settings;
  const options = optionsOf(liveSettings);
  const front = create(gateway, () => codeLanguage(settings).create(options), options);
  return isObservable(gateway) ? observableFront(front, gateway) : front;
}

type Observable = Pick<Gateway, "observe">;

function isObservable(gateway: object): gateway is Observable {
  return typeof (gateway as Partial<Observable>).observe === "function";
}

/** Readers see the calls of clients as they get to code mode, and the calls that code makes as they get to the gateway. */
function observableFront<G extends Handler>(front: G, gateway: Observable): G {
  const readers = new GatewayReaders(front);
  const observe = (reader: CallReader): (() => void) => {
    const stops = [readers.add(reader), gateway.observe(ofCode(reader))];
    return () => stops.forEach((stop) => stop());
  };
  const handler: Handler = (request, context) => (readers.handler ?? front)(request, context);
  const { length: _length, name: _name, ...properties } = Object.getOwnPropertyDescriptors(front);
  return Object.defineProperties(handler, { ...properties, observe: { value: observe } }) as G;
}

/** Reads the calls of code alone. */
function ofCode({ steps, ...methods }: CallReader): CallReader {
  const only = Object.entries(methods).map(([name, method]) => {
    const read = method as (this: unknown, ...args: unknown[]) => unknown;
    const isOfCode = (call: unknown): boolean => (call as ObservedCall).context.run !== undefined;
    return [name, (...args: unknown[]) => (isOfCode(args[0]) ? read.apply(methods, args) : undefined)] as const;
  });
  return { ...Object.fromEntries(only), steps };
}

/** What the sessions of code mode start. */
export function codeProgram(
  cursor: read.Cursor,
  settings: CodeSettings,
): Pick<UpstreamSource, "programs"> & { readonly secrets: readonly Secret[] } {
  const { secrets } = read.scanStrings(cursor);
  return { ...sessionProgram(cursor, codeLanguage(settings), settings, "language"), secrets };
}

/** Where a config asks for the sandbox of code mode: nowhere, if it runs without one. */
export function codeSandbox({ code: settings, codePlace = FIRST_LINE }: CodePart): readonly ConfigPlace[] {
  const off = '"code": {"sandbox": false} in the config';
  return settings === undefined || settings.sandbox === false ? [] : [{ ...codePlace, off }];
}

/** What a config says about code mode. `codePlace` is absent if the command line turned it on. */
interface CodePart {
  readonly code?: CodeSettings;
  readonly codePlace?: ConfigPlace;
}

const FIRST_LINE: ConfigPlace = { path: "code mode", position: { line: 1, column: 1 } };

/** Reports at each place why there can be no sandbox on this machine. */
export async function sandboxProblems(
  places: readonly ConfigPlace[],
  severity: Problem["severity"],
): Promise<Problem[]> {
  if (places.length === 0) return [];
  const { sandboxProblem } = await import("../live/sandbox.ts");
  const problems = places.map(async (place): Promise<Problem[]> => {
    const reason = await sandboxProblem(place.off);
    return reason === undefined ? [] : [problemAt(place, severity, reason)];
  });
  return (await Promise.all(problems)).flat();
}

/** A config, as far as the grants of its sandboxes concern it. */
interface GrantsPart extends CodePart, RunningPart {
  readonly upstreams: ReadonlyMap<string, RunningEntry & { readonly secrets: readonly Secret[] }>;
  readonly codeProgram?: { readonly secrets: readonly Secret[] };
}

/**
 * Reports paths of `read` and `write` that would let code out of its sandbox: those in a folder that this or another
 * sandbox may change, and folders that contain what the gateway starts or relies on.
 */
export async function grantProblems(config: GrantsPart): Promise<Problem[]> {
  const { path: file, upstreams, code: settings, codePlace, codeProgram: program } = config;
  const entries = [...upstreams.values()];
  const granting = [
    ...entries.map((entry) => ({ options: entry.settings["sandbox"], place: entry.sandbox, secrets: entry.secrets })),
    { options: settings?.sandbox, place: codePlace, secrets: program?.secrets ?? [] },
  ].filter(({ options, place }) => typeof options === "object" && place !== undefined);
  if (granting.length === 0) return [];
  const { grantProblem, placeOf, resolveGrants, trustedPaths, writableOf } = await import("../live/grants.ts");
  const sets = granting.map(({ options, ...rest }) => ({ grants: resolveGrants(options as SandboxOptions), ...rest }));
  const started = await Promise.all(entries.map((entry) => filesOf(entry, dirname(file))));
  const trusted = [
    ...trustedPaths(),
    { path: placeOf(file), what: "this config" },
    ...[...middlewareFiles(config), ...started.flat()].map((file) => ({
      path: placeOf(file),
      what: "which the gateway runs",
    })),
  ];
  const writable = sets.flatMap(({ grants }) => writableOf(grants));
  return sets.flatMap(({ grants, place, secrets }) => {
    const problem = grantProblem(grants, writable, trusted);
    return problem === undefined || place === undefined
      ? []
      : [problemAt(place, "error", problem, createRedactor(secrets))];
  });
}

function problemAt(
  { path: at, position }: ConfigPlace,
  severity: Problem["severity"],
  { message, hint }: SandboxProblem,
  hide: (text: string) => string = (text) => text,
): Problem {
  const what = `${message.charAt(0).toLowerCase()}${message.slice(1)}`;
  return { ...position, severity, message: `${at}: ${hide(what)}`, hint: hide(hint) };
}

/** The place of a key. */
export function placeOf({ path, keyPosition: position }: read.Cursor): ConfigPlace {
  return { path, position };
}

/** The language of code mode. */
export function codeLanguage({ language = "js" }: CodeSettings): LanguageEntry {
  return findLanguage(language) ?? js;
}

/** The options of a live server, as code names them. */
function optionsOf({ program: file, ...settings }: LiveSettings): LanguageOptions & LiveOptions {
  const isLimit = ([name]: readonly [string, unknown]): boolean => Object.hasOwn(LIMITS, name);
  const entries = Object.entries(settings);
  return {
    limits: Object.fromEntries(entries.filter(isLimit)),
    ...Object.fromEntries(entries.filter((entry) => !isLimit(entry))),
    ...defined({ command: file }),
  };
}

const SETTINGS = languageSettings();
const programs = LANGUAGES.map(({ name, program: { description } }) => `${name}: ${description}`).join(". ");

const languageName = read.oneOf(LANGUAGE_NAMES, suggestLanguage);

const SESSION_FIELDS = {
  ...read.readersOf(LIMITS),
  cwd,
  env,
  program: program.describe(`The program of a live session. ${programs}.`),
} as const satisfies read.Fields;

const LIVE_FIELDS = {
  live: languageName.describe(`A language to evaluate code in, in sessions with a process each: ${LANGUAGE_LIST}.`),
  ...SESSION_FIELDS,
  // upstreams.ts describes what every entry may have.
  ...read.readersOf({
    inheritEnv: GUEST.inheritEnv,
    maxSessions: LIVE.maxSessions,
    idleMs: LIVE.idleMs,
    sandbox: LIVE.sandbox,
  }),
} as const satisfies read.Fields;

/** The settings that only some languages have. Their values are checked by their readers, and not typed. */
const OWN_FIELDS: read.Fields = Object.fromEntries(
  [...SETTINGS].map(([name, { field }]) => [name, read.readerOf(field)]),
);

export const live: UpstreamKind = defineKind<typeof LIVE_FIELDS>(
  { ...OWN_FIELDS, ...LIVE_FIELDS },
  {
    key: "live",
    purpose: "a language to evaluate code in",
    plural: "live sessions",
    // "command" is not accepted here: another client that reads this file would start it as an MCP server.
    conflicts: { command: 'the program of a live session is set by "program"' },
    misplaced: {
      limits: `write the limits directly in the entry: ${Object.keys(LIMITS).join(", ")}`,
      name: "an entry has the name of its key under mcpServers",
    },
    read({ live: name, ...values }, cursor) {
      const language = name === undefined ? undefined : findLanguage(name);
      if (language === undefined) return undefined;
      const foreign = [...SETTINGS].filter(([key]) => !Object.hasOwn(language.settings, key));
      for (const [key, { titles }] of foreign) {
        cursor.get(key)?.warnAtKey("ignored", `only ${titles.join(" and ")} sessions have this option`);
      }
      const ignored = new Set(foreign.map(([key]) => key));
      const settings = {
        ...Object.fromEntries(Object.entries(values).filter(([key]) => !ignored.has(key))),
        cwd: values.cwd ?? cursor.context.folder,
        // Callers run code in the sessions, so by default they do not see the keys in the gateway's environment.
        inheritEnv: values.inheritEnv ?? false,
      };
      const problem = isPending(cursor, language) ? undefined : language.problem?.(settings);
      const wrong = problem && cursor.get(problem.setting);
      if (problem?.isFatal === true) return wrong?.errorAtKey(problem.message, problem.hint);
      return {
        settings: { live: name, ...settings },
        describe: () => `sessions of ${name}, in which callers can run code`,
        evaluate: `evaluate-${language.name}`,
        ...(problem && wrong && { warning: problemAt(placeOf(wrong), "warning", problem) }),
        ...defined({ sandbox: sandboxPlace(cursor.get("sandbox"), settings) }),
        ...sessionProgram(cursor, language, settings, "live"),
        resolve: async () => ({ target: await createLiveServer(language, settings) }),
      };
    },
  },
);

/** The program of the sessions. If the entry does not name it, it is reported at `key`, which names the language. */
function sessionProgram(
  cursor: read.Cursor,
  { program: { name, hint } }: LanguageEntry,
  { program: file = name, cwd: configuredCwd }: LiveSettings,
  key: string,
): Pick<UpstreamSource, "programs"> {
  if (file === undefined) return {};
  // Checked by its reader.
  const folder = configuredCwd as string | undefined;
  const { position } = cursor.get("program") ?? cursor.get(key) ?? cursor;
  return requiredProgram(cursor, "program", {
    command: { command: file, ...defined({ cwd: folder }) },
    position,
    hint,
  });
}

/** Where sessions get a sandbox; undefined if they run without one. */
function sandboxPlace(field: read.Cursor | undefined, settings: LiveSettings): ConfigPlace | undefined {
  const isWanted = settings.sandbox !== undefined && settings.sandbox !== false;
  return field !== undefined && isWanted ? placeOf(field) : undefined;
}

/** Whether a setting that the language may check depends on an input that has no answer yet. */
function isPending(cursor: read.Cursor, { settings }: LanguageEntry): boolean {
  return read.isPending(cursor, "program", ...Object.keys(settings));
}

const codeObject = read.objectOf(
  {
    ...OWN_FIELDS,
    ...SESSION_FIELDS,
    ...read.readersOf(CODE_SESSIONS),
    language: languageName.describe(`The language of the code: ${LANGUAGE_LIST}. Default: js.`),
    ...read.readersOf(CODE),
  },
  'true, false, or an object, such as {"language": "js"}',
);

/** The key `code` of a config. Undefined if it is false. */
export const code: read.Reader<CodeSettings> = read.reader<CodeSettings>(
  { anyOf: [read.flag.schema, codeObject.schema] },
  (cursor) => {
    if (cursor.kind === "boolean") return cursor.value === true ? codeDefaults(cursor.context.folder) : undefined;
    const values = codeObject(cursor);
    const language = codeLanguage(values ?? {});
    const problem = values && !isPending(cursor, language) ? language.codeProblem?.(values) : undefined;
    if (problem !== undefined) return cursor.get(problem.setting)?.errorAtKey(problem.message, problem.hint);
    return values && { ...codeDefaults(cursor.context.folder), ...values };
  },
);

/** Callers run code, so by default they do not see the keys in the gateway's environment. */
export function codeDefaults(folder: string): CodeSettings {
  return { cwd: folder, inheritEnv: false };
}
