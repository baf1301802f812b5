// `catenary repl LANGUAGE` and `catenary repl TARGET --session NAME`: a prompt for people in a live session, either a new
// one of their own or one of a server that already runs, such as the session of an agent. Both go through MCP, so the
// prompt can do only what any client can do.

import { existsSync } from "node:fs";
import type { Client } from "../../client/client.ts";
import { nearest } from "../../core/options.ts";
import { isObject, defined, errorMessage } from "../../core/values.ts";
import { findLanguage, LANGUAGES } from "../../live/languages.ts";
import { WAITS } from "../../live/run.ts";
import type { LanguageEntry } from "../../live/tool.ts";
import { OWN_NAMES, UPSTREAM } from "../../protocol/lists.ts";
import { HINT, withoutHint } from "../../protocol/failed-evaluation.ts";
import type { CallToolResult, Tool } from "../../protocol/model/index.ts";
import { EXIT, NotFoundError, UsageError } from "../command.ts";
import { command, type Command, unexpectedArguments } from "../define.ts";
import { flag, parseFlags, refuseFlags } from "../flags.ts";
import { LANGUAGE_FLAGS, LANGUAGES_ABOUT, languageSettingsOf, parseLanguage, SANDBOX_FLAG } from "./eval.ts";
import { CONFIG, parseTargetLine, TARGET_ABOUT, TARGET_EXITS, TARGET_FLAGS, TARGET_NOTES } from "../target/target.ts";
import { type CommandContext, withClient } from "../target/with-client.ts";
import { BackgroundEcho } from "../terminal/background-echo.ts";
import { LineReader } from "../terminal/line-reader.ts";
import { isTerminal, paint, printStatus, sanitizeFor } from "../terminal/output.ts";

const REPL_FLAGS = {
  session: flag("NAME", "The session. Default `main`."),
  tool: flag("NAME", "The tool that evaluates, if the server has several, as a gateway with two languages does."),
  ...LANGUAGE_FLAGS,
  ...SANDBOX_FLAG,
};
const FLAGS = { ...REPL_FLAGS, ...TARGET_FLAGS };

export const replCommand: Command = command({
  name: "repl",
  usage: "LANGUAGE [--program PATH] [--sandbox] [OPTIONS]\nTARGET [--session NAME] [--tool NAME] [OPTIONS]",
  about: `A prompt in a live session. With a LANGUAGE, in a new session, which ends with the prompt. With a TARGET, in a
session of that server: what you define there, its other clients see, and what they have defined, you see. The languages
are:

${LANGUAGES_ABOUT}

Input goes on to the next line while a bracket, a string or a comment is open. Tab completes names, the arrow keys go
through earlier inputs, and Ctrl-R searches them. Ctrl-C interrupts what you run, or drops the input; it does not touch
what another client runs. Ctrl-D or :quit leaves. :help lists the commands of the prompt. If stdin is not a terminal, it is
evaluated without prompts.

${TARGET_ABOUT}`,
  flags: FLAGS,
  notes: TARGET_NOTES,
  exits: TARGET_EXITS,
  runArguments: repl,
});

const COMMANDS_HELP = `:help                 this list
:restarts             the restarts of the last error
:restart N [CODE]     take one of them, with a value
:frame N CODE         evaluate in a frame of the last error
:error                the last error again
:inspect HANDLE [N]   the parts of a value that was not printed whole, from part N on
:output NUMBER [N]    a long output or value, from character N on
:definitions          what the session has defined
:sessions             the sessions, and what each is doing
:session NAME         go to another session
:limits [NAME VALUE]  show or change the limits, such as :limits print-depth 10
:save [NAME]          save the session as a checkpoint
:restore [NAME]       replace the session with a checkpoint
:reset                end the session's process and begin with a new one
:quit                 leave`;

