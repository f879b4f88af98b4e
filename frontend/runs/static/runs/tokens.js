// @ts-check
/**
 * Arrow keys and clicks choose a position of the trace; its alternatives come from the server, and the
 * address keeps up, so that the link of what is on the screen can be shared.
 */
import { nextNarrow, walk } from "../shell/positions.js";

/** @param {HTMLElement} plate */
export function mount(plate) {
  const tokens = /** @type {HTMLAnchorElement[]} */ ([...plate.querySelectorAll("a[data-position]")]);
  const aside = /** @type {HTMLElement | null} */ (plate.querySelector("#alternatives"));
  if (!tokens.length || !aside) return;
  const narrow = tokens.flatMap((token, index) => (token.dataset.narrow === undefined ? [] : [index]));
  let current = Math.max(
    tokens.findIndex((token) => token.getAttribute("aria-current") === "true"),
    0,
  );
  let latest = new AbortController();
  // One tab stop for all tokens; without this script each is a link of its own.
  tokens.forEach((token, index) => token.setAttribute("tabindex", index === current ? "0" : "-1"));

  /** @param {number} index */
  const choose = (index) => {
    tokens[current].removeAttribute("aria-current");
    tokens[current].setAttribute("tabindex", "-1");
    current = index;
    const token = tokens[index];
    token.setAttribute("aria-current", "true");
    token.setAttribute("tabindex", "0");
    token.focus();
    history.replaceState(null, "", token.href);
    latest.abort();
    latest = new AbortController();
    void show(`${token.href}&part=alternatives`, aside, latest.signal);
  };

  plate.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const token = /** @type {HTMLElement} */ (event.target).closest("a[data-position]");
    const index = token ? tokens.indexOf(/** @type {HTMLAnchorElement} */ (token)) : -1;
    if (index < 0) return;
    event.preventDefault();
    choose(index);
  });
  plate.addEventListener("keydown", (event) => {
    if (!(/** @type {HTMLElement} */ (event.target).closest("a[data-position]"))) return;
    const next = walk(event.key, current, tokens.length);
    if (next === null) return;
    event.preventDefault();
    choose(next);
  });
  document.addEventListener("keydown", (event) => {
    if ((event.key !== "]" && event.key !== "[") || /** @type {HTMLElement} */ (event.target).closest("input, textarea, select")) return;
    const next = nextNarrow(narrow, current, event.key === "]" ? 1 : -1);
    if (next !== null) choose(next);
  });
}

/** @param {string} url @param {HTMLElement} aside @param {AbortSignal} signal */
export async function show(url, aside, signal) {
  try {
    const answer = await fetch(url, { signal, headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return location.assign(url.replace(/&part=\w+/, ""));
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!signal.aborted) aside.replaceChildren(...parsed.body.childNodes);
  } catch (problem) {
    if (!signal.aborted) throw problem;
  }
}

document.querySelectorAll("[data-trace]").forEach((plate) => mount(/** @type {HTMLElement} */ (plate)));
