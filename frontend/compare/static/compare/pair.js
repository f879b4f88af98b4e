// @ts-check
/**
 * Two traces side by side: clicks, arrow keys, the keys `[` and `]` and marks of the charts choose a position on both
 * sides at once. Its alternatives come from the server, and the address keeps up, so that it can be shared.
 */
import { walk } from "../shell/positions.js";
import { show } from "../runs/tokens.js";

/** @param {HTMLElement} plate */
export function mount(plate) {
  const tokens = /** @type {HTMLAnchorElement[]} */ ([...plate.querySelectorAll("a[data-position]")]);
  const aside = /** @type {HTMLElement | null} */ (plate.querySelector("#alternatives"));
  if (!tokens.length || !aside) return;
  const keys = [...new Set(tokens.map(keyOf))].sort((one, other) => one - other);
  /** @type {Map<number, HTMLAnchorElement[]>} */
  const at = new Map(keys.map((key) => [key, []]));
  tokens.forEach((token) => at.get(keyOf(token))?.push(token));
  let current = keyOf(tokens.find((token) => token.getAttribute("aria-current")) ?? tokens[0]);
  let latest = new AbortController();
  // One tab stop for all tokens; without this script each is a link of its own.
  tokens.forEach((token) => token.setAttribute("tabindex", "-1"));
  at.get(current)?.[0].setAttribute("tabindex", "0");

  /** @param {number} key @param {HTMLElement | null} from @returns {boolean} whether the page shows that position */
  const choose = (key, from = null) => {
    const chosen = at.get(key);
    if (!chosen) return false;
    at.get(current)?.forEach((token) => {
      token.removeAttribute("aria-current");
      token.setAttribute("tabindex", "-1");
    });
    current = key;
    chosen.forEach((token) => token.setAttribute("aria-current", "true"));
    const side = from?.closest(".candidate") ? chosen.at(-1) : chosen[0];
    const focused = side ?? chosen[0];
    focused.setAttribute("tabindex", "0");
    focused.focus();
    history.replaceState(null, "", focused.href);
    latest.abort();
    latest = new AbortController();
    void show(`${focused.href}&part=at`, aside, latest.signal);
    return true;
  };

  plate.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const link = /** @type {HTMLElement | null} */ (target.closest("a[data-position], a[data-goto]"));
    if (!link) return;
    if (choose(Number(link.dataset.position ?? link.dataset.goto), link)) event.preventDefault();
  });
  plate.addEventListener("keydown", (event) => {
    const token = /** @type {HTMLElement} */ (event.target).closest("a[data-position]");
    if (!token) return;
    const next = walk(event.key, keys.indexOf(current), keys.length);
    if (next === null) return;
    event.preventDefault();
    choose(keys[next], /** @type {HTMLElement} */ (token));
  });
  document.addEventListener("pick", (event) => {
    const key = /** @type {CustomEvent<number>} */ (event).detail;
    if (choose(key)) at.get(key)?.[0].scrollIntoView({ block: "center" });
    else location.assign(tokens[0].href.replace(/([?&]at=)\d+/, `$1${key}`));
  });
}

/** @param {HTMLElement} token */
function keyOf(token) {
  return Number(token.dataset.position);
}

document.querySelectorAll("[data-pair]").forEach((plate) => mount(/** @type {HTMLElement} */ (plate)));
