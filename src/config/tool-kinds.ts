// The kinds of entries under `mcpServers` that make tools out of something that is not an MCP server: command-line
// programs, and HTTP APIs that an OpenAPI document describes. The folders that do the work are loaded when such an entry is used.

import { basename } from "node:path";
import { OPENAPI, type OpenApiOptions } from "../openapi/options.ts";
import { PROGRAMS, type ProgramsOptions } from "../programs/options.ts";
import { cwd, defineKind, env, headers, isHttpUrl, type UpstreamKind } from "./kinds.ts";
import * as read from "./readers.ts";
import { resolvePath } from "./variables.ts";

const EXAMPLE = '["git", "docker"]';

/** A program by name or path, as in "command", but without arguments. */
const programName: read.Reader<string> = read.reader(read.nonEmptyString.schema, (cursor) => {
  const program = read.nonEmptyString(cursor);
  if (program === undefined) return undefined;
  if (program.includes("\0")) return cursor.error("not a valid program", `write names, such as ${EXAMPLE}`);
  if (/[/\\]/.test(program)) return resolvePath(cursor.context.folder, program);
  if (!/\s/.test(program)) return program;
  return cursor.error("has arguments", "write the program alone; callers give the arguments, and include limits them");
});

/** Warns of patterns that begin with the name of no program. A name with a space is quoted, so it is not looked at. */
function warnOfUnmatched(entry: read.Cursor, names: readonly string[]): void {
  for (const pattern of ["include", "exclude"].flatMap((option) => entry.get(option)?.items() ?? [])) {
    const expanded = pattern.kind === "string" ? pattern.expand() : undefined;
    if (expanded === undefined || expanded.isPending) continue;
    const { text } = expanded;
    const [first = ""] = /^[^ *]*/.exec(text) ?? [];
    const isName = (name: string): boolean => (text[first.length] === "*" ? name.startsWith(first) : name === first);
    if (first.startsWith('"') || names.some(isName)) continue;
    const hint = read.suggest(first, names) ?? `begin it with the name of a program: ${names.join(", ")}`;
    pattern.warn("matches no command line of these programs", hint);
  }
}

const programNames = read.arrayOf(programName, `an array of programs, such as ${EXAMPLE}`);

const exitCode = read.numberIn({ type: "integer", minimum: 0, maximum: 255 }, "an exit code from 0 to 255");

const { programs: _names, name: _name, ...PROGRAM_FIELDS } = PROGRAMS;
const { document: _document, name: _title, ...API_FIELDS } = OPENAPI;

export const programs: UpstreamKind = defineKind(
  {
    ...read.readersOf(PROGRAM_FIELDS),
    programs: read
      .reader({ ...programNames.schema, minItems: 1 }, (cursor) => {
        const names = programNames(cursor);
        if (names?.length !== 0 || cursor.items().length > 0) return names;
        return cursor.error("must not be empty", 'name at least one program, such as ["git"]');
      })
      .describe(
        "Command-line programs to offer as tools, one each: names on the PATH, or paths relative to this file. Their options are read from --help.",
      ),
    okExitCodes: read
      .recordOf(
        read.arrayOf(exitCode, "an array of exit codes, such as [1]"),
        'an object of arrays, such as {"grep": [1]}',
      )
      .describe(PROGRAMS.okExitCodes.description),
    cwd,
    env,
  },
  {
    key: "programs",
    purpose: "command-line programs as tools",
    plural: "programs",
    conflicts: { command: 'an MCP server is started by "command"; other programs are listed in "programs"' },
    misplaced: { args: "callers give the arguments; to limit them, write patterns in include and exclude" },
    read({ programs: files, ...values }, cursor) {
      if (files === undefined) return undefined;
      const names = files.map((file) => basename(file));
      const byProgram = ["descriptions", "okExitCodes"].flatMap((option) => cursor.get(option)?.members() ?? []);
      for (const member of byProgram) {
        if (names.includes(member.name)) continue;
        const hint = read.suggest(member.name, names) ?? `they are ${names.join(", ")}`;
        member.errorAtKey("not one of the programs", hint);
      }
      const folder = values.cwd ?? cursor.context.folder;
      const options: ProgramsOptions = { ...values, programs: files, cwd: folder };
      const key = cursor.get("programs");
      const isPending = read.isPending(cursor, "programs", "cwd");
      if (!isPending) warnOfUnmatched(cursor, names);
      const required = files.map((file, at) => ({
        command: { command: file, cwd: folder, ...(values.env && { env: values.env }) },
        position: (key?.items()[at] ?? cursor).position,
        hint: "install it, or write its full path; its tool is left out until then",
        isOptional: true as const,
      }));
      return {
        settings: { ...options },
        describe: () => `${files.join(", ")}, which callers can run`,
        ...(!isPending && { programs: required }),
        resolve: async () => ({ target: (await import("../programs/index.ts")).programs(options) }),
      };
    },
  },
);

const documentFile = read.pathTo("file", "error");

/** The path of a file, or a URL. */
const documentSource: read.Reader<string> = read.reader(read.nonEmptyString.schema, (cursor) => {
  const isUrl = cursor.kind === "string" && isAddress(cursor.expand()?.text ?? "");
  return isUrl ? read.nonEmptyString(cursor) : documentFile(cursor);
});

const isAddress = (document: string): boolean => /^https?:\/\//i.test(document);

const secrets = read.recordOf(read.nonEmptyString, 'an object of strings, such as {"apiKey": "${API_KEY}"}');

export const openapi: UpstreamKind = defineKind(
  {
    ...read.readersOf(API_FIELDS),
    openapi: documentSource.describe(
      "An OpenAPI document (3.0 or 3.1, JSON or YAML) whose operations become tools: a path relative to this file, or a URL.",
    ),
    baseUrl: read
      .stringThat(
        (text) => isHttpUrl(text) && new URL(text).search === "" && new URL(text).hash === "",
        "not a valid base URL",
        "write one that begins with https:// or http://, without a user name, password or query",
        "^https?://|\\$\\{",
      )
      .describe(OPENAPI.baseUrl.description),
    headers,
    // An entry with a URL has another object here; upstreams.ts tells editors which is which.
    auth: secrets.describe(OPENAPI.auth.description),
  },
  {
    key: "openapi",
    purpose: "an OpenAPI document whose operations become tools",
    plural: "APIs",
    conflicts: { url: 'the address of the API is set by "baseUrl"' },
    read({ openapi: document, ...values }) {
      if (document === undefined) return undefined;
      const options: OpenApiOptions = { ...values, document };
      const { baseUrl = document } = values;
      return {
        settings: { openapi: document, ...values },
        describe: () => `requests to the API at ${URL.canParse(baseUrl) ? new URL(baseUrl).origin : baseUrl}`,
        files: isAddress(document) ? [] : [document],
        resolve: async () => ({ target: (await import("../openapi/index.ts")).openapi(options) }),
      };
    },
  },
);
