// The frame of the pages: navigation, the page of now, what is said, the palette. Pages are loaded when they are first
// shown.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isSignedOut } from "./api.ts";
import { connection, retryNow } from "./feed.ts";
import { Page as Home } from "./home/page.tsx";
import { Button } from "./kit/button.tsx";
import { CopyButton } from "./kit/copy.tsx";
import { Empty } from "./kit/marks.tsx";
import { Keys, useKeysKey } from "./keys.tsx";
import { isPaletteOpen, Palette, usePaletteKey } from "./palette.tsx";
import { hrefOf, PAGES, place, type PageName } from "./router.ts";
import { count, shortSpan } from "./kit/format.ts";
import { followState, info, live, now, overview, questions, said, typed } from "./state.ts";
import { switchTheme } from "./theme.ts";

const TITLES: Readonly<Record<PageName, string>> = {
  home: "Home",
  traffic: "Traffic",
  tools: "Tools",
  live: "Live",
  chain: "Chain",
};

/** Each exports its page as `Page`. */
const LATE: Readonly<Record<Exclude<PageName, "home">, () => Promise<{ readonly Page: ComponentType }>>> = {
  traffic: () => import("./traffic/page.tsx"),
  tools: () => import("./tools/page.tsx"),
  live: () => import("./live/page.tsx"),
  chain: () => import("./chain/page.tsx"),
};

export function App(): JSX.Element {
  useEffect(followState, []);
  usePaletteKey();
  useKeysKey();
  if (isSignedOut.value) return <SignedOut />;
  return (
    <div class="app">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the page
      </a>
      <Navigation />
      <main class="main" id="main" tabIndex={-1}>
        {connection.value === "lost" ? <Lost /> : null}
        <Shown name={place.value.page} />
      </main>
      <Palette />
      <Keys />
      <div role="status" aria-live="polite" class={said.value?.isError === true ? "said is-bad" : "said"}>
        {said.value?.text}
      </div>
    </div>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Navigation(): JSX.Element {
  return (
    <nav class="nav" aria-label="Pages">
      <div class="logo">
        <svg width="26" height="18" viewBox="0 0 26 18" stroke-width="2" stroke-linecap="round" aria-hidden="true">
          <path d="M2 2c2.500 9 6.500 13.500 11 13.500S21.500 11 24 2" />
          <circle cx="2" cy="2" r="1.300" />
          <circle cx="24" cy="2" r="1.300" />
        </svg>
        <span>Catenary</span>
      </div>
      <div class="places">
        {PAGES.map((name) => (
          <a key={name} href={hrefOf(name)} {...(place.value.page === name ? { "aria-current": "page" as const } : {})}>
            {TITLES[name]} <Count name={name} />
          </a>
        ))}
      </div>
      <Foot />
    </nav>
  );
}

/** What the number beside a link counts. */
const COUNTED: Readonly<Record<Exclude<PageName, "home">, string>> = {
  traffic: "Calls of clients",
  tools: "Tools that clients get",
  live: "Live sessions",
  chain: "",
};

/** The number beside a link. */
function Count({ name }: { readonly name: PageName }): JSX.Element | null {
  const { needs = [], calls = 0, servers = [] } = overview.value ?? {};
  if (name === "home") {
    const waiting = needs.length;
    return waiting === 0 ? null : (
      <span class="count need" title={`${waiting} need you`} aria-hidden="true">
        {waiting}
      </span>
    );
  }
  const counts: Readonly<Record<Exclude<PageName, "home">, number>> = {
    traffic: calls,
    tools: servers.reduce((sum, { tools = 0 }) => sum + tools, 0),
    live: live.value.length,
    chain: 0,
  };
  return counts[name] === 0 ? null : (
    <span class="count" aria-hidden="true" title={COUNTED[name]}>
      {count(counts[name])}
    </span>
  );
}

function Foot(): JSX.Element {
  const known = info.value;
  return (
    <div class="foot">
      {known === undefined ? null : (
        <span>
          {location.host}
          <br />
          up {shortSpan(now.value - Date.parse(known.startedAt))} · {known.version}
          <br />
        </span>
      )}
      <button type="button" class="theme" onClick={switchTheme}>
        Light or dark
      </button>
      <button type="button" aria-label="Ctrl K go to anything" onClick={() => (isPaletteOpen.value = true)}>
        <kbd>Ctrl K</kbd> <span>go to anything</span>
        <svg
          class="search"
          width="18"
          height="18"
          viewBox="0 0 18 18"
          fill="none"
          stroke="currentColor"
          aria-hidden="true"
        >
          <circle cx="8" cy="8" r="5" stroke-width="1.600" />
          <path d="M12 12l4 4" stroke-width="1.600" stroke-linecap="round" />
        </svg>
      </button>
    </div>
  );
}

/** A page, once its code is loaded. */
function Shown({ name }: { readonly name: PageName }): JSX.Element | null {
  const [loaded, setLoaded] = useState<{ readonly name: PageName; readonly Page: ComponentType }>();
  const [isBroken, setIsBroken] = useState(false);
  useEffect(() => {
    document.title = `${TITLES[name]} · Catenary`;
    if (name === "home") return;
    let isWanted = true;
    setIsBroken(false);
    LATE[name]().then(
      ({ Page }) => isWanted && setLoaded({ name, Page }),
      () => isWanted && setIsBroken(true),
    );
    return () => {
      isWanted = false;
    };
  }, [name]);
  if (name === "home") return <Home />;
  if (isBroken) {
    return (
      <Empty title={`${TITLES[name]} could not be loaded`} action={<Reload />}>
        The gateway may have been updated since this page was opened.
      </Empty>
    );
  }
  return loaded?.name === name ? <loaded.Page /> : null;
}

function Reload(): JSX.Element {
  return <Button onClick={() => location.reload()}>Load the page again</Button>;
}

function Lost(): JSX.Element {
  return (
    <div class="lost" role="alert">
      <span class="grow">Connection lost, trying again. What you see is as last known.</span>
      <Button small onClick={retryNow}>
        Try now
      </Button>
    </div>
  );
}

function SignedOut(): JSX.Element {
  return (
    <main class="signed-out">
      <h1>This page needs a new link</h1>
      <p class="soft">
        A link opens the console once, in one browser. Make a new one in a terminal on the same machine. If the command
        is not installed, type <code>npx catenary console</code> in the folder that you have started it from.
      </p>
      <pre class="panel">{typed("catenary console")}</pre>
      <div class="row">
        <CopyButton text={typed("catenary console")} />
        <Button onClick={() => location.reload()}>Try again</Button>
      </div>
      {questions.value.length > 0 ? <p class="soft">Questions wait for an answer.</p> : null}
    </main>
  );
}
