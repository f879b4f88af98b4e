// @ts-check
/**
 * The dialog that finds anything: a combobox over the list that the server draws. What was opened lately is kept in this
 * browser; it stands in the empty field, and first among hits that are as near.
 */
const OPENED = "evalboard-opened";
const OPENED_MAX = 8;
const WAIT_MS = 80;
const NEAREST = ["exact", "prefix", "part"];
const THINGS = /^\/(runs|releases|suites|compare|endpoints|fingerprints|probes)\/(?!new\/)[^?#]+/;
const KINDS = { runs: "Run", releases: "Release", suites: "Suite", compare: "Comparison", endpoints: "Endpoint" };

/** @typedef {{url: string, name: string, kind: string}} Thing */

/**
 * Put what was opened just now first; a thing stands once.
 * @param {readonly Thing[]} things @param {Thing} opened
 */
export function remember(things, opened) {
  return [opened, ...things.filter((each) => each.url !== opened.url)].slice(0, OPENED_MAX);
}

/**
 * Return the order of hits: the nearest first, of these what was opened lately, then as the server has them.
 * @param {readonly {match: string, url: string}[]} hits @param {readonly Thing[]} opened
 */
export function ranked(hits, opened) {
  const place = (/** @type {{url: string}} */ hit) => {
    const at = opened.findIndex((each) => each.url === hit.url);
    return at < 0 ? OPENED_MAX : at;
  };
  return hits
    .map((_, index) => index)
    .sort(
      (a, b) =>
        NEAREST.indexOf(hits[a].match) - NEAREST.indexOf(hits[b].match) ||
        place(hits[a]) - place(hits[b]) ||
        a - b,
    );
}

/**
 * What the page of an address is called in the list of what was opened, or null where it is no thing of its own.
 * @param {string} path @param {string} title @returns {Thing | null}
 */
export function thingOf(path, title) {
  const section = THINGS.exec(path)?.[1];
  const name = title.replace(/ · Evalboard$/, "");
  return section && name ? { url: path, name, kind: KINDS[/** @type {"runs"} */ (section)] ?? "Page" } : null;
}

/** @returns {Thing[]} */
function opened() {
  try {
    const stored = JSON.parse(localStorage.getItem(OPENED) ?? "[]");
    return Array.isArray(stored) ? stored.filter((each) => typeof each?.url === "string" && each.url.startsWith("/")) : [];
  } catch {
    return []; // storage is closed to us, or holds something else
  }
}

/** @param {Thing} thing */
function keep(thing) {
  try {
    localStorage.setItem(OPENED, JSON.stringify(remember(opened(), thing)));
  } catch {
    // Nothing is remembered then.
  }
}

/** @param {Document} page @returns {() => void} what opens the dialog */
export function mount(page) {
  const dialog = /** @type {HTMLDialogElement | null} */ (page.getElementById("find"));
  const field = /** @type {HTMLInputElement | null} */ (dialog?.querySelector("input") ?? null);
  const list = /** @type {HTMLElement | null} */ (dialog?.querySelector("[data-list]") ?? null);
  if (!dialog || !field || !list) return () => {};
  const thing = thingOf(location.pathname, page.title);
  if (thing && page.body.dataset.status !== "error") keep(thing);
  const said = /** @type {HTMLElement} */ (dialog.querySelector("[data-said]"));
  let kind = "";
  let waits = 0;
  let latest = new AbortController();
  let isPasted = false;
  let isBehind = false; // the list is of an earlier text
  let enters = /** @type {KeyboardEvent | null} */ (null); // pressed while it was

  const options = () => /** @type {HTMLAnchorElement[]} */ ([...list.querySelectorAll("a[role=option]")]);
  const selected = () => options().find((each) => each.getAttribute("aria-selected") === "true");

  /** @param {number} at */
  const select = (at) => {
    const all = options();
    all.forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
    if (all[at]) field.setAttribute("aria-activedescendant", all[at].id);
    else field.removeAttribute("aria-activedescendant");
    all[at]?.scrollIntoView({ block: "nearest" });
  };

  /** Give what the server drew the roles of a listbox, in the order of this browser. */
  const dress = () => {
    const hits = list.querySelector("ul.find-hits");
    const lines = [...(hits?.children ?? [])];
    const facts = lines.map((line) => {
      const link = /** @type {HTMLAnchorElement} */ (line.querySelector("a"));
      return { match: link.dataset.match ?? "part", url: link.getAttribute("href") ?? "" };
    });
    if (hits && field.value.trim()) hits.append(...ranked(facts, opened()).map((index) => lines[index]));
    hits?.setAttribute("role", "listbox");
    hits?.setAttribute("id", "find-hits");
    hits?.setAttribute("aria-label", "Hits");
    [...(hits?.children ?? [])].forEach((line, index) => {
      line.setAttribute("role", "presentation");
      const link = /** @type {HTMLElement} */ (line.querySelector("a"));
      link.setAttribute("role", "option");
      link.id = `find-hit-${index}`;
      link.tabIndex = -1;
    });
    list.querySelectorAll("a[data-kind]").forEach((each) => {
      if (each.closest(".find-kinds")) /** @type {HTMLElement} */ (each).tabIndex = -1;
    });
    field.setAttribute("aria-expanded", String(Boolean(hits)));
    said.textContent = field.value.trim() ? (list.querySelector("[data-summary]")?.textContent ?? "") : "opened lately";
    select(0);
    isBehind = false;
    if (enters && selected()) follow(enters);
    enters = null;
  };

  /** Open the selected hit. @param {KeyboardEvent} event */
  const follow = (event) => {
    const link = /** @type {HTMLAnchorElement} */ (selected());
    if (link.dataset.post !== undefined) return post(link);
    keepLink(link);
    if (link.dataset.act !== undefined) dialog.close();
    if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
    else location.assign(link.href);
  };

  /** Do an act at once. Without this script its link leads to its form. @param {HTMLAnchorElement} link */
  const post = (link) => {
    const token = /** @type {HTMLInputElement | null} */ (page.querySelector("input[name=csrfmiddlewaretoken]"));
    const form = Object.assign(page.createElement("form"), { method: "post", action: link.href, hidden: true });
    if (token) form.append(token.cloneNode());
    page.body.append(form);
    form.submit();
  };

  const showOpened = async () => {
    const hits = page.createElement("ul");
    hits.className = "find-hits";
    for (const each of opened()) {
      const line = page.createElement("li");
      const link = Object.assign(page.createElement("a"), { className: "find-hit", href: each.url });
      Object.assign(link.dataset, { name: each.name, kindName: each.kind });
      const kindName = Object.assign(page.createElement("span"), { className: "find-kind", textContent: each.kind });
      const name = Object.assign(page.createElement("b"), { className: "find-name", textContent: each.name });
      link.append(kindName, name);
      line.append(link);
      hits.append(line);
    }
    list.replaceChildren(...(hits.children.length ? [hits] : []));
    dress();
    const signal = latest.signal;
    try {
      const answer = await fetch(address(), { signal });
      const acts = answer.ok && !answer.redirected ? await answer.text() : "";
      const drawn = new DOMParser().parseFromString(acts, "text/html").querySelectorAll(".find-hits > li");
      if (signal.aborted || !drawn.length) return;
      hits.append(...drawn); // last, so that Enter alone starts nothing
      list.replaceChildren(hits);
      dress();
    } catch {
      // What was opened lately is there.
    }
  };

  const address = () => {
    const query = new URLSearchParams({ q: field.value, part: "list", of: location.pathname, ...(kind ? { kind } : {}) });
    return `${field.form?.getAttribute("action")}?${query}`;
  };

  const ask = async () => {
    latest.abort();
    latest = new AbortController();
    if (!field.value.trim()) return showOpened();
    try {
      list.setAttribute("aria-busy", "true");
      const answer = await fetch(address(), { signal: latest.signal });
      if (!answer.ok || answer.redirected) throw new Error(`HTTP ${answer.status}`);
      const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
      list.replaceChildren(...drawn.body.children);
      list.removeAttribute("aria-busy");
      const opens = /** @type {HTMLElement | null} */ (list.querySelector("[data-opens]"))?.dataset.opens;
      if (opens && isPasted) return location.assign(opens);
      dress();
    } catch (problem) {
      if (problem instanceof DOMException && problem.name === "AbortError") return;
      list.removeAttribute("aria-busy");
      isBehind = false;
      enters = null;
      said.textContent = "could not ask; Enter opens the page of the search";
      list.replaceChildren();
    }
  };

  const askSoon = () => {
    clearTimeout(waits);
    waits = window.setTimeout(() => void ask(), WAIT_MS);
  };

  /** @param {number} step */
  const nextKind = (step) => {
    const kinds = /** @type {HTMLElement[]} */ ([...list.querySelectorAll(".find-kinds a")]);
    if (!kinds.length) return;
    const at = kinds.findIndex((each) => each.hasAttribute("aria-current"));
    kind = kinds[(Math.max(at, 0) + step + kinds.length) % kinds.length].dataset.kind ?? "";
    void ask();
  };

  const open = () => {
    if (dialog.open) return;
    kind = "";
    field.value = "";
    dialog.showModal();
    latest = new AbortController();
    void showOpened();
  };

  field.addEventListener("input", () => {
    isPasted = false;
    isBehind = true;
    kind = "";
    askSoon();
  });
  field.addEventListener("paste", () => setTimeout(() => ((isPasted = true), clearTimeout(waits), void ask())));
  field.addEventListener("keydown", (event) => {
    const all = options();
    const at = all.findIndex((each) => each.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (all.length) select((at + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length);
    } else if (event.key === "Tab" && list.querySelector(".find-kinds")) {
      event.preventDefault();
      nextKind(event.shiftKey ? -1 : 1);
    } else if (event.key === "Enter" && isBehind) {
      event.preventDefault();
      enters = event;
    } else if (event.key === "Enter" && selected()) {
      event.preventDefault();
      follow(event);
    }
  });

  /** @param {HTMLAnchorElement} link */
  const keepLink = (link) => {
    if (link.dataset.act !== undefined) return;
    const { name, kindName } = link.dataset;
    keep({ url: link.getAttribute("href") ?? "/", name: name ?? "", kind: kindName ?? "" });
  };

  list.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link) return;
    if (link.dataset.kind !== undefined) {
      event.preventDefault();
      kind = link.dataset.kind;
      field.focus();
      void ask();
    } else if (link.dataset.post !== undefined) {
      event.preventDefault();
      post(link);
    } else {
      keepLink(link);
      if (link.dataset.act !== undefined) dialog.close(); // its form may be on this page
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the veil
  });
  dialog.addEventListener("close", () => latest.abort());
  page.querySelector("[data-open-find]")?.addEventListener("click", open);
  return open;
}
