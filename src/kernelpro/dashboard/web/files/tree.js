// Draws the search tree on a canvas: 20,000 nodes pan and zoom as smoothly as twenty.
// The server lays the tree out; this file draws it, moves over it, and says what was chosen.

const COLUMN = 112, ROW = 28, WIDTH = 90, HEIGHT = 22;
const ON_PATH = 1, BEST = 2, REPEAT = 4;
const TEXT_FROM = 0.62; // rows this large (in parts of full size) carry text
const BOX_FROM = 0.16; // smaller rows are drawn as plain marks, fastest on top
const STATUS_HUES = ["#8a6d3b", "#c2573a", "#b0437a", "#a8431a", "#6b5bb5", "#4a72b8", "#cf8a2e", "#7a1f1f", ""];

export class Tree {
  constructor(frame, said) {
    this.frame = frame;
    this.canvas = frame.querySelector("canvas");
    this.said = said;
    this.data = null;
    this.chosen = -1;
    this.colour = "speedup";
    this.view = null; // { x, y, sx, sy }: world to screen
    this.touched = false; // whether the user moved it: then new nodes do not
    this.onchoose = () => {};
    this.listen();
    new ResizeObserver(() => this.resized()).observe(frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  load(data) {
    const id = this.chosen >= 0 ? this.data.ids[this.chosen] : null;
    this.data = data;
    this.chosen = id === null ? -1 : data.ids.indexOf(id);
    this.children = data.ids.map(() => []);
    data.parent.forEach((p, k) => { if (p >= 0) this.children[p].push(k); });
    const speeds = data.speedup.filter((s) => s !== null);
    this.low = speeds.reduce((a, b) => Math.min(a, b), Infinity);
    this.high = speeds.reduce((a, b) => Math.max(a, b), -Infinity);
    const height = clamp(data.rows * ROW * 1.3 + 48, 240, 600);
    this.frame.parentElement.style.height = `${height}px`;
    this.frame.style.minHeight = `${Math.min(height, 380)}px`; // what counts on a phone
    if (!this.view || !this.touched) this.fit(); else this.draw();
    this.frame.dataset.nodes = data.ids.length;
  }

  fit() {
    if (!this.data) return;
    const { width, height } = this.size();
    const fx = (width - 32) / Math.max(1, this.data.columns * COLUMN - (COLUMN - WIDTH));
    const fy = (height - 32) / Math.max(1, this.data.rows * ROW);
    this.least = { sx: Math.min(1, Math.max(0.3, fx)), sy: Math.min(1, fy) };
    const larger = clamp(Math.min(fx, fy), 1, 1.3); // a small tree may fill its frame
    this.view = { x: 20, y: 20, sx: this.least.sx * larger, sy: this.least.sy * larger };
    const used = this.data.rows * ROW * this.view.sy;
    if (used < height - 40) this.view.y = 20 + (height - 40 - used) / 2;
    this.touched = false;
    this.draw();
  }

  // Zooms about a point of the canvas; the columns never get narrower than the whole tree needs.
  zoom(factor, px, py) {
    if (!this.view) return;
    const v = this.view, { width, height } = this.size();
    const cx = px ?? width / 2, cy = py ?? height / 2;
    const sx = clamp(v.sx * factor, this.least.sx, 1.6), sy = clamp(v.sy * factor, this.least.sy, 1.6);
    v.x = cx - ((cx - v.x) / v.sx) * sx;
    v.y = cy - ((cy - v.y) / v.sy) * sy;
    v.sx = sx;
    v.sy = sy;
    this.touched = true;
    this.draw();
  }

  choose(id, { move = true, tell = true } = {}) {
    const k = this.data ? this.data.ids.indexOf(id) : -1;
    this.chosen = k;
    if (k >= 0 && move) this.reveal(k);
    this.draw();
    this.said.textContent = k >= 0 ? this.spoken(k) : "";
    if (tell) this.onchoose(k >= 0 ? id : null);
  }

  best() {
    const k = this.data ? this.data.flags.findIndex((f) => f & BEST) : -1;
    if (k >= 0) this.choose(this.data.ids[k]);
  }

  reveal(k) {
    const { width, height } = this.size(), v = this.view;
    if (v.sy < TEXT_FROM && this.data.ids.length > 60) {
      v.sx = v.sy = 1;
      this.touched = true;
      v.x = width / 2 - (this.data.depth[k] * COLUMN + WIDTH / 2);
      v.y = height / 2 - (this.data.row[k] * ROW + HEIGHT / 2);
      return;
    }
    const [x, y] = this.place(k), w = WIDTH * v.sx, h = HEIGHT * v.sy;
    if (x < 8) v.x += 24 - x;
    if (x + w > width - 8) v.x -= x + w - width + 24;
    if (y < 8) v.y += 24 - y;
    if (y + h > height - 8) v.y -= y + h - height + 24;
  }

  spoken(k) {
    const d = this.data, p = d.parent[k];
    const result = d.speedup[k] === null ? d.statuses[d.status[k]] || "no verdict" : times(d.speedup[k]);
    const best = d.flags[k] & BEST ? ", the best" : "";
    return `${d.ids[k]}: ${result}${best}, from ${p >= 0 ? d.ids[p] : "scratch"}`;
  }

  place(k) {
    const v = this.view;
    return [v.x + this.data.depth[k] * COLUMN * v.sx, v.y + this.data.row[k] * ROW * v.sy];
  }

  at(px, py) {
    if (!this.data) return -1;
    const v = this.view, w = WIDTH * v.sx, h = Math.max(HEIGHT * v.sy, 4);
    let found = -1, nearest = Infinity;
    for (let k = 0; k < this.data.ids.length; k++) {
      const [x, y] = this.place(k);
      if (px < x || px > x + w || py < y - 3 || py > y + h + 3) continue;
      const away = Math.abs(py - y - h / 2) - (this.data.speedup[k] ?? 0) * 1e-3;
      if (away < nearest) { nearest = away; found = k; }
    }
    return found;
  }

  size() {
    return { width: this.frame.clientWidth, height: this.frame.clientHeight };
  }

  resized() {
    const { width, height } = this.size();
    if (!this.data || `${width}x${height}` === this.painted) return;
    if (this.touched) this.draw(); else this.fit();
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.paint(); });
  }

