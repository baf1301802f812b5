// The entry of the pages: exchanges the token of the link for a cookie, opens the feed, and draws.

import { render } from "preact";
import "./base.css";
import "./app.css";
import "./kit/kit.css";
import { App } from "./app.tsx";
import { hasToken, signIn } from "./api.ts";
import { startFeed } from "./feed.ts";
import { startRouter } from "./router.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
await signIn();
// A new link that is opened in this tab only changes the hash.
addEventListener("hashchange", () => {
  if (hasToken()) void signIn().then(() => location.reload());
});
startRouter();
startFeed();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
