// What an end asks the person in mid-call, asked in the terminal: a form field by field, looked over before it is sent,
// or an address to visit, shown with its host and opened only on a yes. Every word of the end is made harmless first.
// Ctrl-C at a question cancels the whole call; the end of input dismisses the question.

import type { FormHandler, UrlHandler } from "../../client/client-requests.ts";
import type { ElicitResult, ElicitValue } from "../../protocol/model/index.ts";
import { fieldHint, fieldsOf, readField, valueText, type Field } from "./form-field.ts";
import { harmless, oneLine } from "./harmless.ts";
import { paint } from "./output.ts";
import type { Person, Talk } from "./person.ts";
import { cutTo } from "./text-width.ts";

/** Opens an address in the person's browser; false where that cannot be done. */
export type Opener = (url: URL) => Promise<boolean>;

/** An end may write a book; a person reads a page. */
const LONGEST_TEXT = 4_000;
/** Of a title, a description or a choice. */
const LONGEST_LINE = 500;

const DISMISSED: ElicitResult = { action: "cancel" };
const DECLINED: ElicitResult = { action: "decline" };

export function elicitation(
  person: Person,
  whoAsks: () => string,
  openPage: Opener,
): { readonly form: FormHandler; readonly url: UrlHandler } {
  return {
    form: ({ message, requestedSchema }, { signal }) =>
      person.talk(signal, (talk) => {
        talk.tell(opening(whoAsks(), "asks", message));
        const fields = fieldsOf(requestedSchema);
        return fields.length === 0 ? agree(talk) : fill(talk, fields);
      }),
    url: ({ message, url }, { signal }) =>
      person.talk(signal, (talk) => {
        talk.tell(opening(whoAsks(), "asks you to visit a page", message));
        return visit(talk, new URL(url), openPage);
      }),
  };
}

function opening(who: string, does: string, message: unknown): string {
  const said = typeof message === "string" ? harmless(message).slice(0, LONGEST_TEXT) : "";
  return `\n${paint("bold", `${line(who)} ${does}:`)} ${said}`;
}

function line(text: unknown): string {
  return typeof text === "string" ? cutTo(LONGEST_LINE, oneLine(text)) : "";
}

/** A form without fields is a question for a yes. */
async function agree(talk: Talk): Promise<ElicitResult> {
  for (;;) {
    const said = await talk.confirm("Agree? [y]es, [d]ecline, [c]ancel: ");
    if (said === undefined || is(said, "cancel")) return DISMISSED;
    if (is(said, "decline") || is(said, "no")) return DECLINED;
    if (is(said, "yes")) return { action: "accept", content: {} };
  }
}

type Content = Map<string, ElicitValue>;

async function fill(talk: Talk, fields: readonly Field[]): Promise<ElicitResult> {
  talk.tell(paint("dim", "(:decline says no, :cancel dismisses the question, Ctrl-C cancels the call)"));
  const content: Content = new Map();
  for (;;) {
    for (const field of fields) {
      const outcome = await askField(talk, field, content);
      if (outcome !== undefined) return outcome;
    }
    const outcome = await review(talk, fields, content);
    if (outcome !== "edit") return outcome;
  }
}

/** Asks until the answer fits; undefined, unless the person wants out. */
async function askField(talk: Talk, field: Field, content: Content): Promise<ElicitResult | undefined> {
  const current: Field = { ...field, byDefault: content.get(field.name) ?? field.byDefault };
  const { byDefault, choices, schema } = current;
  const description = line(schema["description"]);
  if (description !== "") talk.tell(paint("dim", description));
  for (const [at, { title }] of choices.entries()) talk.tell(`  ${at + 1}) ${line(title)}`);
  const value = byDefault === undefined ? "" : ` [${line(valueText(current, byDefault))}]`;
  const prompt = `${paint("bold", label(field))} (${line(fieldHint(field))})${value}: `;
  for (;;) {
    const typed = await talk.ask(prompt);
    if (typed === undefined || typed === ":cancel") return DISMISSED;
    if (typed === ":decline") return DECLINED;
    const read = readField(current, typed);
    if ("value" in read) {
      if (read.value === undefined) content.delete(field.name);
      else content.set(field.name, read.value);
      return undefined;
    }
    talk.tell(paint("yellow", harmless(read.problem)));
  }
}

function label({ name, schema }: Field): string {
  const title = line(schema["title"]);
  return title === "" ? line(name) : title;
}

async function review(talk: Talk, fields: readonly Field[], content: Content): Promise<ElicitResult | "edit"> {
  talk.tell("");
  for (const field of fields) {
    const value = content.get(field.name);
    const shown = value === undefined ? paint("dim", "left out") : cutTo(LONGEST_TEXT, valueText(field, value));
    talk.tell(`  ${label(field)}: ${shown}`);
  }
  for (;;) {
    const said = await talk.confirm("Send this? [Y]es, [e]dit, [d]ecline, [c]ancel: ");
    if (said === undefined || is(said, "cancel") || said === ":cancel") return DISMISSED;
    if (is(said, "decline") || is(said, "no") || said === ":decline") return DECLINED;
    if (is(said, "edit")) return "edit";
    if (said === "" || is(said, "yes")) return { action: "accept", content: Object.fromEntries(content) };
  }
}

async function visit(talk: Talk, url: URL, openPage: Opener): Promise<ElicitResult> {
  talk.tell(`  host:    ${paint("bold", line(url.host))}`);
  // As the browser would write it: nothing but ASCII, whatever letters the end has used.
  talk.tell(`  address: ${harmless(url.href)}`);
  if (url.username !== "" || url.password !== "") talk.tell("  What stands before the @ is a name, not the host");
  for (;;) {
    const said = await talk.confirm("Open it in the browser? [y]es, [m]yself, [d]ecline, [c]ancel: ");
    if (said === undefined || is(said, "cancel")) return DISMISSED;
    if (is(said, "decline") || is(said, "no")) return DECLINED;
    if (is(said, "myself")) return { action: "accept" };
    if (!is(said, "yes")) continue;
    if (await openPage(url)) return { action: "accept" };
    talk.tell("It was not opened in a browser; if you trust the address, open it there, and say [m]yself");
  }
}

function is(said: string, word: string): boolean {
  return said !== "" && word.startsWith(said.toLowerCase());
}