  paint() {
    if (!this.data || !this.view) return;
    const { width, height } = this.size(), ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.painted = `${width}x${height}`;
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    this.ink = palette();
    const seen = this.visible(width, height);
    this.edges(c, seen, height);
    for (const k of seen) this.node(c, k);
    if (this.chosen >= 0) this.ring(c, this.chosen);
    this.frame.dataset.drawn = seen.length;
  }

  // Nodes in sight, slowest first, so that where marks share a pixel the fastest is on top.
  visible(width, height) {
    const v = this.view, w = WIDTH * v.sx, h = Math.max(1, HEIGHT * v.sy), found = [];
    for (let k = 0; k < this.data.ids.length; k++) {
      const x = v.x + this.data.depth[k] * COLUMN * v.sx, y = v.y + this.data.row[k] * ROW * v.sy;
      if (x + w >= 0 && x <= width && y + h >= 0 && y <= height) found.push(k);
    }
    if (v.sy < BOX_FROM) {
      const rank = (k) => (this.data.flags[k] & ON_PATH ? 1e9 : this.data.speedup[k] ?? -1);
      found.sort((a, b) => rank(a) - rank(b));
    }
    return found;
  }

  edges(c, seen, height) {
    const d = this.data, v = this.view, few = v.sy >= 0.05 || seen.length < 3000;
    for (const path of [false, true]) {
      c.beginPath();
      c.strokeStyle = path ? this.ink.accent : this.ink.faint;
      c.lineWidth = path ? 2 : v.sy < BOX_FROM ? 0.5 : 1;
      for (let k = 0; k < d.ids.length; k++) {
        const p = d.parent[k], on = Boolean(d.flags[k] & ON_PATH);
        if (p < 0 || on !== path || (!path && !few)) continue;
        const [x, y] = this.place(k), [px, py] = this.place(p), half = (HEIGHT * v.sy) / 2;
        if (Math.max(y, py) < -40 || Math.min(y, py) > height + 40) continue;
        const from = px + WIDTH * v.sx, middle = (from + x) / 2;
        c.moveTo(from, py + half);
        c.bezierCurveTo(middle, py + half, middle, y + half, x, y + half);
      }
      c.stroke();
    }
  }

