// A question of a server during a call: a form, or a page to visit. The page is opened only when a person clicks it.

import type { JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { Question } from "../../../src/console/types.ts";
import { Button } from "../kit/button.tsx";
import { CopyButton } from "../kit/copy.tsx";
import { Dialog } from "../kit/dialog.tsx";
import { InertText } from "../kit/inert-text.tsx";
import { answer } from "./call.ts";
import { focusProblem, Form, Rest, ValuesAsJson, type Values } from "./form.tsx";
import { defaultsOf, fieldsOf, problemsIn, restOf } from "./schema.ts";

export function QuestionDialog({ question }: { readonly question: Question }): JSX.Element {
  const { params, server } = question;
  const fields = useMemo(() => fieldsOf(params["requestedSchema"]) ?? [], [question.id]);
  const [values, setValues] = useState<Values>(() => defaultsOf(fields));
  const rest = useMemo(() => restOf(params["requestedSchema"], fields), [fields]);
  const [isTried, setIsTried] = useState(false);
  const [jsonProblem, setJsonProblem] = useState<string | undefined>(undefined);
  const jsonId = useId();
  const problems = problemsIn(fields, values);
  const isUrl = params["mode"] === "url";
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (Object.keys(problems).length > 0 || jsonProblem !== undefined) {
      setIsTried(true);
      focusProblem(event.currentTarget as HTMLFormElement);
    } else void answer(question, "accept", isUrl ? undefined : values);
  };
  return (
    <Dialog label={`${server ?? "A server"} asks`} heading onClose={() => void answer(question, "cancel")}>
      <form class="stack" noValidate onSubmit={onSubmit}>
        <p class="question-text">
          <InertText text={typeof params["message"] === "string" ? params["message"] : "It asks for an answer."} />
        </p>
        {isUrl ? (
          <Visit url={String(params["url"])} />
        ) : (
          <>
            <Rest fields={fields} rest={rest} />
            <Form fields={fields} values={values} onChange={setValues} problems={isTried ? problems : {}} byTitle />
          </>
        )}
        {isUrl || rest <= 0 ? null : (
          <ValuesAsJson
            id={jsonId}
            label="Answer as JSON"
            rows={8}
            values={values}
            onProblem={setJsonProblem}
            onChange={setValues}
          />
        )}
        <div class="row wrap">
          <Button kind="go" submit>
            Accept
          </Button>
          <Button onClick={() => answer(question, "decline")}>Decline</Button>
          <Button onClick={() => answer(question, "cancel")}>Cancel</Button>
        </div>
        <p class="faint">Do not give passwords or keys that the server should not have.</p>
      </form>
    </Dialog>
  );
}

function Visit({ url }: { readonly url: string }): JSX.Element {
  const isWeb = /^https?:\/\//i.test(url) && URL.canParse(url);
  return (
    <div class="stack">
      <p>The server wants you to visit a page, in another tab. Look at its address first:</p>
      <pre class="block">
        <InertText text={url} max={2000} />
      </pre>
      {isWeb ? (
        <p>
          <b>{new URL(url).host}</b>
        </p>
      ) : (
        <p class="problem">This is not an address of a page (http or https), so it is not opened.</p>
      )}
      <div class="row">
        {isWeb ? (
          <Button
            onClick={() => {
              window.open(url, "_blank", "noopener,noreferrer");
            }}
          >
            Open the page
          </Button>
        ) : null}
        <CopyButton text={url}>Copy the address</CopyButton>
      </div>
    </div>
  );
}
