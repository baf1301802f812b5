// `catenary resources TARGET`: what can be read at an end, and the templates of what else there may be.

import { McpError } from "../../protocol/errors.ts";
import type { ListResourceTemplatesResult, Resource, ResourceTemplate } from "../../protocol/model/index.ts";
import { errand } from "../target/errand.ts";
import { EXIT } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { resourceList } from "../show/lists.ts";
import type { Command } from "../main.ts";
import { sound, surplus } from "../target/names.ts";
import { metaOf, missingUpstreams, remarkOn } from "../serve/missing-ends.ts";
import { listStyle } from "../terminal/output.ts";
import { printJson, printOwn } from "../terminal/print.ts";
import { EXIT_HELP, readLine, TARGET_HELP } from "../target/target.ts";

const METHOD_NOT_FOUND = -32601;

const USAGE = `Usage: catenary resources TARGET [OPTIONS]
       catenary resources [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Lists what can be read at a server: addresses, and templates of addresses, each with what is said
of it. \`catenary read\` reads one. With --json: {"resources": [...], "resourceTemplates": [...]}.

${TARGET_HELP}
${EXIT_HELP}`;

async function run(args: readonly string[]): Promise<number> {
  const wanted = readLine("resources", args, {}, USAGE);
  if (wanted.words.length > 0) throw surplus("resources", wanted.words, USAGE);
  return errand(wanted, async ({ client, call, busy, note, done }) => {
    busy("Listing resources");
    const listed = await client.listResources(call);
    const patterns = await client.listResourceTemplates(call).catch(noTemplates);
    done();
    const { resources } = listed;
    const { resourceTemplates } = patterns;
    const missing = missingUpstreams(listed, patterns);
    const found = sound<Resource>(resources, "uri");
    const templates = sound<ResourceTemplate>(resourceTemplates, "uriTemplate");
    if (wanted.values.json === true) printJson({ resources, resourceTemplates, ...metaOf(missing) });
    else if (found.length + templates.length === 0) note("The server has no resources");
    else printOwn(resourceList(found, templates, listStyle()));
    remarkOn(missing, note);
    return EXIT.ok;
  });
}

/** Ends that have resources need not know templates. */
function noTemplates(error: unknown): Pick<ListResourceTemplatesResult, "resourceTemplates" | "_meta"> {
  if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return { resourceTemplates: [] };
  throw error;
}

export const resourcesCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
