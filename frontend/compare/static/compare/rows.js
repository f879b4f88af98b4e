// @ts-check
/** Keys of a list of cases: `j` and `k` move from row to row, Enter opens as any link does, `x` shows whole answers, and
 * so does a button in the row where there may be no keys. */

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
    const at = rows.indexOf(/** @type {HTMLAnchorElement} */ (page.activeElement));
    const to = event.key === "x" && rows.length ? Math.max(at, 0) : next(event.key, at, rows.length);
    if (to === null) return;
    event.preventDefault();
    rows[to].focus();
    rows[to].closest("tr")?.scrollIntoView({ block: "nearest" });
    if (event.key === "x") toggleAnswers(rows[to]);
  });
  page.addEventListener("click", (event) => {
    const row = /** @type {HTMLElement} */ (event.target).closest("[data-whole]")?.closest("tr");
    const link = /** @type {HTMLAnchorElement | null | undefined} */ (row?.querySelector("th a"));
    if (link) toggleAnswers(link);
  });
}

/**
 * Show the whole answers of a row in place of their excerpts, or the excerpts again.
 * @param {HTMLAnchorElement} link of the row, to the page of its pair
 */
async function toggleAnswers(link) {
  const cell = link.closest("tr")?.querySelector(".answers");
  if (!cell || cell.hasAttribute("aria-busy")) return;
  const opened = cell.querySelector("[data-answers]");
  show(cell, !opened);
  if (opened) return opened.remove();
  const address = new URL(link.href);
  address.searchParams.set("part", "answers");
  cell.setAttribute("aria-busy", "true");
  const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  cell.removeAttribute("aria-busy");
  if (!answer?.ok) return show(cell, false);
  cell.insertAdjacentHTML("beforeend", await answer.text());
}

/** @param {Element} cell @param {boolean} isWhole */
function show(cell, isWhole) {
  cell.classList.toggle("opened", isWhole);
  cell.querySelector("[data-whole]")?.setAttribute("aria-expanded", String(isWhole));
}

if (typeof document !== "undefined") mount(document);
