// The list Needs you: what a person should do, each with its button.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Need, Question, SignInPage } from "../../../src/console/types.ts";
import { post, reasonOf } from "../api.ts";
import { Button } from "../kit/button.tsx";
import { InertText } from "../kit/inert-text.tsx";
import { Dot } from "../kit/marks.tsx";
import { LateQuestion } from "../late-question.tsx";
import { go, hrefOf, place } from "../router.ts";
import { overview, say } from "../state.ts";
import { LogDialog } from "./log.tsx";
import { ReviewPin } from "./review-pin.tsx";

export function Needs(): JSX.Element {
  const needs = overview.value?.needs ?? [];
  return (
    <div class="panel">
      <h2 id="needs-head">Needs you</h2>
      <ul class="needs" role="list" aria-labelledby="needs-head">
        {needs.map((need) => (
          <NeedLine key={need.id} need={need} />
        ))}
      </ul>
      {needs.length === 0 ? <p class="soft">Nothing. All is well.</p> : null}
    </div>
  );
}

function NeedLine({ need }: { readonly need: Need }): JSX.Element {
  const { kind, server, text } = need;
  const isBad = kind === "failing" || kind === "incomplete";
  // A link of another page asks why the server fails.
  const isAsked = isBad && server !== undefined && place.value.query.get("why") === server;
  const [isOpened, setIsOpen] = useState(false);
  const isOpen = isOpened || isAsked;
  const close = (): void => {
    setIsOpen(false);
    if (isAsked) go(hrefOf("home"), { replace: true });
  };
  return (
    <li>
      <Dot tone={isBad ? "bad" : "warn"} shape={isBad ? "bar" : kind === "sign-in" ? "hollow" : "full"} />
      <span class="grow">
        {server === undefined || kind === "question" ? null : (
          <>
            <b>
              <InertText text={server} max={60} />
            </b>
            :{" "}
          </>
        )}
        <InertText text={text} max={300} />
      </span>
      <NeedButton need={need} open={() => setIsOpen(true)} />
      {isOpen && kind === "pin" && server !== undefined ? <ReviewPin server={server} onClose={close} /> : null}
      {isOpen && need.question !== undefined ? <LateQuestion question={need.question} /> : null}
      {isOpen && isBad && server !== undefined ? (
        <LogDialog server={server} label={`Why ${server} fails`} text={text} hint={need.hint} onClose={close} />
      ) : null}
    </li>
  );
}

function NeedButton({ need, open }: { readonly need: Need; readonly open: () => void }): JSX.Element | null {
  const { kind, server } = need;
  const of = server === undefined ? "" : ` ${server}`;
  switch (kind) {
    case "sign-in":
      return (
        <Button small kind="go" label={`Sign in to${of}`} onClick={() => signIn(server ?? "")}>
          Sign in
        </Button>
      );
    case "pin":
      return server === undefined ? null : (
        <Button small label={`Review${of}`} onClick={open}>
          Review
        </Button>
      );
    case "failing":
    case "incomplete":
      return server === undefined ? null : (
        <Button small label={`Why?${of}`} onClick={open}>
          Why?
        </Button>
      );
    case "question":
      return <QuestionButton question={need.question} open={open} />;
  }
}

/** A question of a call of the console is answered here; one of a client's call is answered there. */
function QuestionButton(props: {
  readonly question: Question | undefined;
  readonly open: () => void;
}): JSX.Element | null {
  const { question, open } = props;
  if (question?.call !== undefined) {
    return (
      <Button small kind="go" label={`Answer ${question.server ?? "the server"}`} onClick={open}>
        Answer
      </Button>
    );
  }
  if (question?.row === undefined) return null;
  return (
    <a class="link" href={hrefOf("traffic", [question.row])}>
      show
    </a>
  );
}

/** Opens the page where the person signs in. The window is opened at once, since browsers refuse it later. */
export async function signIn(server: string): Promise<void> {
  const page = open("about:blank", "_blank");
  try {
    const { url } = await post<SignInPage>("sign-in", { server });
    if (url === undefined) {
      page?.close();
      say(`${server} is signed in.`);
    } else if (page === null) location.href = checked(url);
    else {
      page.opener = null;
      page.location.href = checked(url);
      say("Sign in on the page that has opened.");
    }
  } catch (error) {
    page?.close();
    say(reasonOf(error), true);
  }
}

/** The address comes from a server, so nothing but a page of the web is opened. */
function checked(url: string): string {
  const { protocol, href } = new URL(url);
  if (protocol !== "https:" && protocol !== "http:") throw new Error("The server names a page that is none of the web");
  return href;
}
