// @ts-check
/** Buttons that print the page. @param {Document} page */
export function mount(page) {
  page.querySelectorAll("[data-print]").forEach((button) => button.addEventListener("click", () => window.print()));
}
