// A form for the arguments of a tool, of a prompt or of an answer: a labelled field for each property of a schema. The
// value is one object, which the fields and the JSON beside them both change.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { Button } from "../kit/button.tsx";
import { count } from "../kit/format.ts";
import { inertString } from "../kit/inert.ts";
import { InertText } from "../kit/inert-text.tsx";
import { isObject, type Choice, type Field } from "./schema.ts";

export type Values = Readonly<Record<string, unknown>>;

/** Values that can stand in a field, as the server proposes them. */
export type Suggest = (name: string, text: string) => Promise<readonly string[]>;

export interface FormProps {
  readonly fields: readonly Field[];
  readonly values: Values;
  readonly onChange: (values: Values) => void;
  /** By path, as `problemsIn` gives them. */
  readonly problems: Readonly<Record<string, string>>;
  readonly path?: string;
  /** Whether fields have the titles of the schema for names, for what a person is asked. */
  readonly byTitle?: boolean;
  readonly suggest?: Suggest | undefined;
}

export function Form({ fields, values, onChange, problems, path = "", byTitle, suggest }: FormProps): JSX.Element {
  return (
    <div class="form">
      {fields.map((field) => (
        <FieldRow
          key={field.name}
          field={field}
          value={values[field.name]}
          path={`${path}${field.name}`}
          problems={problems}
          byTitle={byTitle === true}
          suggest={suggest}
          onChange={(value) => onChange(withValue(values, field.name, value))}
        />
      ))}
    </div>
  );
}

/** Says that the form has not all fields, where what is left out is edited as JSON. */
export function Rest({
  fields,
  rest,
}: {
  readonly fields: readonly Field[];
  readonly rest: number;
}): JSX.Element | null {
  if (rest <= 0) return null;
  return (
    <p class="soft">
      The form has {count(fields.length)} of {count(fields.length + rest)} fields. The rest is edited as JSON.
    </p>
  );
}

/** Moves to the first field of a form with something wrong, once the form shows that. */
export function focusProblem(form: HTMLElement): void {
  requestAnimationFrame(() => {
    form.querySelector(".problem")?.closest(".field")?.querySelector<HTMLElement>("input, select, textarea")?.focus();
  });
}

/** Undefined removes the value. */
function withValue(values: Values, name: string, value: unknown): Values {
  const { [name]: _old, ...others } = values;
  if (value === undefined) return others;
  return Object.hasOwn(values, name) ? { ...values, [name]: value } : { ...others, [name]: value };
}

interface RowProps {
  readonly field: Field;
  readonly value: unknown;
  readonly path: string;
  readonly problems: Readonly<Record<string, string>>;
  readonly byTitle: boolean;
  readonly suggest: Suggest | undefined;
  readonly onChange: (value: unknown) => void;
}

/** What an element of a field needs: its id, and what describes it. */
interface Marks {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": "true" | undefined;
  readonly "aria-required": "true" | undefined;
}

