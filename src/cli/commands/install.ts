// `catenary install CLIENT [CONFIG]` writes the gateway of a config into the config of an MCP client, and `catenary
// uninstall CLIENT` removes it.

import { realpath } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { clientFilePath, type Client, type ClientServer } from "../../config/clients.ts";
import { isFatal } from "../../config/document.ts";
import { examineConfig } from "../../config/index.ts";
import { isOwnEntry } from "../../config/self-calls.ts";
import { boolean } from "../../core/fields.ts";
import { isObject } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { flag, type FlagValues, type ParsedLine, refuseFlags } from "../flags.ts";
import { tokenOf } from "../serve/control.ts";
import { CHANGE_FLAGS, CHANGE_NOTES, changeFile, editText, shortPath, valueIn } from "../setup/change-file.ts";
import {
  CLIENTS_ABOUT,
  configArgument,
  fileOf,
  findClient,
  openClientFile,
  ownCommand,
} from "../setup/client-files.ts";
import { plural } from "../show/problems.ts";
import { CONFIG, parseHeaders, requireConfig, URL_FLAGS } from "../target/target.ts";
import { TOKEN_VARIABLE } from "../target/sign-in.ts";
import { printStatus } from "../terminal/output.ts";
import { oneLine, quoteWord } from "../terminal/text.ts";

const DEFAULT_NAME = "catenary";

const UNINSTALL_FLAGS = {
  project: boolean("The client's config in this folder instead of the user's. It can be shared with others."),
  name: flag("NAME", `The name of the entry. Default \`${DEFAULT_NAME}\`.`),
  ...CHANGE_FLAGS,
};
const FLAGS = {
  code: boolean("In [code mode](../how-to/code-mode.md): the client sees three tools, and calls the others from code."),
  url: flag(
    "URL",
    "The client connects to a gateway that is already running (`catenary up`), instead of starting one. A token that this gateway has generated is written into the entry. A client that can only start commands (Claude Desktop) starts `catenary run URL`, which finds such a token itself.",
  ),
  "token-env": flag(
    "VARIABLE",
    "With `--url`: sends the token in this environment variable of the client. The file has only its name. Not for clients that do not read variables (Zed, Cline, Copilot CLI, LM Studio).",
    { expected: "the name of a variable" },
  ),
  header: {
    ...URL_FLAGS.header,
    only: undefined,
    description:
      "With `--url`: a header to send, such as `'Authorization: Bearer TOKEN'`. It is written as it is; for a client that can only start commands, the token is written as `CATENARY_TOKEN` in `env`, and no other header is possible.",
  },
  ...UNINSTALL_FLAGS,
};

export const installCommand: Command = command({
  name: "install",
  usage: "CLIENT [CONFIG] [OPTIONS]",
  about: `Writes an entry into the config of an MCP client, with which the client starts the gateway of CONFIG (\`catenary
serve CONFIG\`). CONFIG defaults to ./${CONFIG}. An entry of the same name is replaced.

${CLIENTS_ABOUT}`,
  flags: FLAGS,
  notes: CHANGE_NOTES,
  exits: "0 ok, or nothing to change; 1 wrong command line or config, or not written; 2 no such file.",
  words: 2,
  needs: `a CLIENT; ${CLIENTS_ABOUT}`,
  run: install,
});

