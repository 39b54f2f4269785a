// Before the first paint, so that a dark page never flashes white.
(() => {
  const kept = localStorage.getItem("jrh-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
