// Asks before a config is used that the user has not named. `up` and `serve` without a config, and commands with the
// name of a server, use ./catenary.json, and that of a downloaded folder may start any program. An approved file is
// remembered by its digest and that of the files it runs, so changed ones are asked about again, and what was approved
// is what is loaded. Without a terminal there is no question: a client or a service has chosen the folder.

import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { isFatal, readConfigText } from "../../config/document.ts";
import { checkConfig, examineConfigText } from "../../config/load.ts";
import { digestFiles } from "../../config/local-files.ts";
import { fileLock } from "../../core/file-lock.ts";
import { makePrivateDirectory, readPrivate, stateDirectory, writePrivate } from "../../core/private-files.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { EXIT, UsageError } from "../command.ts";
import { coverSecrets } from "../show/problems.ts";
import { exit, printStatus } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { agrees, Prompter } from "../terminal/prompter.ts";

/** The digests of the approved configs by their absolute paths. */
type Approved = Readonly<Record<string, unknown>>;

/** How many configs are remembered; the oldest are forgotten. */
const MAX_APPROVED = 1_000;

/**
 * Resolves to the text of the config to load; undefined if the user was not asked. Throws a UsageError if the user does not want
 * the config. `isApproved`: the user has given --yes.
 */
export async function confirmConfig(path: string, isApproved: boolean): Promise<string | undefined> {
  if (!isApproved && !Prompter.isAvailable()) return undefined;
  const file = resolve(path);
  const text = await readConfigText(file);
  // Nothing will be started. The problems are reported when the config is loaded. What is missing on this machine is not
  // looked at: `doctor` starts the servers even if code mode cannot start.
  if ((await checkConfig(text, path)).some(isFatal)) return text;
  const { report, config } = await examineConfigText(text, path);
  if (config === undefined) return text;
  const digestNow = async (): Promise<string> =>
    createHash("sha256")
      .update(text)
      .update(await digestFiles(config))
      .digest("hex");
  const digest = await digestNow();
  const known = (await readApproved())[file];
  if (known === digest) return text;
  if (!isApproved && !(await ask(path, report.starts, known !== undefined))) {
    throw new UsageError(
      `${path} was not used, and nothing was started; read the file, then run the command again and answer y`,
    );
  }
  if ((await digestNow()) !== digest) {
    throw new UsageError(
      `A file that ${path} runs has changed since you were asked, and nothing was started; run the command again`,
    );
  }
  await approve(file, digest).catch((error: unknown) => {
    printStatus(`catenary: your answer could not be stored: ${errorMessage(error)}`);
  });
  return text;
}

async function ask(path: string, starts: readonly string[], hasChanged: boolean): Promise<boolean> {
  const prompter = new Prompter(() => exit(EXIT.interrupted));
  return prompter.open(new AbortController().signal, async (dialog) => {
    const news = hasChanged ? "or a file that it runs has changed since you approved it" : "is new to Catenary";
    dialog.print(`${path} ${news}. These programs would run with your rights:`);
    for (const start of starts) dialog.print(`  ${oneLine(coverSecrets(start))}`);
    return agrees(dialog, "Start them? [y/N] ");
  });
}

function approvedFile(): string {
  return join(stateDirectory(), "approved.json");
}

/** Empty if the file is missing or broken, or if others can change it. */
async function readApproved(): Promise<Approved> {
  try {
    const content: unknown = JSON.parse((await readPrivate(approvedFile())) ?? "{}");
    return isObject(content) ? content : {};
  } catch {
    return {};
  }
}

async function approve(file: string, digest: string): Promise<void> {
  await makePrivateDirectory(stateDirectory());
  await fileLock(`${approvedFile()}.locks`).exclusively("approved", async () => {
    const { [file]: _before, ...others } = await readApproved();
    const kept = [...Object.entries(others), [file, digest]].slice(-MAX_APPROVED);
    await writePrivate(approvedFile(), `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`);
  });
}
