// `npm run schema`: writes src/config/schema.json from the readers of a config. A test compares the two.

import { writeFileSync } from "node:fs";
import { CONFIG_SCHEMA } from "../../../src/config/load.ts";

const file = new URL("../../../src/config/schema.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(CONFIG_SCHEMA, undefined, 2)}\n`);
