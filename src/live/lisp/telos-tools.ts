// The seven tools that ask the library telos what a program is for: what each is called, what it takes, and what the
// model is told of it. They stand apart because they answer only where telos is loaded in the session.

import type { Argument, GuestTool } from "../tool.ts";

const FEATURE: Argument = {
  type: "string",
  required: true,
  description: 'Name of the feature, in any case; "package::name" where several share it.',
};

const NAME: Argument = {
  type: "string",
  required: true,
  description: 'Name of a function or class; "package::name" where several share it.',
};

const PACKAGE: Argument = {
  type: "string",
  description: "Package of the name. Default: the one the session is in, then any where there is just one.",
};

export const TELOS_TOOLS: readonly GuestTool[] = [
  {
    name: "telos-list-features",
    title: "Telos: list features",
    description: "List the features that telos knows, each with its purpose and its parent.",
    arguments: { filter: { type: "string", description: "Only those whose name or purpose contains this text." } },
    readOnly: true,
  },
  {
    name: "telos-feature-intent",
    title: "Telos: intent of a feature",
    description: "Tell why a feature exists: purpose, goals, constraints, assumptions and failure modes.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-get-intent",
    title: "Telos: intent of a function or class",
    description: "Tell why a function or class exists: its role, purpose, feature and failure modes.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-intent-chain",
    title: "Telos: chain of intent",
    description: "Follow the intent of a function or class upward, from feature to feature, to the root.",
    arguments: { name: NAME, package: PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-feature-members",
    title: "Telos: members of a feature",
    description: "List the functions, classes, structures, conditions, methods and sub-features of a feature.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-feature-decisions",
    title: "Telos: decisions of a feature",
    description: "List the decisions recorded for a feature: what was chosen, over what, why, by whom and when.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-list-decisions",
    title: "Telos: all decisions",
    description: "List the decisions recorded for all features.",
    arguments: {},
    readOnly: true,
  },
];
