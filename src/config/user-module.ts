// A module of the user's that a config names, loaded; what it fails with is told in one sentence, with the place of it.

import { fileURLToPath } from "node:url";
import { errorMessage } from "../core/text.ts";
import { loadModule } from "../modules/load-module.ts";

export async function userModule(file: string): Promise<Record<string, unknown>> {
  try {
    return await loadModule(file);
  } catch (error) {
    throw new Error(`${file} cannot be loaded: ${errorMessage(error)}${placeOf(error)}`, { cause: error });
  }
}

/** Where it was thrown; of a syntax error the sentence itself says it. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof SyntaxError) return "";
  const [, url, place] = /^ {4}at (?:.*\()?(file:.*?|\/.*?):(\d+:\d+)\)?$/m.exec(error.stack ?? "") ?? [];
  if (url === undefined || place === undefined) return "";
  return `, at ${url.startsWith("file:") ? fileURLToPath(url.replace(/\?.*$/, "")) : url}:${place}`;
}
