"use strict";
// Opens an attempt's details beside the page; without this script, :target does the same.
(() => {
  const root = document.documentElement;
  const attempts = new Map([...document.querySelectorAll(".attempt")].map((a) => [a.id, a]));
  const order = [...attempts.keys()];
  let opener = null;
  root.classList.add("js");

  const current = () => document.querySelector(".attempt.open");

  function show(id) {
    const old = current();
    if (old) old.classList.remove("open");
    for (const mark of document.querySelectorAll("[aria-current]")) mark.removeAttribute("aria-current");
    const chosen = attempts.get(id);
    root.classList.toggle("reading", Boolean(chosen));
    if (!chosen) return;
    chosen.classList.add("open");
    chosen.scrollTop = 0;
    chosen.focus({ preventScroll: true });
    for (const link of document.querySelectorAll(`.tree a[href="#${CSS.escape(id)}"]`)) {
      link.setAttribute("aria-current", "true");
    }
  }

  function close() {
    history.replaceState(null, "", location.pathname + location.search);
    show("");
    if (opener) opener.focus({ preventScroll: true });
    opener = null;
  }

  const fromHash = () => show(decodeURIComponent(location.hash.slice(1)));
  addEventListener("hashchange", fromHash);
  fromHash();

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.classList.contains("close")) {
      event.preventDefault();
      close();
    } else if (link && attempts.has(link.getAttribute("href").slice(1))) {
      if (!link.closest(".attempt")) opener = link;
      event.preventDefault();
      history.replaceState(null, "", link.getAttribute("href"));
      fromHash();
    } else if (current() && !event.target.closest(".attempt")) {
      close();
    }
  });

  document.addEventListener("keydown", (event) => {
    const open = current();
    if (open && event.key === "Escape") return close();
    if (open && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      if (event.target.closest(".source")) return undefined;
      const step = event.key === "ArrowLeft" ? -1 : 1;
      const next = order[order.indexOf(open.id) + step];
      if (next) {
        history.replaceState(null, "", `#${next}`);
        show(next);
      }
      return undefined;
    }
    const link = event.target.closest ? event.target.closest(".tree a") : null;
    if (!link) return undefined;
    const links = [...document.querySelectorAll(".tree a")];
    const here = links.indexOf(link);
    const goal = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1 }[event.key];
    if (goal !== undefined && links[goal]) {
      event.preventDefault();
      links[goal].focus();
    }
    return undefined;
  });

  const best = document.querySelector(".tree .pill-best");
  if (best) {
    const frame = best.closest(".scroll");
    const seen = frame.getBoundingClientRect();
    const mark = best.getBoundingClientRect();
    if (mark.right > seen.right) frame.scrollLeft = mark.left - seen.left - seen.width / 2;
  }

  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("main details")) part.open = true;
  });
})();
