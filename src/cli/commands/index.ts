// All commands, in the order of `catenary --help`.

import type { Command } from "../command.ts";

export interface CommandEntry {
  /** Its line in `catenary --help`. */
  readonly summary: string;
  /** Each command is imported only when it is used, so that --help stays fast. */
  load(): Promise<Command>;
}

export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  up: {
    summary: "start a local gateway for all servers of a config",
    load: async () => (await import("./serve.ts")).upCommand,
  },
  serve: {
    summary: "serve the gateway of a config, or the server of a module, on stdio or HTTP",
    load: async () => (await import("./serve.ts")).serveCommand,
  },
  run: {
    summary: "run one server, or sign in to a URL, so that any client can use it",
    load: async () => (await import("./run.ts")).runCommand,
  },
  check: {
    summary: "check a config and explain its problems",
    load: async () => (await import("./check.ts")).checkCommand,
  },
  login: {
    summary: "sign in to a server that asks for it",
    load: async () => (await import("./login.ts")).loginCommand,
  },
  logout: {
    summary: "delete the stored tokens of a server",
    load: async () => (await import("./login.ts")).logoutCommand,
  },
  auth: {
    summary: "list the servers with stored tokens",
    load: async () => (await import("./login.ts")).authCommand,
  },
  tools: {
    summary: "list the tools of a server, or show one",
    load: async () => (await import("./list.ts")).toolsCommand,
  },
  call: {
    summary: "call a tool",
    load: async () => (await import("./call.ts")).callCommand,
  },
  resources: {
    summary: "list the resources of a server",
    load: async () => (await import("./list.ts")).resourcesCommand,
  },
  read: {
    summary: "read a resource",
    load: async () => (await import("./call.ts")).readCommand,
  },
  prompts: {
    summary: "list the prompts of a server, or show one",
    load: async () => (await import("./list.ts")).promptsCommand,
  },
  prompt: {
    summary: "get a prompt",
    load: async () => (await import("./call.ts")).promptCommand,
  },
  eval: {
    summary: "evaluate code in a live session of JavaScript or Common Lisp",
    load: async () => (await import("./eval.ts")).evalCommand,
  },
};
