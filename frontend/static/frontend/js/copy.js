// @ts-check
const SHOWN_MS = 1600;

/** A button that copies its `data-copy` and says so. @param {HTMLButtonElement} button */
export function mount(button) {
  const words = button.textContent ?? "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy ?? "");
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy it by hand";
    }
    setTimeout(() => (button.textContent = words), SHOWN_MS);
  });
}
