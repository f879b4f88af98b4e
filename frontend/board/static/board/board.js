// @ts-check
/** The board: `j` and `k` go through its rows, Enter opens one, and the tab's title counts what waits. */

/**
 * The row to go to, or -1 where there is none.
 * @param {string} key
 * @param {number} at the row that has the focus, -1 for none
 * @param {number} n
 */
export function step(key, at, n) {
  if (n === 0) return -1;
  if (key === "j") return Math.min(at + 1, n - 1);
  if (key === "k") return at < 0 ? n - 1 : Math.max(at - 1, 0);
  return -1;
}

/** @param {Document} page */
export function mount(page) {
  page.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
    const rows = /** @type {HTMLElement[]} */ ([...page.querySelectorAll("[data-row]")]);
    const to = step(event.key, rows.indexOf(/** @type {HTMLElement} */ (page.activeElement)), rows.length);
    if (to >= 0) rows[to].focus();
  });
  page.addEventListener("htmx:afterSettle", () => {
    const n = Number(page.getElementById("bands")?.dataset.waiting ?? 0);
    page.title = `${n ? `(${n}) ` : ""}Board · Evalboard`;
  });
}

if (typeof document !== "undefined") mount(document);
