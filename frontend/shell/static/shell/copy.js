// @ts-check
const SHOWN_MS = 1600;

/** Buttons that copy their `data-copy` and say so, those too that a later fragment brings. @param {Document} page */
export function mount(page) {
  page.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (button instanceof HTMLButtonElement) void copy(button);
  });
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const words = (button.dataset.words ??= button.textContent ?? "Copy");
  try {
    await navigator.clipboard.writeText(button.dataset.copy ?? "");
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy it by hand";
  }
  setTimeout(() => (button.textContent = words), SHOWN_MS);
}