async function install({ words: [clientName = "", configFile], values }: ParsedLine<typeof FLAGS>): Promise<number> {
  const client = findClient(clientName);
  const { url, name = DEFAULT_NAME, project: isProject = false } = values;
  if (url !== undefined && configFile !== undefined) throw new UsageError("Give CONFIG or --url, not both");
  if (url !== undefined && values.code === true) {
    throw new UsageError("--code is for a gateway that the client starts; with --url, start the gateway with --code");
  }
  if (url === undefined) refuseFlags(values, ["token-env", "header"], "--url URL; on stdio no token is needed");
  const file = fileOf(client, isProject);
  const server = url === undefined ? await serveEntry(configFile, client, values) : await urlEntry(url, client, values);
  const opened = await openClientFile(client, file);
  if (url === undefined) await refuseOwnFile(configFile ?? CONFIG, client, opened.real);
  const path = [...file.servers, name];
  const value = client.entry(server);
  // An equal entry stays as it is, with its comments.
  const isThere = isDeepStrictEqual(await valueIn(opened, path), value);
  const edited = isThere ? (opened.text ?? "") : await editText(opened, [{ path, value }]);
  const others = await valueIn(opened, file.servers);
  const code = await changeFile(opened, edited, {
    values,
    done: `Restart ${client.title}, or reload its MCP servers. To undo this: ${undo(client, name, isProject)}`,
    unchanged: `${client.title} has this entry already, in ${shortPath(opened.path)}`,
    document: { client: client.name, name },
  });
  const needsAdvice = url !== undefined && !hasToken(server) && (await needsToken(url));
  if (values.header !== undefined) {
    const advice = client.headerVariable === undefined ? "" : "; --token-env VARIABLE keeps a token out of it";
    printStatus(`The headers are in ${shortPath(opened.path)} as you gave them: keep the file private${advice}`);
  } else if (needsAdvice) {
    printStatus(`${url} asks for a token; write the entry again with ${tokenOptions(client)}`);
  }
  noteOthers(client.name, isObject(others) ? others : {}, name);
  return code;
}

function undo({ name: client }: Client, name: string, isProject: boolean): string {
  const flags = [...(isProject ? ["--project"] : []), ...(name === DEFAULT_NAME ? [] : ["--name", quoteWord(name)])];
  return ["catenary uninstall", client, ...flags].join(" ");
}

/** A gateway of the file that starts it would start itself without end. */
async function refuseOwnFile(config: string, { name, title }: Client, file: string): Promise<void> {
  if ((await realpath(config)) !== file) return;
  throw new UsageError(
    `${config} is the config of ${title} itself, so the gateway would start itself; \`catenary import ${name}\` brings its servers into ./${CONFIG}, then \`catenary install ${name}\``,
  );
}

/** The client would start these beside the gateway. */
function noteOthers(client: string, entries: { readonly [name: string]: unknown }, name: string): void {
  const others = Object.entries(entries).filter(([other, entry]) => other !== name && !isOwnEntry(entry));
  if (others.length === 0) return;
  const names = others.map(([other]) => oneLine(other)).join(", ");
  printStatus(
    `${client} also has ${plural(others.length, "server")} of its own (${names}); \`catenary import ${client}\` brings them into ./${CONFIG}`,
  );
}

async function serveEntry(
  file: string | undefined,
  client: Client,
  values: FlagValues<typeof FLAGS>,
): Promise<ClientServer> {
  const isProject = values.project === true;
  const path = await requireConfig(file, `install ${client.name}`);
  const { problems } = await examineConfig(path);
  // A variable may be set where the client starts the gateway.
  const errors = problems.filter(isFatal);
  if (errors.length > 0) {
    throw new UsageError(`${path} has ${plural(errors.length, "error")}; \`catenary check ${path}\` explains them`);
  }
  return ownCommand(["serve", configArgument(path, isProject), ...(values.code === true ? ["--code"] : [])], isProject);
}

function tokenOptions({ headerVariable }: Client): string {
  const header = "--header 'Authorization: Bearer TOKEN'";
  return headerVariable === undefined ? header : `--token-env VARIABLE or ${header}`;
}

function hasToken(server: ClientServer): boolean {
  return ("url" in server ? server.headers?.["Authorization"] : server.env?.[TOKEN_VARIABLE]) !== undefined;
}

/** Asks only on this machine, where the answer is quick. `catenary run` finds a token that a gateway has generated. */
async function needsToken(url: string): Promise<boolean> {
  if (!isLoopback(new URL(url).hostname) || (await tokenOf(url)) !== undefined) return false;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) });
    await response.body?.cancel();
    return response.status === 401;
  } catch {
    return false;
  }
}

