// @ts-check
/** A form that was sent is not sent again until another page has come, so that a double click is one request. */

/** @param {Document} page */
export const mount = (page) => {
  page.addEventListener("submit", (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (event.defaultPrevented || form.method !== "post") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of page.forms) delete form.dataset.sent;
  });
};