async function repl(args: readonly string[]): Promise<number> {
  const [first = ""] = args.filter((word) => !word.startsWith("-"));
  const language = args.includes("--") ? undefined : findLanguage(first);
  if (language !== undefined && first === args[0]) return inNewSession(language, args.slice(1));
  // Without a config, a word can hardly be the name of a server.
  const isWord = first === args[0] && !args.includes("--") && /^\w+$/.test(first);
  if (isWord && !existsSync(first) && !existsSync(CONFIG)) parseLanguage(first);
  const line = parseTargetLine("repl", args, REPL_FLAGS, replCommand.usage);
  const { session = "main", tool, json } = line.values;
  refuseFlags(line.values, Object.keys({ ...SANDBOX_FLAG, ...LANGUAGE_FLAGS }), "a LANGUAGE, not a target");
  if (json === true) throw new UsageError("repl has no --json; use catenary call");
  if (line.words.length > 0) throw unexpectedArguments("repl", line.words, replCommand.usage);
  return withClient(line, async (context) => {
    context.busy("Listing tools");
    const live = await findSession(context.client, session, tool);
    context.done();
    return converse(live, context);
  });
}

async function inNewSession(language: LanguageEntry, args: readonly string[]): Promise<number> {
  const { words, values } = parseFlags("repl", args, FLAGS);
  if (words.length > 0) throw unexpectedArguments("repl", words, replCommand.usage);
  const { session = "main", sandbox, ...others } = values;
  const ownFlags = ["quiet", "verbose", ...Object.keys(LANGUAGE_FLAGS)];
  const misplaced = Object.keys(others).filter((name) => !ownFlags.includes(name));
  refuseFlags(others, misplaced, "a TARGET, not a language");
  const { createLiveServer } = await import("../../config/live.ts");
  const handler = await createLiveServer(language, {
    ...languageSettingsOf(language, values),
    ...defined({ sandbox }),
  });
  return withClient({ target: { handler, name: language.title }, values }, async (context) =>
    converse(await findSession(context.client, session), context),
  );
}

/** A session of a live server, by the tools of that server. */
interface LiveSession {
  readonly client: Client;
  readonly language: LanguageEntry;
  /** What is shown before the first prompt, such as "Smalltalk (Amber)". */
  readonly title: string;
  /** The names of the server's tools as a gateway shows them, by their own names. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** The templates of the resources with completions and with background output, if the server has them. */
  readonly completions: string | undefined;
  readonly background: string | undefined;
  name: string;
}

async function findSession(client: Client, name: string, tool?: string): Promise<LiveSession> {
  const { tools } = await client.listTools();
  const evaluators = tools.flatMap((evaluator) => {
    const language = LANGUAGES.find((entry) => evaluator.name.endsWith(`evaluate-${entry.name}`));
    return language === undefined || (tool !== undefined && evaluator.name !== tool) ? [] : [{ evaluator, language }];
  });
  const [chosen] = evaluators;
  if (chosen === undefined) {
    if (tool !== undefined) throw new NotFoundError(`The server has no tool ${tool} that evaluates code`);
    if (tools.some((tool) => tool.name === "run-code")) {
      const instead = "`catenary call TARGET run-code code=CODE` runs code";
      throw new NotFoundError(`The server is in code mode, whose sessions have no prompt; ${instead}`);
    }
    throw new NotFoundError(`The server has no live sessions: none of its ${tools.length} tools evaluates code`);
  }
  if (evaluators.length > 1) {
    throw new UsageError(`Choose one with --tool: ${evaluators.map(({ evaluator }) => evaluator.name).join(", ")}`);
  }
  const { evaluator, language } = chosen;
  const prefix = evaluator.name.slice(0, -`evaluate-${language.name}`.length);
  const toolNames = new Map(
    tools.flatMap((other) => {
      if (other._meta?.[UPSTREAM] !== evaluator._meta?.[UPSTREAM]) return [];
      const names = other._meta?.[OWN_NAMES];
      const inner: unknown = Array.isArray(names) ? names[0] : other.name;
      return typeof inner === "string"
        ? [[inner.startsWith(prefix) ? inner.slice(prefix.length) : inner, other.name]]
        : [];
    }),
  );
  const { title: serverTitle } = client.server ?? {};
  const title = serverTitle?.startsWith(language.title) === true ? serverTitle : language.title;
  return { client, language, title, toolNames, name, ...(await findTemplates(client, evaluator)) };
}

