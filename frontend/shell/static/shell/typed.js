// @ts-check
/**
 * What a person typed and did not send yet outlives a sign-in, a form that was refused for its age, and a page that loads
 * again by itself. It stays in this tab, without passwords and files, until the next other page.
 */

const KEPT = "typed";

/** @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Field */
/** @typedef {{ action: string, fields: [string, string, boolean | null][] }} Typed */

/** @param {HTMLFormElement} form @returns {Field[]} */
const fieldsOf = (form) =>
  [.../** @type {Iterable<Field>} */ (/** @type {unknown} */ (form.elements))].filter(
    (field) => field.name && !["hidden", "password", "file", "submit"].includes(field.type) && "value" in field,
  );

/** @param {Field} field @returns {boolean | null} */
const isChecked = (field) => (field instanceof HTMLInputElement && /^(checkbox|radio)$/.test(field.type) ? field.checked : null);

/** @param {Field} field */
function isChanged(field) {
  if (field instanceof HTMLSelectElement) {
    const isChosen = field.multiple || [...field.options].some((each) => each.defaultSelected);
    if (!isChosen) return field.selectedIndex > 0; // the browser chooses the first
    return [...field.options].some((each) => each.selected !== each.defaultSelected);
  }
  if (isChecked(field) !== null) return field.checked !== /** @type {HTMLInputElement} */ (field).defaultChecked;
  return field.value !== field.defaultValue;
}

/** @param {Document} page @returns {HTMLFormElement[]} */
const formsOf = (page) => [...page.forms].filter((form) => form.method === "post");

/** @param {HTMLFormElement} form */
const actionOf = (form) => new URL(form.getAttribute("action") ?? "", location.href).pathname;

/** @param {Document} page @returns {Typed[]} */
export function readTyped(page) {
  const forms = formsOf(page).filter((form) => fieldsOf(form).some(isChanged));
  return forms.map((form) => ({
    action: actionOf(form),
    fields: fieldsOf(form).map((field) => [field.name, field.value, isChecked(field)]),
  }));
}

/** @param {Document} page @param {Typed[]} typed @returns {HTMLElement | null} the first field that has its text again */
export function writeTyped(page, typed) {
  let first = null;
  for (const { action, fields } of typed) {
    const form = formsOf(page).find((each) => actionOf(each) === action);
    for (const field of form ? fieldsOf(form) : []) {
      const checked = isChecked(field);
      const entry = fields.find(([name, value]) => name === field.name && (checked === null || value === field.value));
      if (!entry) continue;
      const isOther = checked === null ? field.value !== entry[1] : checked !== entry[2];
      if (checked === null) field.value = entry[1];
      else /** @type {HTMLInputElement} */ (field).checked = entry[2] === true;
      if (isOther) first ??= field;
    }
  }
  return first;
}

/** @param {Document} page */
export function mount(page) {
  const kept = sessionStorage.getItem(KEPT);
  const isBetween = page.querySelector("[data-keeps-typed]") !== null;
  addEventListener("pagehide", () => {
    const typed = isBetween ? [] : readTyped(page);
    if (typed.length) sessionStorage.setItem(KEPT, JSON.stringify({ typed, isAway: false }));
  });
  if (kept === null) return;
  const { typed, isAway } = JSON.parse(kept);
  if (isBetween) return sessionStorage.setItem(KEPT, JSON.stringify({ typed, isAway: true }));
  sessionStorage.removeItem(KEPT);
  const [navigation] = performance.getEntriesByType("navigation");
  const isReload = navigation instanceof PerformanceNavigationTiming && navigation.type === "reload";
  const first = isAway || isReload ? writeTyped(page, typed) : null;
  if (!first) return;
  for (let part = first.closest("details"); part; part = part.parentElement?.closest("details") ?? null) part.open = true;
  page.querySelector("[data-typed-again]")?.removeAttribute("hidden");
}
