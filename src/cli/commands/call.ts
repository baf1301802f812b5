// `catenary call TARGET TOOL key=value ...`, `catenary prompt TARGET NAME key=value ...` and `catenary read TARGET URI`: call
// one tool, get one prompt or read one resource, and print what it returns. The tools are listed before a call, because
// the tool's schema gives the types of the arguments. A single message, and a resource with one part, can be piped.

import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import type {
  GetPromptResult,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
} from "../../protocol/model/index.ts";
import { EXIT, NotFoundError, withKey } from "../command.ts";
import type { Command } from "../define.ts";
import { flag, section } from "../flags.ts";
import { type ContentOutput, decodePart, printContent, printResource, printResult } from "../show/content.ts";
import { checkDestination, SAVE_FLAGS, Saver } from "../show/saver.ts";
import {
  type Argument,
  ARGUMENTS_ABOUT,
  PROMPT_ARGUMENTS_ABOUT,
  promptArguments,
  readArguments,
  toolArguments,
} from "../target/arguments.ts";
import { targetCommand, type TargetLine } from "../target/target.ts";
import { type CommandContext, withClient } from "../target/with-client.ts";
import { isTerminal, paint, printJson, printRaw, printTrusted } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { findNamed, type NamedKind, PROMPTS, TOOLS } from "./list.ts";

const FLAGS = {
  args: flag(
    "JSON",
    "All arguments as one JSON object. `--args -` reads it from stdin. A `key=value` overrides a key in it.",
    { dash: true },
  ),
  ...SAVE_FLAGS,
};

export const callCommand: Command = targetCommand({
  name: "call",
  usage: "TOOL [key=value ...]",
  about: `Calls a tool. Its text goes to stdout, or its structured content as JSON if it returns no text; progress and
everything else goes to stderr. If the tool asks a question during the call, you can answer it in the terminal (stdin and
stderr). With --json: the whole result. If the tool reports an error, its content is printed too, and the exit code is 5.

${ARGUMENTS_ABOUT}`,
  flags: FLAGS,
  words: Infinity,
  needs: "the name of a TOOL",
  run: callTool,
});

async function callTool(line: TargetLine<typeof FLAGS>): Promise<number> {
  return useNamed(line, TOOLS, printResult, (tool, pairs, { client, callOptions, busy, note }, name) => {
    const { args, unknown } = toolArguments(tool, pairs);
    if (unknown.length > 0) note(`${name} does not declare ${unknown.join(", ")}; sent anyway`);
    busy(`Calling ${name}`);
    return client.callTool(tool.name, args, callOptions);
  });
}

/** Finds the tool or prompt that the line names, sends the arguments to it, and prints the result. */
async function useNamed<Item extends { readonly name: string }, Answer extends object>(
  line: TargetLine<typeof FLAGS>,
  kind: NamedKind<Item>,
  print: (answer: Answer, output: ContentOutput) => Promise<void>,
  send: (item: Item, callArguments: readonly Argument[], context: CommandContext, name: string) => Promise<Answer>,
): Promise<number> {
  const { values, words } = line;
  const [name = "", ...pairs] = words;
  const saver = new Saver(await checkDestination(values));
  const callArguments = await readArguments(pairs, values.args);
  return withClient(line, async (context) => {
    const { note, done } = context;
    const answer = await send(await findNamed(kind, name, context), callArguments, context, name);
    done();
    if (values.json === true) printJson(answer);
    else await print(answer, { saver, note });
    if ("isError" in answer && answer.isError === true) {
      note(`${name} reported an error`);
      return EXIT.toolFailed;
    }
    if (values.output !== undefined && saver.count === 0) {
      throw new NotFoundError(`Nothing to write to ${values.output}: the result contains only text`);
    }
    return EXIT.ok;
  });
}

export const promptCommand: Command = targetCommand({
  name: "prompt",
  usage: "NAME [key=value ...]",
  about: `Gets a prompt. Its messages go to stdout, each under its role; a single message is printed without it. With --json:
the result.

${PROMPT_ARGUMENTS_ABOUT}`,
  flags: FLAGS,
  words: Infinity,
  needs: "the NAME of a prompt",
  run: getPrompt,
});

async function getPrompt(line: TargetLine<typeof FLAGS>): Promise<number> {
  return useNamed(line, PROMPTS, printMessages, (prompt, pairs, { client, callOptions, busy }, name) => {
    const args = promptArguments(prompt, pairs);
    busy(`Getting ${name}`);
    return client.getPrompt(prompt.name, args, callOptions);
  });
}

async function printMessages({ messages }: GetPromptResult, output: ContentOutput): Promise<void> {
  const valid = withKey<PromptMessage>(messages, "role").filter(({ content }) => isObject(content));
  for (const [at, { role, content }] of valid.entries()) {
    const heading = paint("bold", `${oneLine(role)}:`, process.stdout);
    if (valid.length > 1) printTrusted(`${at === 0 ? "" : "\n"}${heading}\n`);
    await printContent([content], output);
  }
}

const READ_FLAGS = section("Files", {
  output: { ...SAVE_FLAGS.output, description: "Writes the resource to this file." },
  save: { ...SAVE_FLAGS.save, description: "Writes each part to a file of its own in this folder." },
  force: SAVE_FLAGS.force,
});

export const readCommand: Command = targetCommand({
  name: "read",
  usage: "URI",
  about: `Reads a resource and prints its text on stdout, or its bytes if stdout is not a terminal. If it has several parts,
text goes to stdout; use --save or --output for the others. With --json: the result.`,
  flags: READ_FLAGS,
  words: 1,
  needs: "a URI",
  run: readResource,
});

async function readResource(line: TargetLine<typeof READ_FLAGS>): Promise<number> {
  const { values, words } = line;
  const [uri = ""] = words;
  const saver = new Saver(await checkDestination(values));
  return withClient(line, async ({ client, callOptions, busy, note, done }) => {
    if (client.capabilities["resources"] === undefined) throw new NotFoundError("The server has no resources");
    busy(`Reading ${uri}`);
    const result = await client.readResource(uri, callOptions).catch((error: unknown) => {
      throw asNotFound(uri, error);
    });
    done();
    if (values.json === true) printJson(result);
    else await printParts(uri, result, { saver, note });
    return EXIT.ok;
  });
}

/** The URI is the only param of resources/read, so invalid params mean that there is no such resource. */
function asNotFound(uri: string, error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
  return new NotFoundError(`There is no resource ${uri}: ${error.message}`, { cause: error });
}

async function printParts(uri: string, { contents }: ReadResourceResult, output: ContentOutput): Promise<void> {
  const parts = withKey<ResourceContents>(contents, "uri");
  const { saver, note } = output;
  const [only] = parts;
  if (only === undefined) throw new NotFoundError(`${uri} exists, but is empty`);
  // Without this check, an empty file would be written.
  if (parts.every((part) => decodePart(part) === undefined)) {
    throw new ConnectionError("protocol", `The content of ${uri} is neither text nor base64`);
  }
  if (saver.isEnabled) {
    for (const part of parts) {
      const bytes = decodePart(part);
      if (bytes === undefined) note(`${part.uri}: skipped, its data is not base64`);
      else note(`${part.uri}: written to ${await saver.save(bytes, part.uri, part.mimeType)}`);
    }
  } else if (parts.length > 1) for (const part of parts) await printResource(part, output);
  else if ("text" in only && typeof only.text === "string") printRaw(only.text);
  else if (isTerminal(process.stdout)) await printResource(only, output);
  else printTrusted(decodePart(only) ?? Buffer.alloc(0));
}
