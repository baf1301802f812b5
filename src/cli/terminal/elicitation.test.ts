// A form of a stranger who writes books: what stands on the screen is a page, and what is sent is whole.

import { expect, it } from "vitest";
import { elicitation } from "./elicitation.ts";
import type { Person, Talk } from "./person.ts";

it("shows the beginning of what is too long to be read, and sends all of it", async () => {
  const long = "x".repeat(100_000);
  const shown: string[] = [];
  const show = (text: string): Promise<string> => {
    shown.push(text);
    return Promise.resolve("");
  };
  const talk: Talk = { tell: (text) => void shown.push(text), ask: show, confirm: show, secret: show };
  const person = { talk: (_signal: AbortSignal, about: (talk: Talk) => unknown) => about(talk) } as unknown as Person;
  const { form } = elicitation(
    person,
    () => long,
    () => Promise.resolve(false),
  );
  const requestedSchema = {
    type: "object" as const,
    properties: { [long]: { type: "string" as const, title: long, description: long, default: long, format: long } },
  };
  const signal = new AbortController().signal;
  const answer = await form({ message: long, requestedSchema } as Parameters<typeof form>[0], { signal });
  expect(answer).toEqual({ action: "accept", content: { [long]: long } });
  expect(shown.length).toBeGreaterThan(4);
  expect(Math.max(...shown.map((text) => text.length))).toBeLessThan(5_000);
});
