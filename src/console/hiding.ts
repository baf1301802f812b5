// Hides servers and tools from clients, at once. Kept in the config, whose file is saved beside it before; a gateway
// without a file remembers it until it ends. These routes answer on the control socket also where there is no console.

import { realpath, rm, stat } from "node:fs/promises";
import { MAX_CONFIG_BYTES } from "../config/document.ts";
import { editHidden, hideInConfig, HidingError, type Hideable, type HiddenInMemory } from "../config/hidden.ts";
import { writeWithBackup } from "../config/write-config.ts";
import { readBounded, replaceFile } from "../core/files.ts";
import { errorMessage } from "../core/values.ts";
import type { ConsoleHost } from "./host.ts";
import { ApiError, type ApiRequest, type Route } from "./route.ts";
import type { HidingDocument } from "./types.ts";

export function hidingRoutes(host: ConsoleHost): Route[] {
  const hiding = new Hiding(host);
  const about = "`server`, or its `tool` by the name that it has there. Kept in the config, with a backup of the file.";
  return [
    {
      method: "POST",
      path: "hide",
      about: `Hides from clients ${about}`,
      run: (request) => hiding.change(targetOf(request), true),
    },
    {
      method: "POST",
      path: "show",
      about: `Shows to clients again ${about}`,
      run: (request) => hiding.change(targetOf(request), false),
    },
  ];
}

function targetOf({ body: { server, tool } }: ApiRequest): Hideable {
  if (typeof server !== "string" || server === "") throw new ApiError(400, '"server" must be the name of a server');
  if (tool !== undefined && (typeof tool !== "string" || tool === "")) {
    throw new ApiError(400, '"tool" must be the name of a tool of the server');
  }
  return { server, tool };
}

class Hiding {
  readonly #host: ConsoleHost;
  #hidden: HiddenInMemory = { servers: new Map(), tools: new Map() };
  /** One change after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(host: ConsoleHost) {
    this.#host = host;
  }

  change(target: Hideable, isHidden: boolean): Promise<HidingDocument> {
    const done = this.#last.then(() => this.#change(target, isHidden));
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #change(target: Hideable, isHidden: boolean): Promise<HidingDocument> {
    try {
      const { reload } = this.#host;
      const kept =
        reload === undefined ? await this.#inMemory(target, isHidden) : await this.#inFile(target, isHidden, reload);
      const { server, tool } = target;
      return { server, ...(tool !== undefined && { tool }), hidden: isHidden, ...kept };
    } catch (error) {
      if (!(error instanceof HidingError)) throw error;
      throw new ApiError(error.isNotFound ? 404 : 409, error.message, error.hint);
    }
  }

  async #inMemory(target: Hideable, isHidden: boolean): Promise<object> {
    const { running } = this.#host;
    const { config, hidden } = hideInConfig(running.config, this.#hidden, target, isHidden);
    await running.change(config);
    this.#hidden = hidden;
    return {};
  }

  async #inFile(target: Hideable, isHidden: boolean, reload: () => Promise<boolean>): Promise<object> {
    const { path, text: loaded } = this.#host.running.config;
    const file = await read(path);
    const text = withoutMark(file);
    const edited = editHidden(loaded, target, isHidden, path);
    const written = file.slice(0, file.length - text.length) + edited;
    let backup: string | undefined;
    // A command has made the change already, or the file has other changes, which nobody has asked to use.
    if (text === loaded && edited !== text) {
      const real = await realpath(path);
      backup = await writeWithBackup(real, file, written).catch((error: unknown) => {
        throw new ApiError(409, `${path} cannot be written: ${errorMessage(error)}`);
      });
    } else if (text !== edited) {
      throw new ApiError(
        409,
        `${path} has changed since the gateway has read it`,
        "restart the gateway, or send it SIGHUP",
      );
    }
    if (edited !== loaded && !(await reload())) {
      if (backup !== undefined && (await restore(path, written, file, backup))) {
        const message = `The gateway cannot use ${path} with this change, so the file is as it was before`;
        throw new ApiError(409, message, "its log says why");
      }
      throw new ApiError(409, `${path} was changed, and the gateway cannot use it`, "its log says why");
    }
    return { config: path, ...(backup !== undefined && { backup }) };
  }
}

async function read(path: string): Promise<string> {
  try {
    return (await readBounded(path, MAX_CONFIG_BYTES)).toString();
  } catch (error) {
    throw new ApiError(409, `${path} cannot be read: ${errorMessage(error)}`);
  }
}

/**
 * Writes the text before our change again, since with the change the gateway could not be started. Resolves to false if the
 * file has another text by now, which is kept, or cannot be written; then the backup stays too.
 */
async function restore(path: string, written: string, before: string, backup: string): Promise<boolean> {
  try {
    const real = await realpath(path);
    // The change may have made it longer than a config can be.
    if ((await readBounded(real, Buffer.byteLength(written))).toString() !== written) return false;
    await replaceFile(real, before, (await stat(real)).mode & 0o777);
  } catch {
    return false;
  }
  // It has what the file has.
  await rm(backup, { force: true }).catch(() => undefined);
  return true;
}

/** Without a byte order mark. */
function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}
