// @ts-check
/** The row of sections scrolls on a phone: it begins where the section of the page is in view. */

/** @param {Document} page */
export function mount(page) {
  const here = page.querySelector(".nav [aria-current]");
  const row = here?.parentElement;
  if (!(here instanceof HTMLElement) || !row) return;
  // Left of the fade at the row's end, and not by scrollIntoView, which would also scroll a page reloaded further down.
  row.scrollLeft = here.offsetLeft + here.offsetWidth - row.offsetLeft - 0.8 * row.clientWidth;
}
