// @ts-check
/** The three themes a person may choose, in the order in which the switch walks them. */
export const THEMES = ["system", "light", "dark"];
const KEY = "evalboard-theme";
const WORDS = { system: "as the system has it", light: "light", dark: "dark" };

/** @param {string} current @returns {string} */
export function nextTheme(current) {
  return THEMES[(THEMES.indexOf(current) + 1) % THEMES.length];
}

/** What the switch says of itself. @param {string} theme */
export function label(theme) {
  return `Theme: ${WORDS[/** @type {"system"} */ (theme)] ?? theme}`;
}

/** @param {HTMLElement} button */
export function mount(button) {
  const root = document.documentElement;
  const show = () => {
    const words = label(root.dataset.theme ?? "system");
    button.setAttribute("aria-label", words);
    button.title = words;
  };
  button.addEventListener("click", () => {
    const theme = nextTheme(root.dataset.theme ?? "system");
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Not kept; the page still changes.
    }
    show();
    document.dispatchEvent(new CustomEvent("themechange"));
  });
  show();
}
