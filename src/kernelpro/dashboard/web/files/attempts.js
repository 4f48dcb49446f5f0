// The list of attempts: only the rows in sight exist, and only their window is fetched.

import { times } from "./tree.js";

const ROW = 34, WINDOW = 100;
const HEADS = [["Attempt", ""], ["From", "extra"], ["What", ""], ["Result", "number"],
  ["Latency", "number extra"], ["Gain", "number extra"], ["Seconds", "number extra"]];

export class Attempts {
  constructor(box, count, address) {
    this.box = box;
    this.count = count;
    this.address = address;
    this.query = { status: "", sort: "order", q: "" };
    this.windows = new Map();
    this.total = 0;
    this.asked = 0;
    const heads = part("div", "heads");
    heads.setAttribute("role", "row");
    for (const [name, extra] of HEADS) heads.append(cell("columnheader", name, extra));
    this.rows = part("div", "rows");
    this.rows.setAttribute("role", "rowgroup");
    this.table = part("div", "");
    this.table.setAttribute("role", "table");
    this.table.setAttribute("aria-label", "Attempts");
    const top = part("div", "");
    top.setAttribute("role", "rowgroup");
    top.append(heads);
    this.table.append(top, this.rows);
    box.append(this.table);
    box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(box);
  }

  filter(query) {
    this.query = { ...this.query, ...query };
    this.box.scrollTop = 0;
    return this.renew();
  }

  async renew() {
    this.windows.clear();
    await this.fetch(Math.floor(this.box.scrollTop / ROW / WINDOW));
    this.draw();
  }

  async fetch(number) {
    if (this.windows.has(number)) return;
    const mine = ++this.asked, windows = this.windows;
    windows.set(number, null);
    const query = new URLSearchParams({ ...this.query, offset: number * WINDOW, limit: WINDOW });
    const answer = await fetch(`${this.address}?${query}`);
    if (!answer.ok) return void windows.delete(number);
    const data = await answer.json();
    windows.set(number, data.rows);
    if (mine >= this.asked || data.total !== this.total) {
      this.total = data.total;
      this.count.textContent = `${data.total.toLocaleString("en")} attempts`;
      this.box.dataset.total = data.total;
    }
    this.draw();
  }

  draw() {
    this.rows.style.height = `${this.total * ROW}px`;
    this.table.setAttribute("aria-rowcount", this.total + 1);
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 4);
    const last = Math.min(this.total, first + Math.ceil(this.box.clientHeight / ROW) + 8);
    const drawn = [];
    for (let k = first; k < last; k++) {
      const number = Math.floor(k / WINDOW), rows = this.windows.get(number);
      if (rows === undefined) this.fetch(number);
      const row = rows ? rows[k - number * WINDOW] : null;
      drawn.push(this.row(k, row));
    }
    this.rows.replaceChildren(...drawn);
  }

  row(k, data) {
    const row = part("div", data && data.best ? "row best" : "row");
    row.style.top = `${k * ROW}px`;
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", k + 2);
    if (!data) {
      row.append(cell("cell", "…", "waiting"));
      return row;
    }
    const link = (id) => {
      const a = document.createElement("a");
      a.href = `#${id}`;
      a.className = "node";
      a.textContent = id;
      return a;
    };
    const result = data.ok && data.speedup !== null ? times(data.speedup) : `✕ ${data.status}`;
    row.append(
      cell("cell", link(data.id)),
      cell("cell", data.parent ? link(data.parent) : "scratch", "extra"),
      cell("cell", data.repeat ? `${data.title} (same as ${data.repeat})` : data.title),
      cell("cell", result, data.ok ? "number" : "number failed"),
      cell("cell", data.latency_us === null ? "–" : duration(data.latency_us), "number extra"),
      cell("cell", data.gain === null ? "–" : times(data.gain), "number extra"),
      cell("cell", data.seconds.toFixed(1), "number extra"),
    );
    return row;
  }
}

function part(tag, name) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  return made;
}

function cell(role, content, extra = "") {
  const made = part("span", `cell ${extra}`.trim());
  made.setAttribute("role", role);
  made.append(content);
  return made;
}

function duration(us) {
  const [value, unit] = us < 999.5 ? [us, "µs"] : us < 999.5e3 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
  return `${Number(value.toPrecision(3))} ${unit}`;
}
