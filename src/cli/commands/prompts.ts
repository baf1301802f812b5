// `catenary prompts TARGET [NAME]` lists prompts or shows one; `catenary prompt TARGET NAME key=value ...` gets the
// messages of one. A single message is printed without its role, so that it can be piped.

import { isObject } from "../../core/values.ts";
import type { ListPromptsResult, Prompt, PromptMessage } from "../../protocol/model/index.ts";
import { EXIT, UsageError, type Command } from "../command.ts";
import { checkDestination, printContent, SAVE_FLAGS, SAVE_HELP, Saver, type ContentOutput } from "../show/content.ts";
import { defineCommand } from "../show/problems.ts";
import {
  findMissingUpstreams,
  listStyle,
  missingUpstreamsMeta,
  noteMissingUpstreams,
  promptDetail,
  promptList,
} from "../show/lists.ts";
import { ARGUMENTS_HELP, notFound, promptArguments, readArguments, withKey } from "../target/arguments.ts";
import { unexpectedArguments } from "../target/flags.ts";
import { EXIT_HELP, parseTargetLine, TARGET_HELP } from "../target/target.ts";
import { withClient, type CommandContext } from "../target/with-client.ts";
import { paint, printJson, printTrusted } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";

const PROMPTS_USAGE = `Usage: catenary prompts TARGET [NAME] [OPTIONS]
       catenary prompts [NAME] [OPTIONS] -- COMMAND ARGS...
`;

const PROMPTS_HELP = `${PROMPTS_USAGE}
Lists the prompts of a server with their descriptions and arguments, as \`catenary prompt\` takes
them; arguments in brackets are optional. With NAME: shows that prompt. With --json:
{"prompts": [...]}, or the prompt.

${TARGET_HELP}
${EXIT_HELP}`;

async function listPrompts(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("prompts", args, {}, PROMPTS_USAGE);
  const [name, ...more] = line.words;
  if (more.length > 0) throw unexpectedArguments("prompts", more, PROMPTS_USAGE);
  const isJson = line.values.json === true;
  return withClient(line, async (context) => {
    const { client, callOptions, busy, note, done } = context;
    busy("Listing prompts");
    const listed = await client.listPrompts(callOptions);
    done();
    if (name !== undefined) {
      const prompt = findPrompt(listed, name, context);
      if (isJson) printJson(prompt);
      else printTrusted(promptDetail(prompt, listStyle()));
      return EXIT.ok;
    }
    const { prompts } = listed;
    const missing = findMissingUpstreams(listed);
    const valid = withKey<Prompt>(prompts, "name");
    if (isJson) printJson({ prompts, ...missingUpstreamsMeta(missing) });
    else if (valid.length > 0) printTrusted(promptList(valid, listStyle()));
    else note("The server has no prompts");
    noteMissingUpstreams(missing, note);
    return EXIT.ok;
  });
}

/** Throws a NotFoundError if there is no such prompt. First notes missing upstreams, since one of them may have it. */
function findPrompt(listed: ListPromptsResult, name: string, { note }: CommandContext): Prompt {
  const prompts = withKey<Prompt>(listed.prompts, "name");
  const prompt = prompts.find((one) => one.name === name);
  if (prompt !== undefined) return prompt;
  noteMissingUpstreams(findMissingUpstreams(listed), note);
  const names = prompts.map((one) => one.name);
  throw notFound("prompt", name, names);
}

export const promptsCommand: Command = defineCommand(PROMPTS_HELP, listPrompts);

const PROMPT_USAGE = `Usage: catenary prompt TARGET NAME [key=value ...] [OPTIONS]
       catenary prompt NAME [key=value ...] [OPTIONS] -- COMMAND ARGS...
`;

const PROMPT_HELP = `${PROMPT_USAGE}
Gets a prompt. All its arguments are strings. Its messages go to stdout, each under its role; a
single message is printed without it. With --json: the result.

${ARGUMENTS_HELP}
${SAVE_HELP}
${TARGET_HELP}
${EXIT_HELP}`;

async function getPrompt(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("prompt", args, { args: { type: "string", dash: true }, ...SAVE_FLAGS }, PROMPT_USAGE);
  const { values, words } = line;
  const [name, ...pairs] = words;
  if (name === undefined) throw new UsageError(`prompt needs the NAME of a prompt\n\n${PROMPT_USAGE}`);
  const saver = new Saver(await checkDestination(values));
  const given = await readArguments(pairs, values.args);
  return withClient(line, async (context) => {
    const { client, callOptions, busy, note, done } = context;
    busy("Listing prompts");
    const prompt = findPrompt(await client.listPrompts(callOptions), name, context);
    const promptArgs = promptArguments(prompt, given);
    busy(`Getting ${name}`);
    const result = await client.getPrompt(name, promptArgs, callOptions);
    done();
    if (values.json === true) printJson(result);
    else await printMessages(result.messages, { saver, note });
    return EXIT.ok;
  });
}

async function printMessages(messages: unknown, output: ContentOutput): Promise<void> {
  const valid = withKey<PromptMessage>(messages, "role").filter(({ content }) => isObject(content));
  for (const [at, { role, content }] of valid.entries()) {
    const heading = paint("bold", `${oneLine(role)}:`, process.stdout);
    if (valid.length > 1) printTrusted(`${at === 0 ? "" : "\n"}${heading}\n`);
    await printContent([content], output);
  }
}

export const promptCommand: Command = defineCommand(PROMPT_HELP, getPrompt);
