// Keeps the list of runs current without losing what was ticked.

const table = () => document.getElementById("runs-table");

async function renew() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const ticked = new Set([...table().querySelectorAll("input:checked")].map((box) => box.value));
  const fresh = page.getElementById("runs-table");
  for (const box of fresh.querySelectorAll("input")) box.checked = ticked.has(box.value);
  table().replaceWith(document.adoptNode(fresh));
  document.querySelector(".page-head").replaceWith(document.adoptNode(page.querySelector(".page-head")));
}

let events = null;

function follow() {
  events = new EventSource("/events");
  events.addEventListener("change", renew);
}

// A browser keeps six connections to a server: tabs that nobody sees give theirs back.
document.addEventListener("visibilitychange", () => {
  events.close();
  if (!document.hidden) {
    follow();
    renew();
  }
});

follow();

// A choice is a filter at once; the button is for those without this script.
const filters = document.getElementById("filters");
for (const choice of filters.querySelectorAll("select")) {
  choice.addEventListener("change", () => filters.requestSubmit());
}

// Two at most can be compared: a third tick takes the first one away.
const order = [];
document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.type !== "checkbox") return;
  if (!box.checked) {
    order.splice(order.indexOf(box.value), 1);
    return;
  }
  order.push(box.value);
  while (order.length > 2) {
    const old = order.shift();
    const other = table().querySelector(`input[value="${CSS.escape(old)}"]`);
    if (other) other.checked = false;
  }
});