/** Behind a gateway, several servers may have such templates. */
async function findTemplates(client: Client, tool: Tool): Promise<Pick<LiveSession, "completions" | "background">> {
  if (client.capabilities.completions === undefined) return { completions: undefined, background: undefined };
  const { resourceTemplates } = await client.listResourceTemplates().catch(() => ({ resourceTemplates: [] }));
  const templates = resourceTemplates
    .filter(({ _meta }) => _meta?.[UPSTREAM] === tool._meta?.[UPSTREAM])
    .map(({ uriTemplate }) => uriTemplate);
  const find = (end: string): string | undefined => templates.find((template) => template.endsWith(end));
  return { completions: find("/completions/{code}"), background: find("/{name}/background") };
}

async function converse(session: LiveSession, context: CommandContext): Promise<number> {
  const background = new BackgroundEcho(session.client, session.background, (text) => reader.printAbove(text));
  const repl = new Repl(session, context, background);
  const reader = new LineReader({
    historyName: session.language.name,
    needsMore: (code) => !code.startsWith(":") && session.language.needsMore(code),
    complete: (code) => complete(session, code),
    onInterrupt: () => repl.interrupt(),
    signal: context.callOptions.signal,
  });
  if (reader.isInteractive) {
    printStatus(`${session.title}, session ${session.name}. :help lists the commands, Ctrl-D leaves.`);
  }
  try {
    if (reader.isInteractive) await background.follow(session.name);
    for (;;) {
      const code = await reader.read(repl.prompt);
      if (code === undefined || code.trim() === ":quit")
        return repl.hasFailed && !reader.isInteractive ? EXIT.toolFailed : EXIT.ok;
      if (code.trim() !== "") await repl.run(code);
    }
  } finally {
    reader.close();
    await background.close();
  }
}

/** What can stand at the end of the code. */
async function complete({ client, completions, name }: LiveSession, code: string): Promise<readonly string[]> {
  if (completions === undefined) return [];
  const ref = { type: "ref/resource", uri: completions } as const;
  const { completion } = await client.complete(ref, { name: "code", value: code }, { arguments: { name } });
  return completion.values;
}

interface Running {
  readonly abort: AbortController;
  isInterrupted: boolean;
  /** Whether it had to wait for another evaluation of the session. */
  isWaiting: boolean;
}

class Repl {
  /** Whether something has failed. */
  hasFailed = false;
  readonly #session: LiveSession;
  readonly #context: CommandContext;
  readonly #background: BackgroundEcho;
  #package: string | undefined;
  #running: Running | undefined;

  constructor(session: LiveSession, context: CommandContext, background: BackgroundEcho) {
    this.#session = session;
    this.#context = context;
    this.#background = background;
  }

  get prompt(): string {
    return `${this.#package ?? this.#session.language.name}> `;
  }

