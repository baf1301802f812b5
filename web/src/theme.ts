// Light or dark: as the system says, or as the switch says, which this browser remembers.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "catenary-theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

const theme = signal<Theme>("system");

export function applyTheme(): void {
  try {
    const kept = localStorage.getItem(KEY);
    theme.value = THEMES.find((one) => one === kept) ?? "system";
  } catch {
    // Storage may be forbidden.
  }
  theme.subscribe((value) => {
    if (value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = value;
  });
}

/** Switches between light and dark. The theme of the system is left as soon as it differs from what is wanted. */
export function switchTheme(): void {
  const isDark = theme.value === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
  const wanted = isDark ? "light" : "dark";
  const isSystem = matchMedia(`(prefers-color-scheme: ${wanted})`).matches;
  theme.value = isSystem ? "system" : wanted;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // Then it is for this page only.
  }
}
