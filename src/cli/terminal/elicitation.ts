// Lets the user answer the questions of a server (elicitation) in the terminal. A form is filled in field by field and
// reviewed before it is sent. A URL is shown with its host, and opened only if the user agrees. All text from the
// server is sanitized. Ctrl-C at a question cancels the whole call; Ctrl-D dismisses the question.

import type { FormHandler, UrlHandler } from "../../client/client-requests.ts";
import type { ElicitResult, ElicitValue } from "../../protocol/model/index.ts";
import { paint } from "./output.ts";
import { fieldHint, formatValue, parseField, parseFields, type Field } from "./form-fields.ts";
import { oneLine, sanitize, truncate } from "./text.ts";
import type { Dialog, Prompter } from "./prompter.ts";

/** Opens a URL in the browser; false if that is not possible. */
export type OpenPage = (url: URL) => Promise<boolean>;

/** Longer messages from the server are cut. */
const MAX_MESSAGE_LENGTH = 4_000;
/** Longer titles, descriptions and choices are cut. */
const MAX_LINE_WIDTH = 500;

export function createElicitation(
  prompter: Prompter,
  serverName: () => string,
  openPage: OpenPage,
): { readonly form: FormHandler; readonly url: UrlHandler } {
  return {
    form: ({ message, requestedSchema }, { signal }) =>
      prompter.open(signal, (dialog) => {
        dialog.print(heading(serverName(), "asks", message));
        const fields = parseFields(requestedSchema);
        return fields.length === 0 ? confirm(dialog) : fillForm(dialog, fields);
      }),
    url: ({ message, url }, { signal }) =>
      prompter.open(signal, (dialog) => {
        dialog.print(heading(serverName(), "asks you to visit a page", message));
        return visitPage(dialog, new URL(url), openPage);
      }),
  };
}

function heading(server: string, action: string, message: unknown): string {
  const text = typeof message === "string" ? sanitize(message).slice(0, MAX_MESSAGE_LENGTH) : "";
  return `\n${paint("bold", `${line(server)} ${action}:`)} ${text}`;
}

function line(text: unknown): string {
  return typeof text === "string" ? truncate(MAX_LINE_WIDTH, oneLine(text)) : "";
}

/** Asks until the answer begins one of the words. `whenEmpty` is the word for an empty answer. */
async function choose<Word extends string>(
  dialog: Dialog,
  prompt: string,
  words: readonly Word[],
  whenEmpty?: Word,
): Promise<Word | "cancel" | "decline"> {
  for (;;) {
    const answer = (await dialog.confirm(prompt))?.toLowerCase().replace(/^:/, "");
    if (answer === undefined) return "cancel";
    if (answer === "" && whenEmpty !== undefined) return whenEmpty;
    const command = (["cancel", "decline", "no", ...words] as const).find((word) => word.startsWith(answer || "?"));
    if (command !== undefined) return command === "no" ? "decline" : command;
  }
}

/** A form without fields asks for consent. */
async function confirm(dialog: Dialog): Promise<ElicitResult> {
  const answer = await choose(dialog, "Agree? [y]es, [d]ecline, [c]ancel: ", ["yes"]);
  return answer === "yes" ? { action: "accept", content: {} } : { action: answer };
}

type Content = Map<string, ElicitValue>;

async function fillForm(dialog: Dialog, fields: readonly Field[]): Promise<ElicitResult> {
  dialog.print(paint("dim", "(:decline to refuse, :cancel to dismiss the question, Ctrl-C to cancel the call)"));
  const content: Content = new Map();
  for (;;) {
    for (const field of fields) {
      const result = await askField(dialog, field, content);
      if (result !== undefined) return result;
    }
    const answer = await review(dialog, fields, content);
    if (answer === "yes") return { action: "accept", content: Object.fromEntries(content) };
    if (answer !== "edit") return { action: answer };
  }
}

/** Asks until the answer is valid. Returns a result only if the user declines or cancels. */
async function askField(dialog: Dialog, field: Field, content: Content): Promise<ElicitResult | undefined> {
  const current: Field = { ...field, defaultValue: content.get(field.name) ?? field.defaultValue };
  const { defaultValue, choices, schema } = current;
  const description = line(schema["description"]);
  if (description !== "") dialog.print(paint("dim", description));
  for (const [at, { title }] of choices.entries()) dialog.print(`  ${at + 1}) ${line(title)}`);
  const value = defaultValue === undefined ? "" : ` [${line(formatValue(current, defaultValue))}]`;
  const prompt = `${paint("bold", label(field))} (${line(fieldHint(field))})${value}: `;
  for (;;) {
    const typed = await dialog.ask(prompt);
    if (typed === undefined || typed === ":cancel") return { action: "cancel" };
    if (typed === ":decline") return { action: "decline" };
    const read = parseField(current, typed);
    if ("value" in read) {
      if (read.value === undefined) content.delete(field.name);
      else content.set(field.name, read.value);
      return undefined;
    }
    dialog.print(paint("yellow", sanitize(read.problem)));
  }
}

function label({ name, schema }: Field): string {
  const title = line(schema["title"]);
  return title === "" ? line(name) : title;
}

async function review(
  dialog: Dialog,
  fields: readonly Field[],
  content: Content,
): Promise<"yes" | "edit" | "decline" | "cancel"> {
  dialog.print("");
  for (const field of fields) {
    const value = content.get(field.name);
    const valueText =
      value === undefined ? paint("dim", "(empty)") : truncate(MAX_MESSAGE_LENGTH, formatValue(field, value));
    dialog.print(`  ${label(field)}: ${valueText}`);
  }
  return choose(dialog, "Send this? [Y]es, [e]dit, [d]ecline, [c]ancel: ", ["edit", "yes"], "yes");
}

async function visitPage(dialog: Dialog, url: URL, openPage: OpenPage): Promise<ElicitResult> {
  dialog.print(`  host: ${paint("bold", line(url.host))}`);
  // `href` is pure ASCII, so that look-alike characters in the host become visible.
  dialog.print(`  URL:  ${sanitize(url.href)}`);
  if (url.username !== "" || url.password !== "") {
    dialog.print("  Careful: the part before the @ is a user name, not the host");
  }
  for (;;) {
    const prompt = "Open it in the browser? [y]es, [m]yself, [d]ecline, [c]ancel: ";
    const answer = await choose(dialog, prompt, ["myself", "yes"]);
    if (answer === "cancel" || answer === "decline") return { action: answer };
    if (answer === "myself" || (await openPage(url))) return { action: "accept" };
    dialog.print("Could not open a browser; if you trust the URL, open it yourself and answer [m]yself");
  }
}