  /** Runs code, or a command of the prompt. An unknown command is code, since `:name` is a keyword in some languages. */
  async run(input: string): Promise<void> {
    const [, word = "", rest = ""] = /^:([a-z]+)(?:\s+([^]*))?$/.exec(input.trimEnd()) ?? [];
    try {
      const done = word !== "" && (await this.#command(word, rest.trim()));
      if (!done) await this.#evaluate("evaluate", { code: input });
    } catch (error) {
      if (this.#context.callOptions.signal?.aborted === true) throw error;
      this.hasFailed = true;
      printStatus(paint("red", sanitizeFor(process.stderr, errorMessage(error))));
    }
  }

  /** Ctrl-C while something runs. The first stops it and keeps the session; the second gives up on the answer. */
  interrupt(): boolean {
    const running = this.#running;
    if (running === undefined) return false;
    // The session may still be at the work of another client, which is not to be interrupted.
    if (running.isInterrupted || running.isWaiting) running.abort.abort(new Error("Interrupted"));
    if (running.isWaiting) return true;
    running.isInterrupted = true;
    this.#call("interrupt-session", {}).catch(() => running.abort.abort(new Error("Interrupted")));
    return true;
  }

  /** The commands of the prompt, which get their first word and what follows it. */
  readonly #commands: Readonly<Record<string, (first: string, more: string) => void | Promise<void>>> = {
    help: () => printStatus(COMMANDS_HELP),
    restarts: () => this.#show("list-restarts"),
    restart: (name, value) =>
      name === ""
        ? this.#show("list-restarts")
        : this.#evaluate("take-restart", { restart: name, ...(value !== "" && { value }) }),
    frame: (number, code) => {
      if (!/^\d+$/.test(number) || code === "")
        throw new UsageError("Write the number of a frame and code, such as :frame 0 x");
      return this.#evaluate("evaluate-in-frame", { frame: Number(number), code });
    },
    error: () => this.#show(this.#session.toolNames.has("last-error") ? "last-error" : "describe-last-error"),
    inspect: (handle, start) => this.#inspect("handle", "a handle, such as :inspect 4", handle, start),
    output: (number, start) => this.#inspect("output", "the number of a long output, such as :output 4", number, start),
    definitions: () => this.#show("list-definitions"),
    sessions: () => this.#show("list-sessions"),
    session: async (name) => {
      if (name !== "") {
        this.#session.name = name;
        await this.#background.follow(name);
      }
      this.#package = undefined;
      printStatus(`Session ${this.#session.name}`);
    },
    limits: (name, value) => this.#show("configure-limits", name === "" ? {} : { [name]: Number(value) }),
    save: (name) => this.#show("save-session", name === "" ? {} : { checkpoint: name }),
    restore: (name) => this.#begin("restore-session", name === "" ? {} : { checkpoint: name }),
    reset: () => this.#begin("reset-session"),
  };

  /** Whether there is such a command. */
  async #command(word: string, rest: string): Promise<boolean> {
    const run = Object.hasOwn(this.#commands, word) ? this.#commands[word] : undefined;
    const [first = ""] = rest.split(/\s+/);
    await run?.(first, rest.slice(first.length).trim());
    if (run !== undefined) return true;
    const [near] = nearest(word, [...Object.keys(this.#commands), "quit"], 1);
    if (near === undefined) return false;
    throw new UsageError(`There is no command :${word}; did you mean :${near}? As code, write a space before it`);
  }

  async #evaluate(name: string, args: { readonly [name: string]: unknown }): Promise<void> {
    const running: Running = { abort: new AbortController(), isInterrupted: false, isWaiting: false };
    this.#running = running;
    const output = new OutputEcho();
    const { signal } = this.#context.callOptions;
    try {
      const tool = name === "evaluate" ? `evaluate-${this.#session.language.name}` : name;
      const result = await this.#call(
        tool,
        { ...args, timeout: 0 },
        {
          signal: signal === undefined ? running.abort.signal : AbortSignal.any([signal, running.abort.signal]),
          timeoutMs: 0,
          onProgress: ({ progress, message, _meta }) => {
            const waits = _meta?.[WAITS];
            output.write(progress, waits === undefined ? message : undefined);
            if (waits !== true) return;
            running.isWaiting = true;
            printStatus(paint("dim", "Waiting for another evaluation in this session; Ctrl-C gives up"));
          },
        },
      );
      // Hints name tools, for which the prompt has commands.
      const hint = result.content[0]?._meta?.[HINT];
      const text = typeof hint === "string" ? withoutHint(textOf(result), hint) : textOf(result);
      output.finish(this.#background.withoutShown(text));
      this.#note(result);
    } finally {
      this.#running = undefined;
    }
  }

  #note({ isError, structuredContent }: CallToolResult): void {
    if (isError === true) this.hasFailed = true;
    if (!isObject(structuredContent)) return;
    const { package: current, condition } = structuredContent;
    if (typeof current === "string") this.#package = current;
    const isOpen = isObject(condition) && condition["open"] === true;
    if (isOpen && isTerminal(process.stdin)) {
      printStatus(
        paint("dim", ":restart N takes a restart, :frame N CODE evaluates in a frame, :inspect HANDLE shows a value"),
      );
    }
  }

  async #inspect(what: "handle" | "output", expected: string, number: string, start: string): Promise<void> {
    if (!/^\d+$/.test(number)) throw new UsageError(`Write ${expected}`);
    await this.#show("inspect", { [what]: Number(number), ...(start !== "" && { start: Number.parseInt(start) }) });
  }

  /** Puts another state in the place of the session's. */
  #begin(tool: string, args?: { readonly [name: string]: unknown }): Promise<void> {
    this.#package = undefined;
    return this.#show(tool, args);
  }

