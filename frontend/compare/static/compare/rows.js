// @ts-check
/** Keys of a list of cases: `j` and `k` move from row to row, Enter opens as any link does. */

/**
 * Where a key leads from a row, or null where it leads nowhere.
 * @param {string} key @param {number} at the row that has the focus, -1 for none @param {number} n rows
 * @returns {number | null}
 */
export function next(key, at, n) {
  if (!n || (key !== "j" && key !== "k")) return null;
  if (at < 0) return key === "j" ? 0 : n - 1;
  return Math.min(Math.max(at + (key === "j" ? 1 : -1), 0), n - 1);
}

/** @param {Document} page */
export function mount(page) {
  page.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
    const rows = /** @type {HTMLAnchorElement[]} */ ([...page.querySelectorAll("[data-rows] tbody th a")]);
    const to = next(event.key, rows.indexOf(/** @type {HTMLAnchorElement} */ (page.activeElement)), rows.length);
    if (to === null) return;
    event.preventDefault();
    rows[to].focus();
    rows[to].closest("tr")?.scrollIntoView({ block: "nearest" });
  });
}

if (typeof document !== "undefined") mount(document);
