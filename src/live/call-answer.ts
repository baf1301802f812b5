// What the code of a run gets for a call of a tool: the result, as little of it as says everything, or why there is none.

import type { Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { withoutDiagnostics } from "../protocol/errors.ts";
import { ArgumentProblem } from "./arguments.ts";
import type { CallRecord } from "./evaluation-text.ts";

/** What one run may use. */
export interface CodeBudgets {
  /** How many calls it may make. */
  readonly maxCalls: number;
  /** How many of them run at once; others wait. */
  readonly maxParallel: number;
  /** How many bytes the results of its calls may have together. */
  readonly maxResultBytes: number;
}

/** Why a call failed: "tool" if the tool says so itself. */
type FailureKind = "tool" | "budget" | "refused" | "cancelled" | "protocol";

export interface CallFailure {
  readonly kind: FailureKind;
  readonly message: string;
  readonly content?: readonly unknown[];
}

export const CANCELLED: CallFailure = {
  kind: "cancelled",
  message: "The call was cancelled, since its run was stopped",
};

export interface Answer {
  readonly result?: { readonly structured?: unknown; readonly text: string; readonly content?: readonly unknown[] };
  readonly error?: CallFailure;
  /** Text that the value has beside the content, and that counts once. */
  readonly repeated?: string;
  /** Gets the size of the answer. */
  readonly record?: CallRecord;
}

export function refusal(message: string): Answer {
  return { error: { kind: "refused", message } };
}

export function protocolFailure(error: unknown): CallFailure {
  if (error instanceof ArgumentProblem) return { kind: "refused", message: error.message };
  return { kind: "protocol", message: withoutDiagnostics(error) };
}

export function overrun(what: string, setting: keyof CodeBudgets): CallFailure {
  const advice = "what the session holds is kept, so go on in another run, or raise the setting";
  return { kind: "budget", message: `${what}, and the setting ${setting} allows no more; ${advice}` };
}

export function tooManyBytes(max: number): CallFailure {
  return overrun(`The results of the run have more than ${max} bytes`, "maxResultBytes");
}

/** The result of a tool as it is sent to the guest. The whole content is sent only if the text does not say it all. */
export function answerOf(result: Result, outputSchema: unknown): Answer {
  const { resultType = "complete", structuredContent: structured, isError } = result;
  if (resultType !== "complete") {
    return { error: { kind: "protocol", message: `The tool answered with ${resultType} instead of a result` } };
  }
  const content: readonly unknown[] = Array.isArray(result["content"]) ? result["content"] : [];
  const texts = content.flatMap((block) =>
    isObject(block) && block["type"] === "text" ? [String(block["text"])] : [],
  );
  const text = texts.join("\n");
  const isWhole = texts.length === content.length;
  if (isError === true)
    return { error: { kind: "tool", message: text || "The tool failed", ...(!isWhole && { content }) } };
  if (structured === undefined) return isWhole ? { result: { text } } : { result: { text, content }, repeated: text };
  if (!canHaveText(structured, outputSchema) || texts.every(isPartOf(structured)))
    return { result: { structured, text: "", content } };
  return { result: { structured: { ...structured, text }, text: "", content }, repeated: text };
}

/** Not if its properties have names of any kind, as in a table of counts by word. */
function canHaveText(structured: unknown, schema: unknown): structured is object {
  const { additionalProperties, patternProperties } = isObject(schema) ? schema : {};
  if (isObject(additionalProperties) || patternProperties !== undefined) return false;
  return isObject(structured) && !Object.hasOwn(structured, "text");
}

/** Whether a text is the structured content, one of its values, or an element of such a value, as it is or as JSON. */
function isPartOf(structured: object): (text: string) => boolean {
  const whole = JSON.stringify(structured);
  let parts: ReadonlySet<string> | undefined;
  return (text) => {
    // Most texts are the whole, so that its parts are not needed.
    if (text === "" || text === whole) return true;
    parts ??= partsOf(structured);
    if (parts.has(text)) return true;
    try {
      const json = JSON.stringify(JSON.parse(text));
      return json === whole || parts.has(json);
    } catch {
      return false;
    }
  };
}

function partsOf(structured: object): ReadonlySet<string> {
  const values: readonly unknown[] = Object.values(structured);
  const elements = values.flatMap((value) => (Array.isArray(value) ? (value as unknown[]) : []));
  return new Set([...values, ...elements].map((part) => (typeof part === "string" ? part : JSON.stringify(part))));
}