function FieldRow(props: RowProps): JSX.Element {
  const { field, value, path, problems, byTitle, onChange } = props;
  const id = useId();
  const problem = problems[path];
  const { title, name, description, required } = field;
  const label = byTitle && title !== undefined ? title : name;
  const about = [byTitle || title === undefined || title === name ? undefined : title, description]
    .filter((text) => text !== undefined)
    .join(": ");
  const describedBy = [about === "" ? "" : `${id}-about`, problem === undefined ? "" : `${id}-problem`]
    .filter(Boolean)
    .join(" ");
  const marks: Marks = {
    id,
    "aria-describedby": describedBy === "" ? undefined : describedBy,
    "aria-invalid": problem === undefined ? undefined : "true",
    "aria-required": required ? "true" : undefined,
  };
  const notes = (
    <>
      {about === "" ? null : (
        <p class="about" id={`${id}-about`}>
          <InertText text={about} max={600} />
        </p>
      )}
      {problem === undefined ? null : (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </>
  );
  const state = (
    <>
      {required ? <span class="faint">required</span> : null}
      {!required && value !== undefined ? (
        <button type="button" class="link faint" aria-describedby={`${id}-label`} onClick={() => onChange(undefined)}>
          leave out
        </button>
      ) : null}
    </>
  );
  if (field.type === "object" || field.type === "choices") {
    return (
      <fieldset class="field group" aria-describedby={marks["aria-describedby"]}>
        <legend id={`${id}-label`}>
          <InertText text={label} max={200} /> {state}
        </legend>
        {notes}
        {field.type === "choices" ? (
          <Choices choices={field.choices} value={value} onChange={onChange} />
        ) : (
          <Form
            fields={field.fields}
            values={isObject(value) ? value : {}}
            problems={problems}
            path={`${path}.`}
            byTitle={byTitle}
            onChange={(inner) => onChange(Object.keys(inner).length === 0 && !required ? undefined : inner)}
          />
        )}
      </fieldset>
    );
  }
  const isCheckbox = field.type === "boolean";
  return (
    <div class={isCheckbox ? "field check" : "field"}>
      <div class="field-head">
        {isCheckbox ? (
          <input
            {...marks}
            type="checkbox"
            checked={value === true}
            onChange={(event) => onChange(event.currentTarget.checked)}
          />
        ) : null}
        <label for={id} id={`${id}-label`}>
          <InertText text={label} max={200} />
        </label>
        {state}
      </div>
      {isCheckbox ? null : <Input {...props} marks={marks} />}
      {notes}
    </div>
  );
}

function Input(props: RowProps & { readonly marks: Marks }): ComponentChildren {
  const { field, value, marks, onChange, suggest } = props;
  switch (field.type) {
    case "text":
      return <TextInput field={field} value={value} marks={marks} onChange={onChange} suggest={suggest} />;
    case "number":
      return (
        <NumberInput
          value={value}
          onChange={onChange}
          extra={{ ...marks, placeholder: placeholderOf(field), inputMode: field.isInteger ? "numeric" : "decimal" }}
        />
      );
    case "choice":
      return <ChoiceInput field={field} value={value} marks={marks} onChange={onChange} />;
    case "list":
      return <List item={field.item} value={value} marks={marks} onChange={onChange} />;
    default:
      return <JsonInput value={value} marks={marks} onChange={onChange} rows={3} />;
  }
}

/** Keeps what is written, such as `1.` or `1.0`, while the value is a number. */
function NumberInput(props: {
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly extra: Partial<Marks> & { readonly placeholder: string; readonly inputMode?: "numeric" | "decimal" };
}): JSX.Element {
  const [draft, setDraft] = useState("");
  const { value, onChange, extra } = props;
  const isCurrent = draft !== "" && numberIn(draft) === value;
  return (
    <input
      {...extra}
      type="text"
      autocomplete="off"
      value={isCurrent ? draft : value === undefined ? "" : shown(value)}
      onInput={(event) => {
        setDraft(event.currentTarget.value);
        onChange(numberIn(event.currentTarget.value));
      }}
    />
  );
}

interface InputProps {
  readonly value: unknown;
  readonly marks: Marks;
  readonly onChange: (value: unknown) => void;
}

function TextInput(
  props: InputProps & { readonly field: Field & { readonly type: "text" }; readonly suggest: Suggest | undefined },
): JSX.Element {
  const { field, value, marks, onChange, suggest } = props;
  const [suggested, setSuggested] = useState<readonly string[]>([]);
  const text = value === undefined ? "" : shown(value);
  useEffect(() => {
    if (suggest === undefined) return undefined;
    let isWanted = true;
    const timer = setTimeout(() => {
      suggest(field.name, text).then(
        (found) => isWanted && setSuggested(found),
        () => undefined,
      );
    }, 150);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [text, suggest]);
  const change = (given: string): void => onChange(given === "" && !field.required ? undefined : given);
  if (field.input === "lines") {
    return (
      <textarea
        {...marks}
        rows={Math.min(12, Math.max(3, text.split("\n").length))}
        value={text}
        placeholder={placeholderOf(field)}
        onInput={(event) => change(event.currentTarget.value)}
      />
    );
  }
  return (
    <>
      <input
        {...marks}
        type={field.input}
        autocomplete="off"
        spellcheck={false}
        value={text}
        placeholder={placeholderOf(field)}
        list={suggested.length > 0 ? `${marks.id}-list` : undefined}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {suggested.length > 0 ? (
        <datalist id={`${marks.id}-list`}>
          {suggested.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      ) : null}
    </>
  );
}

function ChoiceInput(props: InputProps & { readonly field: Field & { readonly type: "choice" } }): JSX.Element {
  const { field, value, marks, onChange } = props;
  const chosen = field.choices.findIndex((choice) => choice.value === value);
  return (
    <select
      {...marks}
      value={String(chosen)}
      onChange={(event) => onChange(field.choices[Number(event.currentTarget.value)]?.value)}
    >
      <option value="-1">{field.required ? "Choose…" : "–"}</option>
      {field.choices.map(({ label }, at) => (
        <option key={at} value={String(at)}>
          {inertString(label.slice(0, 200))}
        </option>
      ))}
    </select>
  );
}

function Choices(props: {
  readonly choices: readonly Choice[];
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}): JSX.Element {
  const chosen: readonly unknown[] = Array.isArray(props.value) ? props.value : [];
  return (
    <div class="row wrap">
      {props.choices.map(({ value, label }) => (
        <label key={label} class="row choice">
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={(event) =>
              props.onChange(
                event.currentTarget.checked ? [...chosen, value] : chosen.filter((other) => other !== value),
              )
            }
          />
          <InertText text={label} max={200} />
        </label>
      ))}
    </div>
  );
}

/** Values, one below the other. */
function List(props: InputProps & { readonly item: "text" | "number" }): JSX.Element {
  const { item, value, marks, onChange } = props;
  const of = { "aria-describedby": `${marks.id}-label` };
  const values: readonly unknown[] = Array.isArray(value) ? value : [];
  const set = (next: readonly unknown[]): void => onChange(next.length === 0 ? undefined : next);
  return (
    <div class="list">
      {[...values, undefined].map((one, at) => {
        const isNew = at === values.length;
        const change = (next: unknown): void => {
          if (!isNew) set(values.with(at, next ?? ""));
          else if (next !== undefined && next !== "") set([...values, next]);
        };
        const extra = {
          ...(at === 0 ? marks : { ...of, "aria-label": isNew ? "Add a value" : `Value ${at + 1}` }),
          placeholder: isNew ? "add a value" : "",
        };
        return (
          <div key={at} class="row">
            {item === "number" ? (
              <NumberInput value={one} onChange={change} extra={{ ...extra, inputMode: "decimal" }} />
            ) : (
              <input
                {...extra}
                type="text"
                autocomplete="off"
                value={one === undefined ? "" : shown(one)}
                onInput={(event) => change(event.currentTarget.value)}
              />
            )}
            {isNew ? null : (
              <Button small label={`Remove value ${at + 1}`} onClick={() => set(values.toSpliced(at, 1))}>
                ×
              </Button>
            )}
          </div>
        );
      })}
    </div>
  );
}

const NO_MARKS = { "aria-describedby": undefined, "aria-invalid": undefined, "aria-required": undefined } as const;

/** All values of a form as JSON, also those that have no field. */
export function ValuesAsJson(props: {
  readonly id: string;
  readonly label: string;
  readonly rows: number;
  readonly values: Values;
  readonly onProblem: (problem: string | undefined) => void;
  readonly onChange: (values: Values) => void;
}): JSX.Element {
  const { id, label, rows, values, onProblem, onChange } = props;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <JsonInput
        value={values}
        marks={{ ...NO_MARKS, id }}
        rows={rows}
        onProblem={onProblem}
        onChange={(value) => {
          if (value === undefined || (isObject(value) && !Array.isArray(value))) onChange(value ?? {});
        }}
      />
    </div>
  );
}

/** JSON of any value. What is not valid stays in the field, and the value is as it was. */
function JsonInput(
  props: InputProps & { readonly rows: number; readonly onProblem?: (problem: string | undefined) => void },
): JSX.Element {
  const { value, marks, onChange, rows, onProblem } = props;
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const written = value === undefined ? "" : JSON.stringify(value, undefined, 2);
  // A change from elsewhere replaces the draft, unless it says the same.
  useEffect(() => {
    if (draft !== undefined && !isSameJson(draft, value)) {
      setDraft(undefined);
      setProblem(undefined);
      onProblem?.(undefined);
    }
  }, [written]);
  const text = draft ?? written;
  const read = (given: string): void => {
    setDraft(given);
    let reason: string | undefined;
    try {
      const parsed: unknown = given.trim() === "" ? undefined : JSON.parse(given);
      if (JSON.stringify(parsed) !== JSON.stringify(value)) onChange(parsed);
    } catch (error) {
      reason = `This is not valid JSON yet: ${error instanceof Error ? error.message : ""}`;
    }
    setProblem(reason);
    onProblem?.(reason);
  };
  return (
    <>
      <textarea
        {...marks}
        class="mono"
        spellcheck={false}
        aria-invalid={problem === undefined ? marks["aria-invalid"] : "true"}
        rows={Math.min(20, Math.max(rows, text.split("\n").length))}
        value={text}
        onInput={(event) => read(event.currentTarget.value)}
      />
      {problem === undefined ? null : <p class="problem">{problem}</p>}
    </>
  );
}

function isSameJson(text: string, value: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value);
  } catch {
    return false;
  }
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A number; what is none stays a text, so that the form can say so. */
function numberIn(text: string): number | string | undefined {
  if (text.trim() === "") return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function placeholderOf({ schema }: Field): string {
  const { examples } = schema;
  const first: unknown = Array.isArray(examples) ? examples[0] : undefined;
  return typeof first === "string" || typeof first === "number"
    ? `such as ${inertString(String(first).slice(0, 80))}`
    : "";
}
