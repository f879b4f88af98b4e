// @ts-check
/**
 * Places that links lead to. A skip link with `data-skip` leads to the first element of its selector, and is there where
 * the page has one. An address that names a part of a popover opens it. @param {Document} page
 */
export function mount(page) {
  page.querySelectorAll("[data-skip]").forEach((each) => {
    const link = /** @type {HTMLAnchorElement} */ (each);
    const target = () => /** @type {HTMLElement | null} */ (page.querySelector(link.dataset.skip ?? ""));
    link.hidden = target() === null;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      target()?.focus();
    });
  });
  const open = () => {
    const part = location.hash ? page.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    const popover = /** @type {HTMLElement | null} */ (part?.closest("[popover]") ?? null);
    if (!popover || popover.matches(":popover-open")) return;
    popover.showPopover();
    /** @type {HTMLElement | null} */ (popover.querySelector("input:not([type=hidden]), textarea, select, a, button"))?.focus();
  };
  open();
  window.addEventListener("hashchange", open);
}
