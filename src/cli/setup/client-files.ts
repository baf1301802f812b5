// The files of MCP clients that the set-up commands change: finding a client by its name, the file that the client reads,
// and the entry with which a client starts us.

import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { clientFilePath, CLIENTS, type Client, type ClientFile, type ClientServer } from "../../config/clients.ts";
import { homeFolder } from "../../core/files.ts";
import { suggest, UsageError } from "../command.ts";
import { type EditedFile, openForEdit } from "./change-file.ts";

const CLIENT_NAMES: readonly string[] = CLIENTS.map(({ name }) => name);

export const CLIENTS_ABOUT: string = `CLIENT is one of ${CLIENT_NAMES.join(", ")}.`;

export function findClient(name: string): Client {
  const client = CLIENTS.find((client) => client.name === name.toLowerCase());
  if (client !== undefined) return client;
  const all = `the clients are ${CLIENT_NAMES.join(", ")}`;
  throw new UsageError(`There is no client ${name}; ${suggest(name, CLIENT_NAMES, all)}`);
}

/** The file of a client for all projects, or for the project in the current folder. */
export function fileOf({ files, title }: Client, isProject: boolean): ClientFile {
  const scope = isProject ? "project" : "user";
  const file = files.find((file) => file.scope === scope && file.isOld !== true);
  if (file === undefined) throw new UsageError(`${title} has no config for a project; leave --project out`);
  return file;
}

export async function openClientFile(client: Client, file: ClientFile): Promise<EditedFile> {
  const root = file.scope === "project" ? process.cwd() : homeFolder();
  return openForEdit(clientFilePath(file), client.format, root);
}

/** A command that starts this program, also for a client with another PATH. */
export async function ownCommand(args: readonly string[], isProject: boolean): Promise<ClientServer> {
  const script = await realpath(process.argv[1] ?? "").catch(() => "");
  // The cache of npx may be cleared at any time.
  if (script.includes(`${sep}_npx${sep}`)) return { command: "npx", args: ["-y", "catenary", ...args] };
  // The file of a project is shared with other machines.
  if (isProject) return { command: "catenary", args };
  return { command: process.execPath, args: [script, ...args] };
}

/** The path of the config for an entry: absolute, or for a project relative to it. */
export function configArgument(path: string, isProject: boolean): string {
  return isProject && resolve(path).startsWith(process.cwd() + sep) ? path : resolve(path);
}
