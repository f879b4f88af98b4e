// @ts-check
/** Keys of a page: `?` help, `/` and Ctrl-K the search, and links and buttons that name a key by `data-key`. */

/**
 * What a key does here, or null where it belongs to the browser or to a field.
 * @param {{key: string, repeat?: boolean, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean}} event
 * @param {boolean} isTyping
 * @returns {"help" | "find" | "link" | null}
 */
export function meaning(event, isTyping) {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) return "find";
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.key === "?") return "help";
  if (event.key === "/") return "find";
  // A key that is held down would press what the next page has there, before anybody read it.
  return /^[a-z[\]]$/.test(event.key) && !event.repeat ? "link" : null;
}

/** @param {Document} page @param {() => void} openFind */
export function mount(page, openFind) {
  const help = /** @type {HTMLElement | null} */ (page.getElementById("help"));
  page.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const isHelped = Boolean(help?.matches(":popover-open"));
    const isTyping = isHelped || target.closest("input, textarea, select, [contenteditable]") !== null;
    const what = meaning(event, isTyping);
    if (what === "help" && help) {
      event.preventDefault();
      help.showPopover();
    } else if (what === "find" && !isHelped) {
      event.preventDefault();
      openFind();
    } else if (what === "link") {
      /** @type {HTMLElement | null} */ (page.querySelector(`:is(a, summary, button)[data-key="${event.key}"]`))?.click();
    }
  });
}
