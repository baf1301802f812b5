// The options that only JavaScript has. Separate, since configs read them before the language is loaded.

import { boolean, objectOrFlag, paths, type OptionsOf } from "../../core/fields.ts";

/** The first Node whose permission model can allow the inspector, which the guest needs to interrupt an evaluation. */
export const MIN_PERMISSION_NODE = 24;

const PERMISSION = {
  read: paths("Files and folders that may be read, relative to this file. Default: all."),
  write: paths("Files and folders that may be written, relative to this file. Default: none."),
  childProcess: boolean("Whether other programs may be started.").or(false),
  net: boolean("Whether the network may be used, if this version of Node can restrict it.").or(false),
};

/** What the sessions of `javascript()` may do. */
export type JavaScriptPermission = OptionsOf<typeof PERMISSION>;

export const SETTINGS = {
  permission: objectOrFlag(
    "Restricts live JavaScript sessions with the permission model of Node 24 and later: true, or an object with what they may access. This is not a sandbox.",
    PERMISSION,
  ),
};

/** The options that only JavaScript has. */
export type JavaScriptSettings = OptionsOf<typeof SETTINGS>;