  async #show(tool: string, args: { readonly [name: string]: unknown } = {}): Promise<void> {
    const result = await this.#call(tool, args);
    process.stdout.write(`${painted(textOf(result))}\n`);
  }

  #call(
    tool: string,
    args: { readonly [name: string]: unknown },
    options: Parameters<Client["callTool"]>[2] = this.#context.callOptions,
  ): Promise<CallToolResult> {
    const { client, toolNames, name } = this.#session;
    return client.callTool(toolNames.get(tool) ?? tool, { ...args, session: name }, options);
  }
}

function textOf({ content }: CallToolResult): string {
  return content.map((item) => (item.type === "text" ? item.text : `[${item.type}]`)).join("\n");
}

/** Prints output while an evaluation runs, and then the rest of the result. */
class OutputEcho {
  #printed = "";
  #total = 0;

  /** Progress has the output since the last report, and how many characters and other reports there were in all. */
  write(total: number, text: string | undefined): void {
    if (text === undefined && total === this.#total + 1) this.#total = total;
    // A shorter text has lost some output.
    if (text === undefined || total - this.#total !== text.length) return;
    this.#total = total;
    this.#printed += text;
    process.stdout.write(sanitizeFor(process.stdout, text));
  }

  finish(text: string): void {
    const isContinued = text.startsWith(this.#printed);
    const rest = isContinued ? text.slice(this.#printed.length) : text;
    if (!isContinued && !this.#printed.endsWith("\n")) process.stdout.write("\n");
    process.stdout.write(`${painted(rest)}\n`);
  }
}

const LITERALS = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\b\d[\d_.]*\b|\b(?:true|false|null|undefined|nil|NIL|T)\b/g;

/** Colours the values, errors and notices of a result. */
function painted(text: string): string {
  const style = (name: Parameters<typeof paint>[0], part: string): string => paint(name, part, process.stdout);
  const literals = (line: string): string =>
    line.replace(LITERALS, (part) => style(/^["']/.test(part) ? "green" : "yellow", part));
  let isValue = false;
  return sanitizeFor(process.stdout, text)
    .split("\n")
    .map((line) => {
      if (line.startsWith("=> ")) {
        isValue = true;
        return `${style("dim", "=>")} ${literals(line.slice(3))}`;
      }
      // A value goes on until a note or another part of the result.
      isValue &&= !/^(?:; |\[[A-Z][A-Za-z]+\])/.test(line);
      if (isValue) return literals(line);
      if (/^\[(?:ERROR|TIMEOUT|INTERRUPTED|LOST)\]/.test(line)) return style("red", line);
      if (/^\[(?:Warning|Notice|stderr|background)\]/.test(line)) return style("yellow", line);
      return /^(?:\[(?:Backtrace|Restarts)\]|\d+: | {5}\S)/.test(line) ? style("dim", line) : line;
    })
    .join("\n");
}
