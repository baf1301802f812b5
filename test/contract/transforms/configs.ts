// The cases of the recording that a config describes: tools that an entry includes or excludes, profiles, callers with a
// part of their own, the paths of profiles and servers, and code mode. Its commands are replaced by sample upstreams.

import { writeFile } from "node:fs/promises";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import { createGateway, loadConfig } from "../../../src/config/index.ts";
import type { Case } from "./cases.ts";
import { sampleUpstream } from "./upstreams.ts";

const NOTES = { command: "notes" };
const MAIL = { command: "mail" };
const FEW = { include: ["search", "open", "add", "list all!", "unlisted"], exclude: ["add"] };
const RULES = {
  tools: { include: ["search", "notes_open", "s*", "add"], exclude: ["notes_add"] },
  prompts: { exclude: ["review"] },
  resources: { exclude: ["file:///secret.txt", "note://shared"] },
};
const CALLERS = { ada: { token: "token-of-ada" }, bob: { token: "token-of-bob", profile: "work" } };
const RENAMING = [{ rename: { tools: { search: "find", notes_search: "find_notes" } } }];

interface Described {
  readonly config: object;
  readonly endpoint?: string;
}

const DESCRIBED: Readonly<Record<string, Described>> = {
  "config include one": { config: { mcpServers: { notes: { ...NOTES, ...FEW } } } },
  "config include two": { config: { mcpServers: { notes: { ...NOTES, ...FEW }, mail: MAIL } } },
  "config exclude two": { config: { mcpServers: { notes: NOTES, mail: { ...MAIL, exclude: ["search", "s*"] } } } },
  "config include rename two": {
    config: { mcpServers: { notes: { ...NOTES, ...FEW, use: RENAMING }, mail: MAIL }, chain: RENAMING },
  },
  "config profile one": { config: { mcpServers: { notes: NOTES }, profiles: { work: RULES }, callers: CALLERS } },
  "config profile two": {
    config: { mcpServers: { notes: NOTES, mail: MAIL }, profiles: { work: RULES }, callers: CALLERS },
  },
  "config profile rename two": {
    config: { mcpServers: { notes: NOTES, mail: MAIL }, profiles: { work: RULES }, callers: CALLERS, chain: RENAMING },
  },
  "config profile server two": {
    config: {
      mcpServers: { notes: NOTES, mail: MAIL },
      profiles: { work: { ...RULES, servers: ["mail"] } },
      callers: CALLERS,
    },
  },
  "config profile path two": {
    config: { mcpServers: { notes: NOTES, mail: MAIL }, profiles: { work: RULES } },
    endpoint: "/mcp/work",
  },
  "config server path two": {
    config: { mcpServers: { notes: NOTES, mail: MAIL }, profiles: { work: RULES }, callers: CALLERS },
    endpoint: "/servers/notes/mcp",
  },
  "config code one": { config: { mcpServers: { notes: NOTES }, code: { sandbox: false, include: ["open", "s*"] } } },
  "config code two": {
    config: { mcpServers: { notes: NOTES, mail: MAIL }, code: { sandbox: false, include: ["*search", "send"] } },
  },
};

export const CONFIGS: readonly Case[] = Object.entries(DESCRIBED).map(([name, { config, endpoint }]) => ({
  name,
  isNested: false,
  isText: false,
  ...(endpoint === undefined ? undefined : { endpoint }),
  open: async (state, { pins }) => {
    await writeFile(pins, JSON.stringify(config));
    const samples = { notes: sampleUpstream("notes", state), mail: sampleUpstream("mail", state) };
    const gateway = await createGateway(await loadConfig(pins, { env: {} }), {
      upstream: (target) => upstream(samples[(target as { command: keyof typeof samples }).command].handler),
      onWarning: () => undefined,
    });
    return { gateway, upstreams: samples };
  },
}));
