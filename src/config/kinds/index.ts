// The kinds of ends that a config may name, in the order in which they are told.

import { address } from "./address.ts";
import { command } from "../kinds.ts";
import type { Kind } from "../upstream-kind.ts";
import { live } from "../live-kind.ts";
import { module } from "./module.ts";

export const KINDS: readonly Kind[] = [command, address, module, live];
