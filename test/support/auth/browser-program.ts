// A program for $BROWSER: opens the URL of its last argument as a user who signs in and consents.

import { Browser } from "./oidc-provider.ts";

await new Browser().open(new URL(process.argv.at(-1) ?? ""));
