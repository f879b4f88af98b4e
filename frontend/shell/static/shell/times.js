// Before the first paint: times in the reader's zone, with UTC on hover. Not a module, so that it does not wait.
// Without scripts they stay in UTC, and say so.
(() => {
  const SHAPE = /^((?:\d{4}-)?\d\d-\d\d)?( ?\d\d:\d\d(:\d\d)?)?( UTC)?$/;
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");

  /** A time of the text, or of a label of an SVG axis. */
  const TIMES = "time[title], text[data-at]";

  /** @param {Element} time */
  const localise = (time) => {
    const shown = SHAPE.exec(time.textContent ?? "");
    if (!shown) return;
    const [, day, clock, seconds] = shown;
    const at = new Date(time.getAttribute("datetime") ?? time.getAttribute("data-at") ?? "");
    const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const hour = [at.getHours(), at.getMinutes(), ...(seconds ? [at.getSeconds()] : [])].map(two).join(":");
    const text = [...(day ? [date.slice(-day.length)] : []), ...(clock ? [hour] : [])].join(" ");
    if (text !== time.textContent) time.textContent = text;
  };

  /** @param {Node} node */
  const read = (node) => {
    if (!(node instanceof Element)) return node.parentElement?.matches(TIMES) && localise(node.parentElement);
    if (node.matches(TIMES)) localise(node);
    node.querySelectorAll(TIMES).forEach(localise);
    const zone = node.matches("[data-zone]") ? node : node.querySelector("[data-zone]");
    if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  };

  new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach(read))).observe(document, { childList: true, subtree: true });
})();
