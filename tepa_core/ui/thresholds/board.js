// The sliders of the thresholds page. While one is dragged everything shown comes from the sweeps that the server sent
// with the last setting: no message leaves the browser before the slider is let go.
// Texts are set through textContent only.

const BLUE = "#0072B2";
const GREY = "#8c8c8c";
const ORANGE = "#D55E00";
const GRID = "rgba(128, 128, 128, 0.22)";
const KEY_PAUSE_MS = 250;
const PAGE_STEPS = 5;
const MINUS = "\u2212";

const boards = new WeakMap();
let library = null;

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".th-board");
  let board = boards.get(parentElement);
  if (!board || board.root !== root) {
    board?.leave();
    board = new Board(root);
    boards.set(parentElement, board);
  }
  board.send = (asked) => setStateValue("asked", asked);
  board.receive(data);
  return () => {
    board.leave();
    boards.delete(parentElement);
  };
}

function loadLibrary(address) {
  if (library === null) {
    library = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => {
        library = null;
        reject(new Error("the chart library could not be loaded"));
      };
      document.head.append(script);
    });
  }
  return library;
}

function element(kind, className, text) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function drawn(kind, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function signed(text) {
  return text.replace("-", MINUS);
}

function plus(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : (value > 0 ? "+" : "") + signed(text);
}

// How each kind of number is written: alone, and as a difference.
const KINDS = {
  share: { alone: (v) => `${(100 * v).toFixed(1)} %`, apart: (d) => `${plus(100 * d, 1)} points` },
  index: { alone: (v) => signed(v.toFixed(2)), apart: (d) => plus(d, 2) },
  number: { alone: (v) => signed(v.toFixed(2)), apart: (d) => plus(d, 2) },
  count: { alone: (v) => v.toLocaleString("en"), apart: (d) => (d > 0 ? "+" : "") + signed(d.toLocaleString("en")) },
};

function written(value, kind) {
  return value === null || value === undefined ? "none" : KINDS[kind].alone(value);
}

// Plotly obeys a subset of HTML wherever it writes; names of settings and phases are somebody's text.
function inert(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function short(value) {
  return String(Number(value.toFixed(4)));
}

class Board {
  constructor(root) {
    this.root = root;
    this.data = null;
    this.values = {};
    this.revision = 0;
    this.held = null;
    this.pause = null;
    this.frame = null;
    this.rows = new Map();
    this.tiles = [];
    this.plot = root.querySelector(".th-plot");
    this.library = null;
    this.listening = false;
  }

  leave() {
    clearTimeout(this.pause);
    cancelAnimationFrame(this.frame);
    if (this.library) this.library.purge(this.plot);
    this.library = null;
  }

  receive(data) {
    // The answer to an earlier question: a later one is on its way.
    if (data.revision < this.revision) return;
    const anew = this.data === null || this.data.sliders.map((s) => s.name).join() !== data.sliders.map((s) => s.name).join();
    this.data = data;
    this.revision = data.revision;
    const free = this.held === null && this.pause === null;
    if (free) this.values = { ...data.values };
    if (anew) this.buildRows();
    this.buildTiles();
    this.ranges = null;
    for (const slider of data.sliders) this.drawRow(slider);
    if (free) this.root.querySelector(".th-refusal").hidden = true;
    this.render();
    if (free) {
      this.root.setAttribute("aria-busy", "false");
      this.root.querySelector(".th-live").textContent = this.root.querySelector(".th-headline").textContent;
    }
    if (this.library === null) {
      loadLibrary(data.library).then(
        (loaded) => {
          this.library = loaded;
          this.render();
        },
        (error) => {
          this.root.querySelector(".th-caption").textContent =
            `The chart cannot be drawn: ${error.message}. The sliders and numbers work without it; reload the page to try again.`;
        },
      );
    }
  }

  // ---- building -------------------------------------------------------------------------------------------------

  buildRows() {
    const place = this.root.querySelector(".th-sliders");
    place.replaceChildren();
    this.rows.clear();
    for (const { name } of this.data.sliders) {
      const row = element("div", "th-row");
      const head = element("div", "th-row-head");
      const label = element("label", "th-row-name");
      const words = element("span");
      const number = element("input", "th-number");
      number.type = "text";
      number.inputMode = "decimal";
      number.autocomplete = "off";
      number.id = `th-${name}`;
      label.htmlFor = number.id;
      const back = element("button", "th-back", "↺");
      back.type = "button";
      head.append(label, back, number);
      const track = element("div", "th-track");
      const spark = element("div", "th-spark");
      const range = element("input", "th-range");
      range.type = "range";
      range.step = "any";
      range.dataset.name = name;
      track.append(spark, range);
      const note = element("p", "th-note");
      row.append(head, track, note);
      place.append(row);
      this.rows.set(name, { label, words, number, back, spark, range, note });
      range.addEventListener("input", () => this.drag(name, Number(range.value)));
      range.addEventListener("change", () => this.letGo(name));
      range.addEventListener("keydown", (event) => this.key(name, event));
      number.addEventListener("change", () => this.type(name));
      number.addEventListener("keydown", (event) => {
        if (event.key === "Escape") this.showValue(name);
      });
      back.addEventListener("click", () => this.setAndAsk({ [name]: this.data.paper[name] }));
    }
  }

  buildTiles() {
    const place = this.root.querySelector(".th-tiles");
    place.replaceChildren();
    this.tiles = this.data.tiles.map(({ title }) => {
      const tile = element("div", "th-tile");
      const value = element("div", "th-tile-value");
      const change = element("div", "th-tile-change");
      tile.append(element("div", "th-tile-name", title), value, change);
      place.append(tile);
      return { value, change };
    });
  }

  drawRow(slider) {
    const row = this.rows.get(slider.name);
    row.words.textContent = slider.name;
    row.label.replaceChildren(slider.label, row.words);
    row.label.title = slider.help;
    row.note.textContent = slider.note;
    row.back.title = `Back to the paper's ${short(this.data.paper[slider.name])}`;
    row.back.setAttribute("aria-label", `${slider.label}: back to the paper's ${short(this.data.paper[slider.name])}`);
    row.range.setAttribute("aria-label", slider.label);
    row.range.min = slider.grid[0];
    row.range.max = slider.grid.at(-1);
    const curve = this.curve(slider);
    const svg = drawn("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.append(drawn("line", { class: "th-floor", x1: 0, x2: 1000, y1: 100, y2: 100 }));
    let pen = [];
    const stroke = () => {
      if (pen.length > 1) svg.append(drawn("polyline", { class: "th-curve", points: pen.join(" ") }));
      pen = [];
    };
    slider.grid.forEach((value, i) => {
      if (curve[i] === null) stroke();
      else pen.push(`${(1000 * this.across(slider, value)).toFixed(1)},${(100 * this.down(curve[i])).toFixed(1)}`);
    });
    stroke();
    const marks = [["", this.data.paper[slider.name], "the paper's value"]];
    const pinned = this.data.pinned.values[slider.name];
    if (pinned !== this.data.paper[slider.name]) marks.push(["th-mark-pinned", pinned, "the pinned value"]);
    const shown = marks
      .filter(([, value]) => value >= slider.grid[0] && value <= slider.grid.at(-1))
      .map(([kind, value, words]) => {
        const mark = element("div", `th-mark ${kind}`);
        mark.style.left = `${100 * this.across(slider, value)}%`;
        mark.title = `${words}: ${short(value)}`;
        return mark;
      });
    row.point = element("div", "th-point");
    row.spark.replaceChildren(svg, ...shown, row.point);
  }

  // ---- from data to numbers -------------------------------------------------------------------------------------

  slider(name) {
    return this.data.sliders.find((slider) => slider.name === name);
  }

  get scope() {
    return this.data.scopes.indexOf(this.data.scope);
  }

  across(slider, value) {
    const low = slider.grid[0];
    return (value - low) / (slider.grid.at(-1) - low || 1);
  }

  down(value) {
    const { low, high } = this.data.scale;
    return 1 - Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
  }

  curve(slider) {
    const rows = this.data.sweeps[slider.name].metrics[this.data.measure];
    return rows.map((row) => row[this.scope]);
  }

  // The curve at a value; between two points as the line is drawn.
  heightAt(slider, value) {
    const { grid } = slider;
    const curve = this.curve(slider);
    const above = grid.findIndex((point) => point >= value);
    if (above < 0) return curve.at(-1);
    if (grid[above] === value || above === 0) return curve[above];
    const [left, right] = [curve[above - 1], curve[above]];
    if (left === null || right === null) return null;
    return left + ((right - left) * (value - grid[above - 1])) / (grid[above] - grid[above - 1]);
  }

  moved() {
    return this.data.sliders.map(({ name }) => name).filter((name) => this.values[name] !== this.data.values[name]);
  }

  // Everything known about the values that the sliders show; null when only the server can tell.
  sample() {
    const moved = this.moved();
    if (moved.length > 1) return null;
    const slider = moved.length ? this.slider(moved[0]) : this.data.sliders[0];
    const at = slider.grid.indexOf(this.values[slider.name]);
    if (at < 0) return null;
    const sweep = this.data.sweeps[slider.name];
    const metrics = {};
    for (const [name, rows] of Object.entries(sweep.metrics)) metrics[name] = rows[at];
    return { metrics, lo: sweep.lo?.[at], hi: sweep.hi?.[at], along: moved.length ? slider.name : null };
  }

  // ---- from a person --------------------------------------------------------------------------------------------

  drag(name, wanted) {
    const { grid } = this.slider(name);
    let nearest = grid[0];
    for (const value of grid) if (Math.abs(value - wanted) < Math.abs(nearest - wanted)) nearest = value;
    this.held = name;
    this.set(name, nearest);
  }

  letGo(name) {
    this.held = null;
    this.showValue(name);
    this.ask();
  }

  key(name, event) {
    const { grid } = this.slider(name);
    // From a value that was typed between two points, the first step goes to the next of them.
    const now = this.values[name];
    const below = grid.filter((value) => value < now);
    const above = grid.filter((value) => value > now);
    const steps = {
      ArrowRight: above[0],
      ArrowUp: above[0],
      ArrowLeft: below.at(-1),
      ArrowDown: below.at(-1),
      PageUp: above[Math.min(PAGE_STEPS, above.length) - 1],
      PageDown: below.at(-Math.min(PAGE_STEPS, below.length)),
      Home: grid[0],
      End: grid.at(-1),
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    if (steps[event.key] !== undefined) this.set(name, steps[event.key]);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => {
      this.pause = null;
      this.ask();
    }, KEY_PAUSE_MS);
  }

  type(name) {
    const { low, high, whole, label } = this.slider(name);
    const text = this.rows.get(name).number.value.trim();
    const value = Number(text.replace(",", "."));
    const range = `${whole ? "a whole number " : ""}from ${short(low)} to ${short(high)}`;
    if (text === "" || !Number.isFinite(value) || value < low || value > high || (whole && !Number.isInteger(value))) {
      const refusal = this.root.querySelector(".th-refusal");
      refusal.textContent =
        `${label} (${name}) must be ${range}, not ${text || "empty"}. It stays at ${short(this.values[name])}.`;
      refusal.hidden = false;
      this.showValue(name);
      return;
    }
    this.setAndAsk({ [name]: value });
  }

  setAndAsk(values) {
    for (const [name, value] of Object.entries(values)) this.set(name, value);
    this.ask();
  }

  set(name, value) {
    this.values[name] = value;
    this.showValue(name);
    if (this.frame === null) {
      this.frame = requestAnimationFrame(() => {
        this.frame = null;
        this.render();
      });
    }
  }

  ask() {
    clearTimeout(this.pause);
    this.pause = null;
    this.root.querySelector(".th-refusal").hidden = true;
    if (this.moved().length === 0 && this.root.getAttribute("aria-busy") === "false") return;
    this.revision += 1;
    this.root.setAttribute("aria-busy", "true");
    this.send({ revision: this.revision, values: this.values });
  }

  // ---- to the screen --------------------------------------------------------------------------------------------

  showValue(name) {
    const row = this.rows.get(name);
    const value = this.values[name];
    row.range.value = value;
    row.range.setAttribute("aria-valuetext", short(value));
    row.number.value = short(value);
    row.back.disabled = value === this.data.paper[name];
  }

  render() {
    for (const slider of this.data.sliders) {
      const { point, number } = this.rows.get(slider.name);
      const value = this.values[slider.name];
      if (document.activeElement !== number) this.showValue(slider.name);
      const height = this.heightAt(slider, value);
      point.style.left = `${100 * Math.min(Math.max(this.across(slider, value), 0), 1)}%`;
      point.style.top = `${100 * (height === null ? 1 : this.down(height))}%`;
    }
    const sample = this.sample();
    const number = this.root.querySelector(".th-tiles");
    number.style.opacity = this.plot.style.opacity = sample === null ? "0.45" : "";
    if (sample === null) {
      this.root.querySelector(".th-second").textContent = "Computing this setting …";
      return;
    }
    const [headline, second] = this.data.kind === "log" ? this.ofLog(sample) : this.ofSimulation(sample);
    this.root.querySelector(".th-headline").textContent = headline;
    this.root.querySelector(".th-second").textContent = second;
    this.data.tiles.forEach(({ metric, kind }, i) => {
      const value = sample.metrics[metric][this.scope];
      const before = this.data.pinned.metrics[metric][this.scope];
      this.tiles[i].value.textContent = written(value, kind);
      this.tiles[i].change.textContent =
        value === null || before === null ? "" : `${KINDS[kind].apart(value - before)} against ${this.data.pinned.short}`;
    });
    if (this.library) this.draw(sample);
  }

  isPinned() {
    return this.data.sliders.every(({ name }) => this.values[name] === this.data.pinned.values[name]);
  }

  ofSimulation({ metrics }) {
    const { pinned, method, scope } = this.data;
    const tasks = scope === "overall" ? "all tasks" : `the ${scope} tasks`;
    const success = metrics.success[this.scope];
    const apart = success - pinned.metrics.success[this.scope];
    const pollution = metrics.mpi[this.scope];
    const than = Math.abs(apart) < 0.0005
      ? `, as at ${pinned.name}`
      : `, ${Math.abs(100 * apart).toFixed(1)} points ${apart > 0 ? "more" : "fewer"} than at ${pinned.name}`;
    const start = this.isPinned() ? `At ${pinned.name} ` : "At this setting ";
    let second = "";
    if (pollution !== null) {
      const amount = signed(pollution.toFixed(2));
      second = pollution > 0
        ? `Memory harms there: the pollution index is ${amount}, worse than no memory.`
        : `Memory helps there: the pollution index is ${amount}; above zero it would be worse than no memory.`;
    }
    return [`${start}${method} succeeds in ${written(success, "share")} of ${tasks}${this.isPinned() ? "" : than}.`, second];
  }

  ofLog({ metrics }) {
    const { pinned } = this.data;
    const count = (name) => metrics[name][0];
    const apart = count("revoked") - pinned.metrics.revoked[0];
    const than = apart === 0
      ? `, as many as at ${pinned.name}`
      : `, ${Math.abs(apart).toLocaleString("en")} ${apart > 0 ? "more" : "fewer"} than at ${pinned.name}`;
    const start = this.isPinned() ? `At ${pinned.name}` : "At this setting";
    return [
      `${start} ${written(count("revoked"), "count")} memories of this log end up revoked${this.isPinned() ? "" : than}.`,
      `${written(count("active"), "count")} are active at its end; ` +
        `in all there are ${written(count("revocations"), "count")} revocations and ` +
        `${written(count("reactivations"), "count")} returns from the archive.`,
    ];
  }

  draw(sample) {
    const [traces, layout, words] = this[this.data.chart](sample);
    const style = getComputedStyle(this.root);
    const axis = { automargin: true, gridcolor: GRID, zeroline: false, linecolor: GRID, fixedrange: false };
    for (const name of Object.keys(layout)) if (/^[xy]axis/.test(name)) layout[name] = { ...axis, ...layout[name] };
    const full = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: style.color, family: style.fontFamily, size: 12 },
      margin: { l: 8, r: 8, t: 30, b: 8, pad: 2 },
      hovermode: "closest",
      hoverlabel: { align: "left", namelength: -1 },
      uirevision: `${this.data.chart} ${layout.meta ?? ""}`,
      ...layout,
    };
    const config = {
      displaylogo: false,
      responsive: true,
      toImageButtonOptions: { filename: `thresholds_${this.data.chart}`, scale: 2 },
    };
    this.library.react(this.plot, traces, full, config);
    this.root.querySelector(".th-caption").textContent = words;
    this.plot.setAttribute("aria-label", `${words} ${this.root.querySelector(".th-headline").textContent}`);
    if (!this.listening) {
      this.listening = true;
      this.plot.on("plotly_click", (event) => this.click(event));
    }
  }

  click(event) {
    const [point] = event.points;
    if (this.data.chart !== "surface" || point.data.type !== "heatmap") return;
    const { x, y } = this.data.surface;
    this.setAndAsk({ [x]: point.x, [y]: point.y });
  }

  // ---- charts: traces, layout, what to see ----------------------------------------------------------------------

  phases(sample) {
    const { scopes, pinned, sweeps, reference } = this.data;
    const places = scopes.map((_, i) => i);
    const band = (mean, lo, hi) => lo && lo.some((bound) => bound !== null)
      ? { type: "data", symmetric: false, array: mean.map((m, i) => hi[i] - m), arrayminus: mean.map((m, i) => m - lo[i]), thickness: 2, width: 5 }
      : { visible: false };
    const tell = (values, kind) => values.map((value, i) => `${inert(scopes[i])}: ${written(value, kind)}`);
    const settings = [
      { ...pinned, metrics: pinned.metrics, color: GREY, symbol: "diamond-open", title: inert(pinned.name), shift: -0.13, pattern: "/" },
      { ...sample, color: BLUE, symbol: "circle", title: "this setting", shift: 0.13, pattern: "" },
    ];
    const traces = [];
    for (const { metrics, lo, hi, color, symbol, title, shift } of settings) {
      traces.push({
        type: "scatter", mode: "markers", name: title, x: places.map((i) => i + shift), y: metrics.success,
        error_y: band(metrics.success, lo, hi), marker: { color, symbol, size: 11, line: { width: 2, color } },
        text: tell(metrics.success, "share"), hovertemplate: `%{text}<extra>${title === "this setting" ? title : "pinned"}</extra>`,
      });
    }
    if (reference) {
      traces.push({
        type: "scatter", mode: "markers", name: "no memory", x: places, y: reference,
        marker: { symbol: "line-ew-open", size: 34, color: GREY, line: { width: 2, color: GREY } },
        text: tell(reference, "share"), hovertemplate: "%{text}<extra>no memory</extra>",
      });
    }
    for (const { metrics, color, title, shift, pattern } of settings) {
      traces.push({
        type: "bar", name: title, showlegend: false, yaxis: "y2", x: places.map((i) => i + shift), y: metrics.mpi, width: 0.24,
        marker: { color, pattern: { shape: pattern, solidity: 0.3 } },
        text: tell(metrics.mpi, "index"), textposition: "none", hovertemplate: `MPI, %{text}<extra>${title === "this setting" ? title : "pinned"}</extra>`,
      });
    }
    if (this.ranges === null) {
      const known = [0.1, ...Object.values(sweeps).flatMap(({ metrics }) => metrics.mpi.flat()), ...pinned.metrics.mpi].filter((v) => v !== null);
      const low = known.reduce((a, b) => Math.min(a, b), 0);
      const high = known.reduce((a, b) => Math.max(a, b), 0);
      this.ranges = [low - 0.06 * (high - low), high + 0.06 * (high - low)];
    }
    const layout = {
      xaxis: { tickvals: places, ticktext: scopes.map(inert), range: [-0.5, scopes.length - 0.5], anchor: "y2", showgrid: false },
      yaxis: { domain: [0.44, 1], range: [0, 1.04], title: { text: "Success (share of tasks)" } },
      yaxis2: { domain: [0, 0.32], range: this.ranges, title: { text: "Pollution index" }, zeroline: true, zerolinecolor: GREY, zerolinewidth: 2 },
      annotations: [{
        text: "worse than no memory ↑", x: 1, xref: "paper", xanchor: "right", y: 0.325, yref: "paper", yanchor: "bottom", showarrow: false, font: { size: 11 },
      }],
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      barmode: "overlay",
    };
    const bands = sample.lo?.some((bound) => bound !== null) ? " with 95 % intervals over the seeds" : "";
    return [traces, layout, `Success by phase${bands}, and below it the pollution index: bars under the zero line are better than no memory.`];
  }

  surface() {
    const { surface, paper, pinned, measures } = this.data;
    const { kind, title } = measures[this.data.measure];
    const { x, y, xs, ys, z } = surface;
    const label = (name) => `${this.slider(name).label} (${name})`;
    const flat = z.flat().filter((value) => value !== null);
    const text = z.map((row) => row.map((value) => written(value, kind)));
    const spot = (name, values, marker) => ({
      type: "scatter", mode: "markers", name, x: [values[x]], y: [values[y]], hoverinfo: "name",
      marker: { size: 15, line: { width: 2.5, color: "#ffffff" }, ...marker },
    });
    const traces = [
      {
        type: "heatmap", x: xs, y: ys, z, zmin: surface.low, zmax: surface.high, text, colorscale: "Cividis", showlegend: false,
        hovertemplate: `${x} %{x:.4g}<br>${y} %{y:.4g}<br>${title}: %{text}<extra>click to set both</extra>`,
        colorbar: { title: { text: title, side: "right" }, thickness: 12, len: 1, tickformat: kind === "share" ? ".0%" : "" },
      },
      spot("paper", paper, { symbol: "diamond", color: "#000000" }),
    ];
    if (!this.isPaper(pinned.values)) traces.push(spot("pinned", pinned.values, { symbol: "square", color: "#555555" }));
    traces.push(spot("this setting", this.values, { symbol: "circle", color: ORANGE }));
    const layout = {
      meta: `${x} ${y}`,
      xaxis: { title: { text: label(x) }, showgrid: false },
      yaxis: { title: { text: label(y) }, showgrid: false },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    };
    const off = this.moved().some((name) => name !== x && name !== y);
    const low = Math.min(...flat);
    const high = Math.max(...flat);
    const words = flat.length === 0
      ? "There is nothing to measure at these settings."
      : `From ${written(low, kind)} to ${written(high, kind)} over ${xs.length * ys.length} settings${low < surface.low || high > surface.high ? ", of which the farthest from the best share one colour" : ""}. Click a place to set both thresholds.`;
    return [traces, layout, off ? `${words} Let the slider go, and the surface follows.` : words];
  }

  isPaper(values) {
    return this.data.sliders.every(({ name }) => values[name] === this.data.paper[name]);
  }

  tradeoff(sample) {
    const { sweeps, frontier, pinned, paper_metrics: paper } = this.data;
    // Wrong revocations come with noise, delays with change: only over all phases do the two meet.
    const i = this.data.scopes.length - 1;
    const points = { kept: { x: [], y: [], text: [] }, left: { x: [], y: [], text: [] } };
    const bound = paper.never_revoked[i] + 0.05;
    for (const { name, grid } of this.data.sliders) {
      const { metrics } = sweeps[name];
      grid.forEach((value, at) => {
        const [x, y] = [metrics.revocation_delay[at][i], metrics.false_revocations[at][i]];
        if (x === null) return;
        const group = metrics.never_revoked[at][i] > bound ? points.left : points.kept;
        group.x.push(x);
        group.y.push(y);
        group.text.push(`${name} ${short(value)}`);
      });
    }
    const cloud = (name, { x, y, text }, marker) => ({
      type: "scatter", mode: "markers", name, x, y, text, marker: { size: 7, color: GREY, opacity: 0.6, ...marker },
      hovertemplate: `%{text}<br>delay %{x:.2f} tasks<br>wrong %{y:.2f} a seed<extra></extra>`,
    });
    const spot = (name, metrics, marker) => ({
      type: "scatter", mode: "markers", name, x: [metrics.revocation_delay[i]], y: [metrics.false_revocations[i]],
      marker: { size: 15, line: { width: 2, color: marker.color }, ...marker }, hovertemplate: `%{x:.2f} tasks<br>%{y:.2f} a seed<extra>${name}</extra>`,
    });
    const traces = [
      cloud("one threshold moved", points.kept, {}),
      cloud("leaves outdated values active", points.left, { symbol: "x-thin", line: { width: 1.5, color: GREY } }),
      {
        type: "scatter", mode: "lines", name: "none is both faster and less often wrong", x: frontier.map(([x]) => x),
        y: frontier.map(([, y]) => y), line: { color: ORANGE, width: 2, shape: "hv" }, hoverinfo: "skip",
      },
    ];
    if (sample.along) {
      const { metrics } = sweeps[sample.along];
      traces.push({
        type: "scatter", mode: "lines", name: `along ${sample.along}`, x: metrics.revocation_delay.map((row) => row[i]),
        y: metrics.false_revocations.map((row) => row[i]), line: { color: BLUE, width: 1.5, dash: "dot" }, hoverinfo: "skip",
      });
    }
    traces.push(spot("paper", paper, { symbol: "diamond-open", color: GREY }));
    if (!this.isPaper(pinned.values)) traces.push(spot("pinned", pinned.metrics, { symbol: "square-open", color: GREY }));
    traces.push(spot("this setting", sample.metrics, { symbol: "circle", color: BLUE }));
    const layout = {
      xaxis: { title: { text: "Delay of revoking an outdated value (tasks)" }, rangemode: "tozero" },
      yaxis: { title: { text: "Wrong revocations (per seed)" }, rangemode: "tozero" },
      legend: { orientation: "h", x: 0, y: this.plot.clientHeight < 420 ? -0.34 : -0.22, yanchor: "top" },
    };
    return [traces, layout, "Over all tasks. Down and to the left is better: revoked sooner, and wrongly less often."];
  }

  counts(sample) {
    const { pinned, tiles, sweeps } = this.data;
    const names = tiles.map(({ title }) => title);
    const bar = (title, metrics, color, pattern) => {
      const values = tiles.map(({ metric }) => metrics[metric][0]);
      return {
        type: "bar", orientation: "h", name: title, y: names, x: values, text: values.map((v) => v.toLocaleString("en")),
        textposition: "outside", cliponaxis: false, marker: { color, pattern: { shape: pattern, solidity: 0.3 } }, hovertemplate: `%{y}: %{x}<extra>${title === "this setting" ? title : "pinned"}</extra>`,
      };
    };
    if (this.ranges === null) {
      let most = 1;
      for (const { metrics } of Object.values(sweeps)) for (const { metric } of tiles) for (const [value] of metrics[metric]) most = Math.max(most, value);
      this.ranges = [0, 1.12 * most];
    }
    const layout = {
      xaxis: { title: { text: "Number" }, range: this.ranges },
      yaxis: { autorange: "reversed", showgrid: false },
      barmode: "group",
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal" },
    };
    return [
      [bar(inert(pinned.name), pinned.metrics, GREY, "/"), bar("this setting", sample.metrics, BLUE, "")],
      layout,
      "What becomes of the memories of this log; the evidence stays the same, the rule reads it with other thresholds.",
    ];
  }
}