  node(c, k) {
    const d = this.data, v = this.view, [x, y] = this.place(k);
    const w = WIDTH * v.sx, h = Math.max(1, HEIGHT * v.sy), { fill, alpha, text, line } = this.style(k);
    c.globalAlpha = alpha;
    c.fillStyle = fill;
    if (v.sy < BOX_FROM) {
      c.globalAlpha = Math.max(alpha, 0.25);
      c.fillRect(x, y, w, Math.max(h, d.flags[k] & ON_PATH ? 3 : 1.2));
      c.globalAlpha = 1;
      return;
    }
    const r = Math.min(4, h / 3);
    c.beginPath();
    c.roundRect(x, y, w, h, r);
    c.fill();
    c.globalAlpha = 1;
    c.strokeStyle = line;
    c.lineWidth = d.flags[k] & BEST ? 2 : 1;
    c.setLineDash(d.flags[k] & REPEAT ? [3, 3] : []);
    c.stroke();
    c.setLineDash([]);
    if (v.sy >= TEXT_FROM && v.sx >= 0.55) this.label(c, k, x, y, w, h, text);
  }

  label(c, k, x, y, w, h, text) {
    const d = this.data, size = clamp(11.5 * Math.min(this.view.sx, this.view.sy), 8.5, 15);
    c.fillStyle = text;
    c.textBaseline = "middle";
    c.font = `${size}px ${this.ink.font}`;
    c.textAlign = "left";
    c.globalAlpha = 0.85;
    c.fillText(d.ids[k].replace(/^n0*/, ""), x + 7, y + h / 2 + 0.5);
    c.globalAlpha = 1;
    c.textAlign = "right";
    if (d.speedup[k] !== null) c.font = `600 ${size}px ${this.ink.font}`;
    const said = d.speedup[k] === null ? `✕ ${d.short[d.status[k]] || "?"}` : times(d.speedup[k]);
    c.fillText(said, x + w - 7, y + h / 2 + 0.5);
  }

  style(k) {
    const d = this.data, ink = this.ink, best = d.flags[k] & BEST, failed = d.speedup[k] === null;
    if (this.colour === "status") {
      const fill = failed ? STATUS_HUES[d.status[k]] || ink.fail : ink.accent;
      return { fill, alpha: 1, text: "#fff", line: best ? ink.ink : fill };
    }
    if (failed) return { fill: ink.failSoft, alpha: 1, text: ink.fail, line: ink.failSoft };
    const share = this.colour === "order" ? d.order[k] / Math.max(1, d.ids.length - 1) : this.speed(d.speedup[k]);
    const alpha = 0.06 + 0.94 * share ** 1.4;
    const solid = alpha > 0.55;
    return { fill: ink.accent, alpha, text: solid ? ink.paper : ink.ink, line: best ? ink.ink : ink.accentSoft };
  }

  speed(speedup) {
    return this.high > this.low ? Math.log(speedup / this.low) / Math.log(this.high / this.low) : 1;
  }

