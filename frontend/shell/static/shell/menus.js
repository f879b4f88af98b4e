// @ts-check
/** Menus that close by Escape, which gives the focus back, and by a click elsewhere. @param {Document} page */
export function mount(page) {
  page.querySelectorAll("details[data-closes]").forEach((each) => {
    const menu = /** @type {HTMLDetailsElement} */ (each);
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary")?.focus();
    });
    page.addEventListener("click", (event) => {
      if (event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
    });
  });
}
