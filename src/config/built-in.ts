// The built-in middleware, by the names that a config uses. It is much code, and most configs name none: this file is
// imported when one does.

import { definedIn } from "../chain/define.ts";
import * as builtIn from "../chain/middleware/index.ts";

export const MIDDLEWARE: ReturnType<typeof definedIn> = definedIn(builtIn);
