// @ts-check
/**
 * The report of two logs: `p` and `n` walk the listed samples whose answers stand below, the search narrows the list.
 * Without it every sample's answers stand below the list, and the links of the list lead to them.
 */

/**
 * The place that a step leads to among n, or null where it leads nowhere.
 * @param {number} at the current place, -1 for none @param {number} n @param {number} step @returns {number | null}
 */
export function walk(at, n, step) {
  if (!n) return null;
  if (at < 0) return step > 0 ? 0 : n - 1;
  const to = at + step;
  return to < 0 || to >= n ? null : to;
}

/** @param {Document} page */
export function mount(page) {
  const rows = /** @type {HTMLTableRowElement[]} */ ([...page.querySelectorAll(".log-cases tbody tr")]);
  const box = /** @type {HTMLElement | null} */ (page.querySelector(".samples"));
  const none = /** @type {HTMLElement | null} */ (page.querySelector(".none-listed"));
  /** @type {Map<string, HTMLTableRowElement>} */
  const rowOf = new Map();
  for (const row of rows) {
    const link = row.querySelector("a");
    if (link) rowOf.set(link.hash, row);
  }

  /** @param {string} hash @param {boolean} isMoved whether the page goes there */
  const show = (hash, isMoved) => {
    const chosen = rowOf.has(hash) ? page.querySelector(hash) : null;
    if (!chosen) return;
    page.querySelectorAll(".log-case.shown").forEach((other) => other.classList.remove("shown"));
    chosen.classList.add("shown");
    page.querySelectorAll(".log-cases .selected").forEach((row) => row.classList.remove("selected"));
    const row = /** @type {HTMLTableRowElement} */ (rowOf.get(hash));
    row.classList.add("selected");
    if (box) box.scrollTop = Math.min(box.scrollTop, row.offsetTop - 40);
    if (box && row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight)
      box.scrollTop = row.offsetTop + row.offsetHeight - box.clientHeight;
    if (isMoved) chosen.scrollIntoView({ block: "nearest" });
  };

  /** @param {number} step */
  const go = (step) => {
    const links = [...rowOf].filter(([, row]) => row.checkVisibility()).map(([hash]) => hash);
    const current = page.querySelector(".log-case.shown");
    const to = walk(links.indexOf(`#${current?.id}`), links.length, step);
    if (to === null) return;
    history.replaceState(null, "", links[to]);
    show(links[to], true);
  };

  const search = /** @type {HTMLInputElement | null} */ (page.querySelector("#q"));
  /** @type {Map<HTMLTableRowElement, string>} */
  const texts = new Map();
  search?.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let n = 0;
    for (const row of rows) {
      let text = texts.get(row);
      if (text === undefined) {
        const link = row.querySelector("a");
        text = `${row.textContent} ${(link && page.querySelector(link.hash)?.textContent) ?? ""}`.toLowerCase();
        texts.set(row, text);
      }
      row.hidden = wanted !== "" && !text.includes(wanted);
      n += Number(row.checkVisibility());
    }
    if (none) none.hidden = n > 0;
  });
  page.querySelectorAll(".lists input").forEach((input) =>
    input.addEventListener("change", () => {
      if (box) box.scrollTop = 0;
      if (none) none.hidden = rows.some((row) => row.checkVisibility());
    }),
  );

  page.addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("[data-step]");
    if (button) go(Number(/** @type {HTMLElement} */ (button).dataset.step));
  });
  page.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input:not([type=radio]), textarea, select")) return;
    if (event.key === "n" || event.key === "p") go(event.key === "n" ? 1 : -1);
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
    }
  });
  addEventListener("hashchange", () => show(location.hash, true));
  const first = page.querySelector(".log-case.shown");
  if (first) show(rowOf.has(location.hash) ? location.hash : `#${first.id}`, false);
}

if (typeof document !== "undefined") mount(document);
