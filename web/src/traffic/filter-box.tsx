// The searchbox Filter: its text is in the address, keys and values are suggested, and an error says where it is.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { FILTER_KEYS } from "../../../src/console/filter.ts";
import { inertString } from "../kit/inert.ts";
import { go, hrefOf, place } from "../router.ts";
import { overview } from "../state.ts";
import { filterError } from "./store.ts";

interface Suggestion {
  readonly text: string;
  readonly about: string;
}

const MAX_SUGGESTIONS = 9;

export function FilterBox(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const wanted = place.value.query.get("filter") ?? "";
  const [text, setText] = useState(wanted);
  const [found, setFound] = useState<readonly Suggestion[]>([]);
  const [chosen, setChosen] = useState(-1);
  // The address of now, not of the render: this runs after it, and more may have been typed meanwhile.
  useEffect(() => setText(place.peek().query.get("filter") ?? ""), [wanted]);
  const use = (value: string): void => {
    setText(value);
    const { page, path } = place.value;
    go(hrefOf(page, path, { filter: value }), { replace: true });
  };
  const suggest = (): void => {
    const element = input.current;
    if (element === null) return;
    setFound(suggestions(element.value.slice(0, element.selectionStart ?? 0)));
    setChosen(-1);
  };
  const take = (suggestion: Suggestion): void => {
    const element = input.current;
    if (element === null) return;
    const at = element.selectionStart ?? element.value.length;
    const before = element.value.slice(0, at).replace(/[^\s]*$/, suggestion.text);
    const isWhole = !suggestion.text.endsWith(":");
    use(before + (isWhole ? " " : "") + element.value.slice(at).trimStart());
    element.focus();
    // At once: the choice among them must not be lost to a timer that comes late.
    setFound(isWhole ? [] : suggestions(before));
    setChosen(-1);
  };
  const onKey = (event: KeyboardEvent): void => {
    const picked = found[chosen];
    if (event.key === "ArrowDown" && found.length > 0) setChosen((chosen + 1) % found.length);
    else if (event.key === "ArrowUp" && found.length > 0) setChosen((chosen - 1 + found.length) % found.length);
    else if ((event.key === "Enter" || event.key === "Tab") && picked !== undefined) take(picked);
    else if (event.key === "Enter") setFound([]);
    else if (event.key === "Escape" && picked !== undefined) setFound([]);
    else if (event.key === "Escape") input.current?.blur();
    else return;
    if (event.key !== "Tab" || picked !== undefined) event.preventDefault();
    event.stopPropagation();
  };
  const error = filterError.value;
  return (
    <div class="filter grow">
      <input
        ref={input}
        id="filter"
        type="search"
        class="mono"
        aria-label="Filter"
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : "filter-error"}
        aria-controls="filter-list"
        placeholder="server:github status:error dur:>500ms"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          use(event.currentTarget.value);
          suggest();
        }}
        onFocus={suggest}
        onClick={suggest}
        onBlur={() => setFound([])}
        onKeyDown={onKey}
      />
      <div class="filter-under">
        <ul id="filter-list" class="suggestions" role="listbox" aria-label="Suggestions" hidden={found.length === 0}>
          {found.map((suggestion, index) => (
            <li
              key={suggestion.text}
              role="option"
              aria-selected={index === chosen}
              // Before the field loses the focus.
              onMouseDown={(event) => {
                event.preventDefault();
                take(suggestion);
              }}
            >
              <span class="mono grow">{inertString(suggestion.text)}</span>
              <span class="faint">{suggestion.about}</span>
            </li>
          ))}
        </ul>
        {error === undefined ? null : (
          <div id="filter-error" class="filter-error bad" role="alert">
            {error.message}
          </div>
        )}
      </div>
    </div>
  );
}

/** What may stand where the word before the caret is. */
function suggestions(before: string): readonly Suggestion[] {
  const [word = ""] = /[^\s]*$/.exec(before) ?? [];
  const [, minus = "", key = "", value] = /^(-?)([A-Za-z]*)(?::(.*))?$/.exec(word) ?? [undefined, "", "\0"];
  if (value === undefined) {
    const keys = FILTER_KEYS.filter((known) => known.key.startsWith(key.toLowerCase()));
    return keys.slice(0, MAX_SUGGESTIONS).map((known) => ({ text: `${minus}${known.key}:`, about: known.about }));
  }
  const values = valuesOf(key.toLowerCase()).filter((one) => one.toLowerCase().startsWith(value.toLowerCase()));
  return values
    .filter((one) => one !== value)
    .slice(0, MAX_SUGGESTIONS)
    .map((one) => ({ text: `${minus}${key}:${/[\s",]/.test(one) ? JSON.stringify(one) : one}`, about: "" }));
}

function valuesOf(key: string): readonly string[] {
  const { servers = [], clients = [] } = overview.value ?? {};
  if (key === "server") return servers.map(({ name }) => name);
  if (key === "client") return [...new Set(clients.map(({ name }) => name))];
  if (key === "revision") return [...new Set(clients.map(({ revision }) => revision))];
  const known = FILTER_KEYS.find((one) => one.key === key);
  return known?.values ?? (known === undefined ? [] : [known.example.replace(/^-?\w+:/, "")]);
}
