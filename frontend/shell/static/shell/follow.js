// @ts-check
/** A part that is sent anew by itself leaves what the reader looks at where it was, also when rows came above it. */

const BY_ITSELF = '[hx-trigger^="every"]';

/**
 * The first element with an id that can be seen, of a part that begins above the window; null of any other part.
 * @param {Element} part
 * @returns {Element | null}
 */
export function firstSeen(part) {
  if (part.getBoundingClientRect().top >= 0) return null;
  return [...part.querySelectorAll("[id]")].find((each) => each.getBoundingClientRect().bottom > 0) ?? null;
}

/** @param {Document} page */
export function mount(page) {
  /** @type {{ id: string, top: number } | null} */
  let seen = null;
  page.addEventListener("htmx:beforeSwap", (event) => {
    const part = /** @type {CustomEvent} */ (event).detail.target;
    const row = part.matches(BY_ITSELF) ? firstSeen(part) : null;
    seen = row && { id: row.id, top: row.getBoundingClientRect().top };
  });
  page.addEventListener("htmx:afterSwap", () => {
    const row = seen && page.getElementById(seen.id);
    if (row && seen) window.scrollBy({ top: row.getBoundingClientRect().top - seen.top, behavior: "instant" });
    seen = null;
  });
}
