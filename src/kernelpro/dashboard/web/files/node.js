// Left and right go to the neighbouring attempts' pages, as in the report.

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("pre, input, select")) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const parts = location.pathname.split("/");
  const digits = /^n(\d+)$/.exec(parts.at(-1));
  if (!step || !digits) return;
  const next = Number(digits[1]) + step;
  if (next > 0) location.href = [...parts.slice(0, -1), `n${String(next).padStart(digits[1].length, "0")}`].join("/");
});
