// @ts-check
/** Keys of a list of cases: `j` and `k` move from row to row, Enter opens as any link does, `x` shows whole answers. */

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
}

/**
 * Show the whole answers of a row in place of their excerpts, or the excerpts again.
 * @param {HTMLAnchorElement} link of the row, to the page of its pair
 */
async function toggleAnswers(link) {
  const cell = link.closest("tr")?.querySelector(".answers");
  if (!cell || cell.hasAttribute("aria-busy")) return;
  const opened = cell.querySelector("[data-answers]");
  cell.classList.toggle("opened", !opened);
  if (opened) return opened.remove();
  const address = new URL(link.href);
  address.searchParams.set("part", "answers");
  cell.setAttribute("aria-busy", "true");
  const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  cell.removeAttribute("aria-busy");
  if (!answer?.ok) return cell.classList.remove("opened");
  cell.insertAdjacentHTML("beforeend", await answer.text());
}

if (typeof document !== "undefined") mount(document);
