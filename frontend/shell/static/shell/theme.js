// Before the first paint: the theme that was chosen, where one was. Not a module, so that it does not wait.
try {
  const chosen = localStorage.getItem("evalboard-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be closed to us; the system's theme stays.
}
