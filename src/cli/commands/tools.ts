// `catenary tools TARGET [NAME]` lists tools or shows one; `catenary call TARGET TOOL key=value ...` calls one. A call
// lists the tools first, because the tool's schema gives the types of the arguments.

import type { ListToolsResult, Tool } from "../../protocol/model/index.ts";
import { EXIT, NotFoundError, UsageError, type Command } from "../command.ts";
import { checkDestination, printResult, SAVE_FLAGS, SAVE_HELP, Saver } from "../show/content.ts";
import { defineCommand } from "../show/problems.ts";
import {
  findMissingUpstreams,
  listStyle,
  missingUpstreamsMeta,
  noteMissingUpstreams,
  toolDetail,
  toolList,
} from "../show/lists.ts";
import { ARGUMENTS_HELP, notFound, readArguments, toolArguments, withKey } from "../target/arguments.ts";
import { unexpectedArguments } from "../target/flags.ts";
import { EXIT_HELP, parseTargetLine, TARGET_HELP } from "../target/target.ts";
import { withClient, type CommandContext } from "../target/with-client.ts";
import { printJson, printTrusted } from "../terminal/output.ts";

const TOOLS_USAGE = `Usage: catenary tools TARGET [NAME] [OPTIONS]
       catenary tools [NAME] [OPTIONS] -- COMMAND ARGS...
`;

const TOOLS_HELP = `${TOOLS_USAGE}
Lists the tools of a server with their descriptions and arguments, as \`catenary call\` takes them;
arguments in brackets are optional. With NAME: shows that tool and its schemas. With --json:
{"tools": [...]}, or the tool.

${TARGET_HELP}
${EXIT_HELP}`;

async function listTools(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("tools", args, {}, TOOLS_USAGE);
  const [name, ...more] = line.words;
  if (more.length > 0) throw unexpectedArguments("tools", more, TOOLS_USAGE);
  const isJson = line.values.json === true;
  return withClient(line, async (context) => {
    const { client, callOptions, busy, note, done } = context;
    busy("Listing tools");
    const listed = await client.listTools(callOptions);
    done();
    if (name !== undefined) {
      const tool = findTool(listed, name, context);
      if (isJson) printJson(tool);
      else printTrusted(toolDetail(tool, listStyle()));
      return EXIT.ok;
    }
    const { tools } = listed;
    const missing = findMissingUpstreams(listed);
    const valid = withKey<Tool>(tools, "name");
    if (isJson) printJson({ tools, ...missingUpstreamsMeta(missing) });
    else if (valid.length > 0) printTrusted(toolList(valid, listStyle()));
    else note("The server has no tools");
    noteMissingUpstreams(missing, note);
    return EXIT.ok;
  });
}

/** Throws a NotFoundError if there is no such tool. First notes missing upstreams, since one of them may have it. */
function findTool(listed: ListToolsResult, name: string, { note }: CommandContext): Tool {
  const tools = withKey<Tool>(listed.tools, "name");
  const tool = tools.find((one) => one.name === name);
  if (tool !== undefined) return tool;
  noteMissingUpstreams(findMissingUpstreams(listed), note);
  const names = tools.map((one) => one.name);
  throw notFound("tool", name, names);
}

export const toolsCommand: Command = defineCommand(TOOLS_HELP, listTools);

const CALL_USAGE = `Usage: catenary call TARGET TOOL [key=value ...] [OPTIONS]
       catenary call TOOL [key=value ...] [OPTIONS] -- COMMAND ARGS...
`;

const CALL_HELP = `${CALL_USAGE}
Calls a tool. Its text goes to stdout, or its structured content as JSON if it returns no text;
progress and everything else goes to stderr. If the tool asks a question during the call, you can
answer it in the terminal (stdin and stderr). With --json: the whole result. If the tool reports
an error, its content is printed too, and the exit code is 5.

${ARGUMENTS_HELP}
${SAVE_HELP}
${TARGET_HELP}
${EXIT_HELP}`;

async function callTool(args: readonly string[]): Promise<number> {
  const line = parseTargetLine("call", args, { args: { type: "string", dash: true }, ...SAVE_FLAGS }, CALL_USAGE);
  const { values, words } = line;
  const [name, ...pairs] = words;
  if (name === undefined) throw new UsageError(`call needs the name of a TOOL\n\n${CALL_USAGE}`);
  const saver = new Saver(await checkDestination(values));
  const given = await readArguments(pairs, values.args);
  return withClient(line, async (context) => {
    const { client, callOptions, busy, note, done } = context;
    busy("Listing tools");
    const tool = findTool(await client.listTools(callOptions), name, context);
    const { args: toolArgs, unknown } = toolArguments(tool, given);
    if (unknown.length > 0) note(`${name} does not declare ${unknown.join(", ")}; sent anyway`);
    busy(`Calling ${name}`);
    const result = await client.callTool(name, toolArgs, callOptions);
    done();
    if (values.json === true) printJson(result);
    else await printResult(result, { saver, note });
    if (result.isError === true) {
      note(`${name} reported an error`);
      return EXIT.toolFailed;
    }
    if (values.output !== undefined && saver.count === 0) {
      throw new NotFoundError(`Nothing to write to ${values.output}: the result contains only text`);
    }
    return EXIT.ok;
  });
}

export const callCommand: Command = defineCommand(CALL_HELP, callTool);