  ring(c, k) {
    const [x, y] = this.place(k), w = WIDTH * this.view.sx, h = Math.max(3, HEIGHT * this.view.sy);
    c.strokeStyle = this.ink.ink;
    c.lineWidth = 2.5;
    c.beginPath();
    c.roundRect(x - 3, y - 3, w + 6, h + 6, 6);
    c.stroke();
  }

  legend() {
    const ink = palette();
    if (this.colour === "status") {
      const used = [...new Set(this.data ? this.data.status : [])].filter((s) => s >= 0).sort((a, b) => b - a);
      return used.map((s) => [STATUS_HUES[s] || ink.accent, this.data.statuses[s]]);
    }
    const [from, to] = this.colour === "order" ? ["oldest", "newest"] : ["slowest", "fastest"];
    const steps = [0.08, 0.35, 1].map((a) => `color-mix(in srgb, ${ink.accent} ${100 * a}%, ${ink.paper})`);
    return [[steps[0], from], [steps[1], ""], [steps[2], to], [ink.failSoft, "failed"]];
  }

  listen() {
    const f = this.frame;
    let drag = null;
    f.addEventListener("pointerdown", (e) => {
      drag = { x: e.clientX, y: e.clientY, moved: false };
      f.setPointerCapture(e.pointerId);
    });
    f.addEventListener("pointermove", (e) => {
      if (!drag || !this.view) return;
      const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 5) return;
      drag = { x: e.clientX, y: e.clientY, moved: true };
      f.classList.add("dragging");
      this.view.x += dx;
      this.view.y += dy;
      this.touched = true;
      this.draw();
    });
    const end = (e) => {
      f.classList.remove("dragging");
      if (drag && !drag.moved && e.type === "pointerup") this.pick(e);
      drag = null;
    };
    f.addEventListener("pointerup", end);
    f.addEventListener("pointercancel", end);
    f.addEventListener("wheel", (e) => {
      if (document.activeElement !== f && !e.ctrlKey) return;
      e.preventDefault();
      const box = f.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY * 0.0016), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    f.addEventListener("keydown", (e) => this.key(e));
  }

  pick(e) {
    const box = this.frame.getBoundingClientRect();
    const k = this.at(e.clientX - box.left, e.clientY - box.top);
    this.choose(k >= 0 ? this.data.ids[k] : null, { move: false });
  }

  key(e) {
    if (!this.data || !this.data.ids.length) return;
    if (e.key === "+" || e.key === "=") return this.zoom(1.3);
    if (e.key === "-") return this.zoom(1 / 1.3);
    const d = this.data, k = this.chosen;
    if (e.key === "Enter" && k >= 0) return this.onchoose(d.ids[k]);
    if (e.key === "Escape") return this.choose(null);
    const goal = this.neighbour(e.key, k);
    if (goal === undefined) return undefined;
    e.preventDefault();
    this.chosen = goal;
    this.reveal(goal);
    this.draw();
    this.said.textContent = this.spoken(goal);
    return undefined;
  }

  neighbour(key, k) {
    const d = this.data;
    if (!["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) return undefined;
    if (k < 0 || key === "Home") return 0;
    if (key === "End") return d.ids.length - 1;
    if (key === "ArrowLeft") return d.parent[k] >= 0 ? d.parent[k] : k;
    if (key === "ArrowRight") return this.children[k][0] ?? k;
    const step = key === "ArrowDown" ? 1 : -1;
    for (let j = k + step; j >= 0 && j < d.ids.length; j += step) {
      if (d.depth[j] === d.depth[k]) return j;
    }
    return k;
  }
}

export const times = (s) => `${s.toFixed(s < 10 ? 2 : s < 100 ? 1 : 0)}×`;

const clamp = (v, low, high) => Math.min(high, Math.max(low, v));

function palette() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  return {
    accent: get("--accent"), accentSoft: get("--accent-soft"), faint: get("--faint"), ink: get("--ink"),
    paper: get("--paper"), fail: get("--fail"), failSoft: get("--fail-soft"), font: get("--sans"),
  };
}
