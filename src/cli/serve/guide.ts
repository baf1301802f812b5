// The built-in server that helps a newcomer: which MCP servers the clients on this machine have, how to add them to the
// gateway, and how to connect a client. Its tools only read, and show no secrets: of a command only the program and
// the package or script that it runs, of a URL only the host.

import { basename } from "node:path";
import { describeCommand } from "../../chain/upstream/upstream.ts";
import { CLIENTS } from "../../config/clients.ts";
import { isHttpUrl } from "../../config/kinds.ts";
import { UserError } from "../../core/errors.ts";
import { createServer, type Server } from "../../server/index.ts";
import { type ClientSource, findClientServers, type ServerEntry } from "../setup/client-servers.ts";
import { shortPath } from "../setup/change-file.ts";
import { coverSecrets, plural } from "../show/problems.ts";
import { CONFIG } from "../target/target.ts";
import { ownCommand } from "../terminal/output.ts";
import { oneLine, quoteWord } from "../terminal/text.ts";

const READ_ONLY = { readOnlyHint: true, openWorldHint: false } as const;

export function createGuide(): Server {
  const program = ownCommand();
  return createServer({
    name: "catenary-guide",
    version: "1.0.0",
    instructions:
      "The tools of the guide help to set up the Catenary gateway that you are connected to. They change nothing: show the commands that they name to the user, who runs them in a terminal.",
  })
    .tool(
      "find-servers",
      {
        title: "Find MCP servers",
        description:
          "Lists the MCP servers in the config files of the AI clients on this machine, which can be added to this gateway.",
        annotations: READ_ONLY,
      },
      async () => foundServers(await findClientServers(CONFIG), program),
    )
    .tool(
      "how-to-add-a-server",
      {
        title: "How to add a server",
        description:
          "Explains how to add an MCP server to this gateway. With a name and a command or URL, gives the exact command to run.",
        annotations: READ_ONLY,
        input: {
          type: "object",
          properties: {
            name: {
              type: "string",
              description: "A short name for the server, such as github",
              pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
            },
            command: {
              type: "string",
              description:
                "The program that starts it and its arguments, such as npx -y @modelcontextprotocol/server-memory. No shell runs it.",
              minLength: 1,
              maxLength: 2_000,
            },
            url: {
              type: "string",
              description: "Its address instead, such as https://example.com/mcp",
              maxLength: 2_000,
            },
          },
          additionalProperties: false,
        },
      },
      async ({ name, command, url }) =>
        explainAdding({ name, command, url }, countServers(await findClientServers(CONFIG)), program),
    )
    .tool(
      "how-to-connect-a-client",
      {
        title: "How to connect a client",
        description: "Explains how to connect another AI client on this machine to this gateway.",
        annotations: READ_ONLY,
        input: {
          type: "object",
          properties: {
            client: { type: "string", enum: CLIENTS.map(({ name }) => name), description: "The client to connect" },
          },
          additionalProperties: false,
        },
      },
      ({ client = "CLIENT" }) => explainConnecting(client, program),
    );
}

/** How many servers the files have, equal ones counted once, as `import` would bring them. */
export function countServers(sources: readonly ClientSource[]): number {
  return new Set(sources.flatMap(({ entries }) => entries.map((entry) => JSON.stringify(entry)))).size;
}

function foundServers(sources: readonly ClientSource[], program: string): string {
  if (sources.length === 0) {
    const clients = CLIENTS.map(({ title }) => title).join(", ");
    return `No MCP servers were found in the files of clients on this machine (${clients}).\nHow to add one: ${program} add NAME COMMAND...`;
  }
  const parts = sources.map(({ title, path, entries }) => {
    const lines = entries.map(([name, entry]) => `  ${oneLine(name)}: ${describeEntry(entry)}`);
    return [`${title} (${shortPath(path)})`, ...lines].join("\n");
  });
  return `Servers in the files of clients on this machine:\n\n${parts.join("\n\n")}\n\nTo add them all to this gateway, the user runs: ${program} import\nThen this gateway must be started again.`;
}

/** Words of runners before the package or script that they run. */
const BEFORE_PACKAGE: ReadonlySet<unknown> = new Set(["-m", "run", "--"]);

function describeEntry({ command, args, url }: ServerEntry): string {
  if (typeof url === "string") return URL.canParse(url) ? new URL(url).origin : "a URL";
  if (typeof command !== "string") return "no command";
  const words = Array.isArray(args) ? args.filter((word) => typeof word === "string") : [];
  const [program = "", ...more] = command.split(/\s+/);
  // If options are part of the command, the first argument may be the value of one.
  const packageWords = more.length > 0 ? [] : words.filter((word) => !BEFORE_PACKAGE.has(word));
  const described = describeCommand({ command: basename(program), args: packageWords });
  const hasMore = words.length > (described === basename(program) ? 0 : 1);
  return oneLine(coverSecrets(`${described}${hasMore ? " ..." : ""}`));
}

interface NewServer {
  readonly name?: string | undefined;
  readonly command?: string | undefined;
  readonly url?: string | undefined;
}

function explainAdding({ name = "NAME", command, url }: NewServer, importable: number, program: string): string {
  if (url !== undefined && !isHttpUrl(url)) throw new UserError("The url must begin with https:// or http://");
  const words = wordsOf(command);
  const line = [program, "add", name, ...(url === undefined ? ["--", ...words.map(quoteWord)] : [quoteWord(url)])];
  const [file, ...args] = words;
  const entry = url === undefined ? { command: file, args } : { url };
  const example = JSON.stringify({ mcpServers: { [name]: entry } }, undefined, 2);
  return `The user runs this in a terminal, in the folder ${shortPath(process.cwd())}:

  ${line.join(" ")}
${importable === 0 ? "" : `\nOr, for the ${plural(importable, "server")} that clients on this machine have already:\n\n  ${program} import\n`}
The command shows the change to ${CONFIG}, asks, and writes it. The same by hand, in ${CONFIG}:

${example}

With a ${CONFIG}, the gateway serves that file instead of the starter; a JavaScript session is {"live": "js", "sandbox": true} there. Check the servers with \`${program} doctor\`, then start the gateway again: \`${program} up\`. A secret stays out of the file as a variable: "env": {"API_KEY": "\${API_KEY}"}.`;
}

/** Throws a UserError for what only a shell understands. */
function wordsOf(command = "npx -y PACKAGE"): string[] {
  const words = command.trim().split(/\s+/);
  const hasShellSyntax = /[;&|<>()`$'"\\*?[\]{}!#~]/.test(command);
  if (!hasShellSyntax && words[0] !== "" && !words[0]?.includes("=")) return words;
  throw new UserError(
    "The command must be a program and its arguments, such as npx -y PACKAGE, without quotes, variables or other syntax of a shell; the user can write such arguments into the file by hand",
  );
}

function explainConnecting(name: string, program: string): string {
  return `The user runs this in a terminal, in the folder ${shortPath(process.cwd())}, while the gateway runs; URL is the address that it printed at its start:

  ${program} install ${name} --url URL

It shows the change to the client's config, asks, and keeps a backup; the token is written into the entry, except for a client that can only start commands: it starts \`catenary run\`, which finds the token. Then the client must be restarted. The clients are ${CLIENTS.map((one) => one.name).join(", ")}. Any other client takes the entry that the gateway printed.`;
}
