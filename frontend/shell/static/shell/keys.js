// @ts-check
/** Keys of a page: `?` help, `/` search, and links that name a key of their own by `data-key`. */

/**
 * What a key does here, or null where it belongs to the browser or to a field.
 * @param {{key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean}} event
 * @param {boolean} isTyping
 * @returns {"help" | "search" | "link" | null}
 */
export function meaning(event, isTyping) {
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.key === "?") return "help";
  if (event.key === "/") return "search";
  return /^[a-z[\]]$/.test(event.key) ? "link" : null;
}

/** @param {Document} page */
export function mount(page) {
  const help = /** @type {HTMLDialogElement | null} */ (page.getElementById("help"));
  page.querySelector("[data-open-help]")?.addEventListener("click", () => help?.showModal());
  page.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const isTyping = target.closest("input, textarea, select, [contenteditable]") !== null || Boolean(help?.open);
    const what = meaning(event, isTyping);
    if (what === "help" && help) {
      event.preventDefault();
      help.showModal();
    } else if (what === "search") {
      const field = /** @type {HTMLInputElement | null} */ (page.querySelector("[data-search]"));
      if (!field) return;
      event.preventDefault();
      field.focus();
      field.select();
    } else if (what === "link") {
      /** @type {HTMLAnchorElement | null} */ (page.querySelector(`a[data-key="${event.key}"]`))?.click();
    }
  });
}
