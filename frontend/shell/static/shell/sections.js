// @ts-check
/** The row of sections scrolls on a phone: it begins where the section of the page is in view. */

/** @param {Document} page */
export function mount(page) {
  const here = page.querySelector(".nav [aria-current]");
  const row = here?.parentElement;
  if (!(here instanceof HTMLElement) || !row) return;
  // Not by scrollIntoView, which would also scroll a page that was reloaded further down.
  row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
}