const PROBE_MS = 2_000;

async function urlEntry(url: string, client: Client, values: FlagValues<typeof FLAGS>): Promise<ClientServer> {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    // It may have a password.
    throw new UsageError(
      "--url is not a URL that begins with http:// or https://; `catenary up` prints that of its gateway",
    );
  }
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") {
    throw new UsageError(
      `--url has a user name or a password, which would be readable in the file: leave them out, and give ${tokenOptions(client)}`,
    );
  }
  const headers: Record<string, string> = { ...parseHeaders(values) };
  const variable = values["token-env"];
  if (client.isStdioOnly === true) return bridgeEntry(url, client, values, headers);
  if (variable !== undefined) {
    if (!/^[A-Za-z_]\w*$/.test(variable)) throw new UsageError("--token-env must be the name of a variable");
    if (client.headerVariable === undefined) {
      throw new UsageError(
        `${client.title} does not read variables in its config: give ${tokenOptions(client)}; the token is then in the file`,
      );
    }
    headers["Authorization"] = `Bearer ${client.headerVariable.replace("VAR", variable)}`;
  } else if (!Object.keys(headers).some((name) => name.toLowerCase() === "authorization")) {
    const token = await tokenOf(url);
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
  }
  return { url, ...(Object.keys(headers).length > 0 && { headers }) };
}

/**
 * An entry that starts `catenary run URL`. All users of the machine can read the command line of a process, so that a token
 * is in its environment; one that the gateway has generated is not written at all.
 */
async function bridgeEntry(
  url: string,
  client: Client,
  values: FlagValues<typeof FLAGS>,
  headers: Readonly<Record<string, string>>,
): Promise<ClientServer> {
  const { title } = client;
  if (values["token-env"] !== undefined) {
    throw new UsageError(
      `${title} does not pass on variables: give ${tokenOptions(client)}; the token is then in the file`,
    );
  }
  const [first, ...others] = Object.entries(headers);
  const [, token] = (first?.[0].toLowerCase() === "authorization" && /^Bearer (\S+)$/i.exec(first[1])) || [];
  if (others.length > 0 || (first !== undefined && token === undefined)) {
    throw new UsageError(
      `${title} can only start commands, and other users could read headers on a command line: --header takes 'Authorization: Bearer TOKEN' alone. Write others into a config (catenary add NAME ${quoteWord(url)} --header ...), and install that`,
    );
  }
  const entry = await ownCommand(["run", url], values.project === true);
  return token === undefined ? entry : { ...entry, env: { [TOKEN_VARIABLE]: token } };
}

export const uninstallCommand: Command = command({
  name: "uninstall",
  usage: "CLIENT [OPTIONS]",
  about: `Removes the entry that \`catenary install\` has written into the config of a client.\n\n${CLIENTS_ABOUT}`,
  flags: UNINSTALL_FLAGS,
  notes: CHANGE_NOTES,
  exits: "0 ok; 1 wrong command line, or not written; 2 there is no such entry.",
  words: 1,
  needs: `a CLIENT; ${CLIENTS_ABOUT}`,
  run: uninstall,
});

async function uninstall({ words: [clientName = ""], values }: ParsedLine<typeof UNINSTALL_FLAGS>): Promise<number> {
  const client = findClient(clientName);
  const { name = DEFAULT_NAME, project: isProject = false } = values;
  const file = fileOf(client, isProject);
  const opened = await openClientFile(client, file);
  const path = [...file.servers, name];
  if ((await valueIn(opened, path)) === undefined) {
    throw new NotFoundError(`${shortPath(clientFilePath(file))} has no entry ${name}; --name names another`);
  }
  return changeFile(opened, await editText(opened, [{ path, value: undefined }]), {
    values,
    done: `Restart ${client.title}, or reload its MCP servers`,
    unchanged: `${client.title} has no entry ${name}`,
    document: { client: client.name, name },
  });
}
