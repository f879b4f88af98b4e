// @ts-check
/** Redoc in the page's own inks. It knows no second theme, so a change of theme draws it anew. */

/** An ink of the page as #rrggbb: Redoc computes shades of it and reads nothing else. @param {string} name */
const token = (name) => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = rgb(getComputedStyle(probe).color);
  probe.remove();
  return colour;
};

/** @param {string} colour */
function rgb(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d");
  if (!pen) return "#000000";
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Draws the reference, and shows it once it is complete. @param {HTMLElement} place */
function draw(place) {
  place.setAttribute("aria-busy", "true");
  const style = getComputedStyle(document.documentElement);
  const sans = style.getPropertyValue("--sans");
  const mono = style.getPropertyValue("--mono");
  const options = {
    disableSearch: true, // would need a worker made of text
    nativeScrollbars: true,
    jsonSampleExpandLevel: 2,
    theme: {
      spacing: { sectionVertical: 16, sectionHorizontal: 24 },
      colors: {
        primary: { main: token("--accent") },
        text: { primary: token("--text"), secondary: token("--text-2") },
        border: { dark: token("--line-strong"), light: token("--line") },
        success: { main: token("--ship") },
        error: { main: token("--no-ship") },
        warning: { main: token("--inconclusive") },
        gray: { 50: token("--sunken"), 100: token("--line") },
      },
      schema: { nestedBackground: token("--sunken"), linesColor: token("--line-strong"), typeNameColor: token("--text-2") },
      typography: {
        fontSize: "14px",
        fontFamily: sans,
        headings: { fontFamily: sans, fontWeight: "600" },
        code: { fontFamily: mono, fontSize: "12.5px", color: token("--text"), backgroundColor: token("--sunken") },
        links: { color: token("--accent") },
      },
      sidebar: { backgroundColor: token("--surface"), textColor: token("--text"), width: "250px" },
      rightPanel: { backgroundColor: "#1d2129", textColor: "#f2f3f5" },
    },
  };
  // @ts-ignore  Redoc is a plain script and has no types here.
  window.Redoc.init(place.dataset.schema, options, place, () => place.removeAttribute("aria-busy"));
}

/**
 * Redoc's heads of parameters are h5 right under an h2; by what is read out they follow it.
 * @param {HTMLElement} place
 */
function order(place) {
  const setLevels = () => {
    for (const head of place.querySelectorAll("h5:not([aria-level])")) head.setAttribute("aria-level", "3");
  };
  new MutationObserver(setLevels).observe(place, { childList: true, subtree: true });
}

/** @param {HTMLElement} place */
function drawAnew(place) {
  const fresh = /** @type {HTMLElement} */ (place.cloneNode(false));
  place.replaceWith(fresh);
  order(fresh);
  draw(fresh);
  return fresh;
}

let place = document.querySelector(".api-docs");
const again = () => {
  if (place instanceof HTMLElement) place = drawAnew(place);
};
again();
document.addEventListener("themechange", again);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
