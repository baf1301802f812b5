// The tools of a Lisp session for the library telos. They work only if it is loaded in the session.

import { type GuestTool, required, text } from "../tool.ts";

const FEATURE = required('Name of the feature, case-insensitive; "package::name" if several share it.');

const INTENT_NAME = required('Name of a function or class; "package::name" if several share it.');

const INTENT_PACKAGE = text(
  "Package of the name. Default: the current package of the session, then any package if only one has it.",
);

export const TELOS_TOOLS: readonly GuestTool[] = [
  {
    name: "telos-list-features",
    library: "telos",
    title: "Telos: list features",
    description: "List the features that telos knows, each with its purpose and its parent.",
    arguments: { filter: text("Only those whose name or purpose contains this string.") },
    readOnly: true,
  },
  {
    name: "telos-feature-intent",
    library: "telos",
    title: "Telos: intent of a feature",
    description: "Explain why a feature exists: purpose, goals, constraints, assumptions and failure modes.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-get-intent",
    library: "telos",
    title: "Telos: intent of a function or class",
    description: "Explain why a function or class exists: its role, purpose, feature and failure modes.",
    arguments: { name: INTENT_NAME, package: INTENT_PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-intent-chain",
    library: "telos",
    title: "Telos: chain of intent",
    description: "Follow the intent of a function or class upward, from feature to feature, to the root.",
    arguments: { name: INTENT_NAME, package: INTENT_PACKAGE },
    readOnly: true,
  },
  {
    name: "telos-feature-members",
    library: "telos",
    title: "Telos: members of a feature",
    description: "List the functions, classes, structures, conditions, methods and sub-features of a feature.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-feature-decisions",
    library: "telos",
    title: "Telos: decisions of a feature",
    description: "List the decisions recorded for a feature: what was chosen, over what, why, by whom and when.",
    arguments: { feature: FEATURE },
    readOnly: true,
  },
  {
    name: "telos-list-decisions",
    library: "telos",
    title: "Telos: all decisions",
    description: "List the decisions recorded for all features.",
    arguments: {},
    readOnly: true,
  },
];
