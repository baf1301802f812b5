import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { openSdk1 } from "./sdk-1-peer.ts";
import { openSdk2 } from "./sdk-2-peer.ts";
converse({ title: "SDK1 x SDK1", revision: SESSIONS.at(-1)!, server: "sdk-1", open: openSdk1 });
converse({ title: "SDK1 x SDK2", revision: SESSIONS.at(-1)!, server: "sdk-2", open: openSdk1 });
for (const r of SESSIONS) converse({ title: "SDK2 x SDK1 " + r, revision: r, server: "sdk-1", open: (f) => openSdk2(f, {supportedProtocolVersions: [r]}) });
converse({ title: "SDK2 x SDK2 auto", revision: EXCHANGE, server: "sdk-2", open: (f) => openSdk2(f, {versionNegotiation: {mode: "auto"}}) });
