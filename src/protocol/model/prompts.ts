// Prompts: messages that a person chooses by name and fills with arguments. What a message is made of is in
// content.ts. Types only.

import type { Meta } from "../../core/handler.ts";
import type { ContentBlock, Icon, Role } from "./content.ts";
import type { CompleteResultBase, PageResult } from "./results.ts";
import type { AnsweredParams } from "./rounds.ts";

export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required?: boolean;
}

export interface Prompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly arguments?: readonly PromptArgument[];
  readonly _meta?: Meta;
}

export interface PromptMessage {
  readonly role: Role;
  readonly content: ContentBlock;
}

export interface ListPromptsResult extends PageResult {
  readonly prompts: readonly Prompt[];
}

export interface GetPromptParams extends AnsweredParams {
  readonly name: string;
  readonly arguments?: { readonly [name: string]: string };
}

export interface GetPromptResult extends CompleteResultBase {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}
