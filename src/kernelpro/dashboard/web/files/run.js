// The live page of a run: fetches its parts, renews them when the run changes, opens attempts.

import { Attempts } from "./attempts.js";
import { Tree } from "./tree.js";

const main = document.querySelector("main.run");
const run = encodeURIComponent(main.dataset.run);
const base = `/runs/${run}`;
const live = document.getElementById("live");
const panel = document.getElementById("panel");
const byId = (id) => document.getElementById(id);

const tree = new Tree(byId("tree"), byId("tree-said"));
const attempts = new Attempts(byId("attempts"), byId("list-count"), `${base}/attempts.json`);
const parts = [...document.querySelectorAll("[data-part]")];

// Server markup: every candidate text in it is escaped there; nothing in it can run here either.
function place(target, markup) {
  const parsed = new DOMParser().parseFromString(markup, "text/html");
  target.replaceChildren(...parsed.body.childNodes);
}

async function renewPart(part) {
  const answer = await fetch(`${base}/parts/${part.dataset.part}`);
  if (!answer.ok) return;
  const kept = [...part.querySelectorAll("details")].map((d) => d.open);
  place(part, await answer.text());
  [...part.querySelectorAll("details")].forEach((d, k) => { if (kept[k]) d.open = true; });
}

async function renewTree() {
  const answer = await fetch(`${base}/tree.json`);
  if (!answer.ok) {
    shown = wanted; // what is wrong with the run does not change until it does
    return;
  }
  const data = await answer.json();
  shown = data.seq;
  tree.load(data);
  legend();
  if (first) {
    first = false;
    fromHash();
  }
}

let first = true, busy = false, stale = false, shown = -1, wanted = -1;

// One renewal at a time; large runs, whose renewal takes longer, are renewed less often.
async function renew() {
  busy = true;
  stale = false;
  const began = performance.now();
  try {
    await renewTree(); // what is looked at first, then the rest in turn: a click need not wait long
    await Promise.all([attempts.renew(), renewPart(parts[0])]);
    for (const part of parts.slice(1)) await renewPart(part);
    if (!main.dataset.renewed && location.hash && scrollY < 10) {
      byId("tree").scrollIntoView({ block: "center" }); // now that nothing above it moves any more
    }
    main.dataset.renewed = String(Number(main.dataset.renewed || 0) + 1);
    await new Promise((done) => setTimeout(done, Math.max(400, 2 * (performance.now() - began))));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the server does not answer: until it does
    stale = true;
    return;
  } finally {
    busy = false;
  }
  renewIfNeeded();
}

function renewIfNeeded() {
  if (!busy && (stale || wanted > shown)) renew();
}

let events = null;

function follow() {
  if (events || main.dataset.state === "gone") return;
  events = new EventSource(`${base}/events`);
  events.addEventListener("change", (event) => {
    const { seq, state } = JSON.parse(event.data);
    live.textContent = "";
    stale ||= main.dataset.state !== undefined && main.dataset.state !== state;
    main.dataset.state = state;
    wanted = seq;
    renewIfNeeded();
  });
  events.addEventListener("gone", () => {
    events.close();
    main.dataset.state = "gone";
    live.textContent = "This run was deleted or can no longer be read. What you see is what was there.";
  });
  events.addEventListener("error", () => {
    if (main.dataset.state !== "gone") live.textContent = "The server does not answer; trying again.";
  });
}

function legend() {
  const marks = tree.legend().map(([colour, name]) => {
    const mark = document.createElement("span"), box = document.createElement("i");
    box.style.background = colour;
    mark.append(box, name);
    return mark;
  });
  byId("tree-legend").replaceChildren(...marks);
}

async function open(id) {
  const wanted = id ?? "";
  panel.dataset.node = wanted;
  if (!id) {
    panel.classList.remove("open");
    panel.replaceChildren();
    return;
  }
  const answer = await fetch(`${base}/nodes/${encodeURIComponent(id)}/panel`);
  if (panel.dataset.node !== wanted) return; // another one was chosen meanwhile
  if (!answer.ok) return;
  place(panel, await answer.text());
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close";
  close.textContent = "Close";
  close.addEventListener("click", () => { location.hash = ""; byId("tree").focus(); });
  panel.prepend(close);
  panel.classList.add("open");
  panel.scrollTop = 0;
}

function fromHash() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (tree.data && (tree.data.ids.includes(id) || !id)) {
    tree.choose(id || null, { tell: false });
    open(id || null);
  }
}

tree.onchoose = (id) => {
  if ((id ?? "") !== decodeURIComponent(location.hash.slice(1))) location.hash = id ?? "";
  else open(id);
};
addEventListener("hashchange", () => {
  fromHash();
  const away = !byId("tree").matches(":hover") && location.hash;
  if (away && document.activeElement !== byId("tree")) byId("tree").scrollIntoView({ block: "center" });
});

byId("tree-in").addEventListener("click", () => tree.zoom(1.4));
byId("tree-out").addEventListener("click", () => tree.zoom(1 / 1.4));
byId("tree-fit").addEventListener("click", () => tree.fit());
byId("tree-best").addEventListener("click", () => tree.best());
byId("tree-colour").addEventListener("change", (event) => {
  tree.colour = event.target.value;
  tree.draw();
  legend();
});
byId("list-status").addEventListener("change", (e) => attempts.filter({ status: e.target.value }));
byId("list-sort").addEventListener("change", (e) => attempts.filter({ sort: e.target.value }));
let typing = 0;
byId("list-search").addEventListener("input", (e) => {
  clearTimeout(typing);
  typing = setTimeout(() => attempts.filter({ q: e.target.value }), 200);
});

// A browser keeps six connections to a server: tabs that nobody sees give theirs back.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    follow();
  } else if (events) {
    events.close();
    events = null;
  }
});

follow();
renew();
