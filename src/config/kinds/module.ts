// An end that is a module of the user's, in this process: what `catenary serve MODULE` would serve. It is loaded when
// the config is used.

import type { Handler } from "../../core/handler.ts";

import { exportedFunction } from "../../modules/exported.ts";
import { pathTo, type Fields } from "../readers.ts";
import { userModule } from "../user-module.ts";
import { kindOf, type Kind } from "../upstream-kind.ts";

const FIELDS = { module: pathTo("file", "error") } as const satisfies Fields;

export const module: Kind = kindOf(FIELDS, {
  key: "module",
  purpose: "a module that exports a server",
  found({ module: file }) {
    if (file === undefined) return undefined;
    return {
      kind: "module",
      about: { module: file },
      async reach() {
        const target = exportedFunction(await userModule(file)) as Handler | undefined;
        if (target !== undefined) return { target };
        throw new Error(`${file} exports no server: export one made by createServer as the default, or as \`server\``);
      },
    };
  },
});
